package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	anteroom "github.com/anteroom/anteroom/sync"
)

// The methods of this file implement anteroom.Observer. Managers call them; a
// program has no reason to, except an Observer of its own that passes everything on.

// Acquired implements anteroom.Observer: it counts the attempt, and notes the wait of
// one that got the lock.
func (c *Collector) Acquired(name string, outcome anteroom.Outcome, wait time.Duration) {
	cl := c.class(name)
	if !c.inc(cl.attempts.of(outcome)) {
		return
	}
	// A re-entry never waits, and a wait that was given up says how patient the caller
	// was and nothing about the lock; both would make the mean mean nothing.
	if outcome == anteroom.OutcomeGranted || outcome == anteroom.OutcomeHandedOff {
		observe(cl.waits, wait)
	}
}

// Released implements anteroom.Observer: it counts the hold, and notes how long the
// possession lasted that ended with it, also where the lock had been lost meanwhile:
// its owner worked all that time.
func (c *Collector) Released(name string, outcome anteroom.Outcome, held time.Duration) {
	cl := c.class(name)
	if !c.inc(cl.releases.of(outcome)) {
		return
	}
	// The end of an inner hold is not the end of the possession.
	if outcome != anteroom.OutcomeNested {
		observe(cl.holds, held)
	}
}

// Renewed implements anteroom.Observer: it counts the renewal, and notes what was left
// of the lease where it was confirmed.
func (c *Collector) Renewed(name string, outcome anteroom.Outcome, left time.Duration) {
	cl := c.class(name)
	if !c.inc(cl.renewals.of(outcome)) {
		return
	}
	if outcome == anteroom.OutcomeRenewed || outcome == anteroom.OutcomeReacquired {
		observe(cl.margins, left)
	}
}

// Lost implements anteroom.Observer: it counts the loss.
func (c *Collector) Lost(name string, reason anteroom.LossReason) {
	c.inc(c.class(name).losses.of(reason))
}

// Command implements anteroom.Observer: it counts the command and notes how long it
// took. The time is not split by outcome, because a command that is abandoned at its
// limit is the slowest answer there is: left out, a dying server would look fast.
func (c *Collector) Command(name, outcome string, took time.Duration) {
	if c.inc(c.process.commands[pair{name, outcome}]) {
		observe(c.process.commandTimes[name], took)
	}
}

// Checked implements anteroom.Observer: it counts the check by its health and, where
// it is unhealthy, by what was found, and notes the time. That is the wall clock's,
// because a query compares it with Prometheus' own.
func (c *Collector) Checked(check, finding string) {
	p := &c.process
	found, outcome := p.findings[finding], finding
	switch {
	case found != nil:
		outcome = unhealthy
	case finding == unhealthy:
		outcome = "" // only a finding says that
	}
	if !c.inc(p.checks[pair{check, outcome}]) {
		return
	}
	if found != nil {
		found.Inc()
	}
	p.lastRuns[check].SetToCurrentTime()
}

// Recovered implements anteroom.Observer. The check is not counted: the action says
// what it was about.
func (c *Collector) Recovered(_, action, outcome string) {
	c.inc(c.process.recoveries[pair{action, outcome}])
}

// Alert implements anteroom.Observer. The Manager clears each alert that it raised,
// at the latest when it is closed.
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

// Subscription implements anteroom.Observer. Managers report changes only, so the
// connections that are up can be counted.
func (c *Collector) Subscription(up bool) {
	if up {
		c.process.subscriptions.Inc()
	} else {
		c.process.subscriptions.Dec()
	}
}

// EventRaised implements anteroom.Observer: it counts the event under its kind whether
// or not it was dropped, so that what nobody was told of still shows.
func (c *Collector) EventRaised(kind anteroom.EventKind, dropped bool) {
	if c.inc(c.process.events[kind]) && dropped {
		c.process.dropped.Inc()
	}
}

// class returns the series for a class, and counts what lands in "other".
func (c *Collector) class(name string) *class {
	cl, over := c.classes.get(name)
	if over {
		c.process.overflows.Inc()
	}
	return cl
}

// inc counts in s, or among the unrecognized where there is no such series (I5). It
// reports which.
func (c *Collector) inc(s prometheus.Counter) bool {
	if s == nil {
		c.process.unrecognized.Inc()
		return false
	}
	s.Inc()
	return true
}

// observe notes a duration. A negative one, which two clock readings in the wrong
// order can give, would make the histogram's sum fall, which Prometheus takes for a
// restart.
func observe(h prometheus.Observer, d time.Duration) { h.Observe(max(d, 0).Seconds()) }
