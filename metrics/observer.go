package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	anteroom "github.com/anteroom/anteroom/sync"
)

// The methods of this file implement anteroom.Observer. Managers call them; a program calls them only from an
// Observer of its own that forwards everything.

// Acquired implements anteroom.Observer: it counts the attempt, and observes its wait if it acquired the lock.
func (c *Collector) Acquired(name string, outcome anteroom.Outcome, wait time.Duration) {
	cl := c.class(name)
	if !c.inc(cl.attempts.of(outcome)) {
		return
	}
	// A re-entry never waits, and a cancelled wait measures the caller's patience, not the lock; either would distort
	// the mean.
	if outcome == anteroom.OutcomeGranted || outcome == anteroom.OutcomeHandedOff {
		observe(cl.waits, wait)
	}
}

// Called implements anteroom.Observer: it counts the call.
func (c *Collector) Called(name, how string) {
	cl := c.class(name)
	c.inc(cl.calls.of(how))
}

// Released implements anteroom.Observer: it counts the hold and observes the duration of the tenure that ended with
// it, even if the lock had been lost meanwhile: its owner worked all that time.
func (c *Collector) Released(name string, outcome anteroom.Outcome, held time.Duration) {
	cl := c.class(name)
	if !c.inc(cl.releases.of(outcome)) {
		return
	}
	// A nested release does not end the tenure.
	if outcome != anteroom.OutcomeNested {
		observe(cl.holds, held)
	}
}

// Renewed implements anteroom.Observer: it counts the renewal, and observes the time left on the lease if it was
// confirmed.
func (c *Collector) Renewed(name string, outcome anteroom.Outcome, left time.Duration) {
	cl := c.class(name)
	if !c.inc(cl.renewals.of(outcome)) {
		return
	}
	if left >= 0 && outcome == anteroom.OutcomeRenewed {
		observe(cl.margins, left)
	}
}

// Lost implements anteroom.Observer: it counts the loss.
func (c *Collector) Lost(name string, reason anteroom.LossReason) {
	c.inc(c.class(name).losses.of(reason))
}

// Command implements anteroom.Observer: it counts the command and observes its duration. Durations are not split by
// outcome: a command abandoned at its limit is the slowest answer there is, and without it a failing server would
// look fast.
func (c *Collector) Command(name, outcome string, took time.Duration) {
	if c.inc(c.process.commands[pair{name, outcome}]) {
		observe(c.process.commandTimes[name], took)
	}
}

// Checked implements anteroom.Observer: it counts the check by its health and, if it is unhealthy, by its finding,
// and sets the time of the last run. That is wall-clock time, because queries compare it with Prometheus' own.
func (c *Collector) Checked(check, finding string) {
	p := &c.process
	found, outcome := p.findings[finding], finding
	switch {
	case found != nil:
		outcome = unhealthy
	case finding == unhealthy:
		outcome = "" // not a finding: Checked reports unhealthy only by a finding
	}
	if !c.inc(p.checks[pair{check, outcome}]) {
		return
	}
	if found != nil {
		found.Inc()
	}
	p.lastRuns[check].SetToCurrentTime()
}

// Recovered implements anteroom.Observer. The check is not a label: the action implies it.
func (c *Collector) Recovered(_, action, outcome string) {
	c.inc(c.process.recoveries[pair{action, outcome}])
}

// Alert implements anteroom.Observer. The Manager clears each alert that it raised, at the latest when it is closed.
func (c *Collector) Alert(name, check string, active bool) {
	g := c.class(name).alerts[check]
	switch {
	case g == nil:
		c.process.unrecognized.Inc()
	case active:
		g.Inc()
	default:
		g.Dec()
	}
}

// Subscription implements anteroom.Observer. Managers report only changes, so the gauge counts the connections that
// are up.
func (c *Collector) Subscription(up bool) {
	if up {
		c.process.subscriptions.Inc()
	} else {
		c.process.subscriptions.Dec()
	}
}

// EventRaised implements anteroom.Observer: it counts the event under its kind even if it was dropped, so that an
// event that was never delivered still shows.
func (c *Collector) EventRaised(kind anteroom.EventKind, dropped bool) {
	if c.inc(c.process.events[kind]) && dropped {
		c.process.dropped.Inc()
	}
}

// class returns the series for a class, and counts reports that go to "other".
func (c *Collector) class(name string) *class {
	cl, over := c.classes.get(name)
	if over {
		c.process.overflows.Inc()
	}
	return cl
}

// inc increments s, or the counter of unrecognized reports if s is nil (I5). It reports which.
func (c *Collector) inc(s prometheus.Counter) bool {
	if s == nil {
		c.process.unrecognized.Inc()
		return false
	}
	s.Inc()
	return true
}

// observe records a duration. Two clock readings in the wrong order can give a negative one, which would make the
// histogram's sum fall; Prometheus would take that for a restart.
func observe(h prometheus.Observer, d time.Duration) { h.Observe(max(d, 0).Seconds()) }
