package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/anteroom/anteroom/metrics/internal/facts"
	"github.com/anteroom/anteroom/sync/observe"
)

// Observer returns the hooks with which Managers report to c. It is the same for all of them.
func (c *Collector) Observer() *observe.Observer {
	return &observe.Observer{
		Acquired: c.acquired, Called: c.called, Released: c.released, Renewed: c.renewed, Lost: c.lost, Command: c.command,
		Checked: c.checked, Recovered: c.recovered, Alert: c.alert, Subscription: c.subscription, EventRaised: c.eventRaised,
	}
}

// acquired counts the attempt, and observes its wait if it acquired the lock.
func (c *Collector) acquired(name string, outcome observe.Outcome, wait time.Duration) {
	cl := c.class(name)
	if !c.inc(cl.attempts.of(outcome)) {
		return
	}
	if facts.Waited(outcome) {
		cl.waits.Observe(facts.Seconds(wait))
	}
}

// called counts the call.
func (c *Collector) called(name, how string) {
	cl := c.class(name)
	c.inc(cl.calls.of(how))
}

// released counts the hold and observes the duration of the tenure if it ended with it.
func (c *Collector) released(name string, outcome observe.Outcome, held time.Duration) {
	cl := c.class(name)
	if !c.inc(cl.releases.of(outcome)) {
		return
	}
	if facts.Ended(outcome) {
		cl.holds.Observe(facts.Seconds(held))
	}
}

// renewed counts the renewal, and observes the time left on the lease if it was
// confirmed.
func (c *Collector) renewed(name string, outcome observe.Outcome, left time.Duration) {
	cl := c.class(name)
	if !c.inc(cl.renewals.of(outcome)) {
		return
	}
	if facts.Confirmed(outcome, left) {
		cl.margins.Observe(facts.Seconds(left))
	}
}

// lost counts the loss.
func (c *Collector) lost(name string, reason observe.LossReason) {
	c.inc(c.class(name).losses.of(reason))
}

// command counts the command and observes its duration. Durations are not split by
// outcome: a command abandoned at its limit is the slowest answer there is, and without it a failing server would
// seem fast.
func (c *Collector) command(name, outcome string, took time.Duration) {
	if c.inc(c.process.commands[pair{name, outcome}]) {
		c.process.commandTimes[name].Observe(facts.Seconds(took))
	}
}

// checked counts the check by its health and, if it is unhealthy, by its finding,
// and sets the time of the last run. That is wall-clock time, because queries compare it with Prometheus' own.
func (c *Collector) checked(check, finding string) {
	p := &c.process
	found := p.findings[finding]
	if !c.inc(p.checks[pair{check, facts.Health(finding, found != nil)}]) {
		return
	}
	if found != nil {
		found.Inc()
	}
	p.lastRuns[check].SetToCurrentTime()
}

// recovered: The check is not a label: the action implies it.
func (c *Collector) recovered(_, action, outcome string) {
	c.inc(c.process.recoveries[pair{action, outcome}])
}

// alert: The Manager clears each alert that it raised, at the latest when it is closed.
func (c *Collector) alert(name, check string, active bool) {
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

// subscription: Managers report only changes, so the gauge counts the connections that
// are up.
func (c *Collector) subscription(up bool) {
	if up {
		c.process.subscriptions.Inc()
	} else {
		c.process.subscriptions.Dec()
	}
}

// eventRaised counts the event under its kind even if it was dropped, so that an
// event that was never delivered still shows.
func (c *Collector) eventRaised(kind observe.EventKind, dropped bool) {
	if c.inc(c.process.events[kind]) && dropped {
		c.process.dropped.Inc()
	}
}

// class returns the series for a class, and counts reports that go to "other".
func (c *Collector) class(name string) *class {
	cl, over := c.classes.Get(name)
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
