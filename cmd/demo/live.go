package main

import (
	"context"
	"fmt"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
)

// reported handles an event of the library: it prints a loss, counts what one fault causes dozens of, and prints the
// rest if the user asked for it. Several processes may call it at once, on the goroutine of a Manager that delivers
// its events, so it must not wait for one.
func (d *demo) reported(r report) {
	switch r.Kind {
	case anteroom.EventLost:
		d.reportedLoss(r)
	case kindProblem:
		d.console.broken("%s: %s", d.subject(r), r.Text)
		d.problem(d.subject(r) + " could not go on")
	case anteroom.EventRecovery, anteroom.EventAlert, anteroom.EventAbandoned, anteroom.EventUnlockLost,
		anteroom.EventReleaseGivenUp, anteroom.EventSelfDeadlock, anteroom.EventReentryLost, anteroom.EventClockJump:
		if r.Key == "" {
			// Events of the process come from every process at once, and again each period while the server is away.
			d.console.count(r.Kind)
			return
		}
		d.console.detail(markEvent, "%s: %s %s: %s", d.subject(r), r.Kind, r.Check, r.Text)
	default:
		d.console.count(r.Kind)
	}
}

// subject names what a report is about: a process, and its lock unless there is no key.
func (d *demo) subject(r report) string {
	if r.Key == "" {
		return fmt.Sprintf("process %d", r.Process)
	}
	return fmt.Sprintf("process %d, %s", r.Process, d.ledger.name(r.Key))
}

// lossWords explains the reasons for a loss.
var lossWords = map[anteroom.LossReason]string{
	anteroom.LostGone:     "its key is gone",
	anteroom.LostForced:   "it was released by force",
	anteroom.LostDeadline: "its lease ran out",
}

// reportedLoss prints a loss, and whether a fault caused it.
func (d *demo) reportedLoss(r report) {
	after, asked := d.ledger.lossReported(r.Process, r.Key, r.Reason)
	why := lossWords[r.Reason]
	if why == "" {
		why = string(r.Reason)
	}
	if !asked {
		d.console.say(markTold, "process %d lost %s: %s; no fault caused it", r.Process, d.ledger.name(r.Key), why)
		return
	}
	d.console.took(markTold, after, "process %d lost %s: %s", r.Process, d.ledger.name(r.Key), why)
}

// live shows the figures of every second until ctx ends: what happened in that second, and the present number of
// waiters.
func (d *demo) live(ctx context.Context) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	defer d.console.status("")
	var before stats
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		all := d.stats()
		s := all.since(before)
		before = all
		figures := fmt.Sprintf("%d acquisitions/s (%d handed over), %d waiting, p99 wait %v, %d renewals",
			s.Acquisitions, s.HandOffs, s.Waiters, round(s.p99()), s.Renewals)
		d.console.detail(markFigures, "%s", figures)
		d.console.status("%6.1fs  live     %s", time.Since(d.console.begin).Seconds(), figures)
		d.console.flush()
	}
}

// stats adds up the figures of all processes. A process that has ended keeps its last ones.
func (d *demo) stats() (all stats) {
	for _, p := range d.processes {
		all.add(p.stats())
	}
	return all
}
