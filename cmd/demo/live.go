package main

import (
	"context"
	"fmt"
	"time"

	"github.com/anteroom/anteroom/sync/observe"
)

// reported handles an event of the library: it prints a loss, and other events of a lock if the user asked for them.
// Of those that one fault causes dozens of the figures have the number. Several processes may call it together, on the
// goroutine of a Manager that delivers its events, so it must not wait for one.
func (d *demo) reported(r Report) {
	switch r.Kind {
	case observe.EventLost:
		d.reportedLoss(r)
	case kindProblem:
		d.console.broken("%s: %s", d.subject(r), r.Text)
		d.ledger.problem(d.subject(r) + " could not continue")
	case observe.EventReleaseFailed:
	default:
		if r.Key != "" {
			d.console.detail(markEvent, "%s: %s %s: %s", d.subject(r), r.Kind, r.Check, r.Text)
		}
	}
}

// subject names what a report is about: a process, and its lock unless there is no key.
func (d *demo) subject(r Report) string {
	if r.Key == "" {
		return fmt.Sprintf("process %d", r.Process)
	}
	return fmt.Sprintf("process %d, %s", r.Process, d.ledger.name(r.Key))
}

// lossWords explains the reasons for a loss.
var lossWords = map[observe.LossReason]string{
	observe.LostGone:     "its key is gone",
	observe.LostForced:   "it was released by force",
	observe.LostDeadline: "its lease ran out",
	observe.LostFixed:    "its fixed lease ended",
}

// reportedLoss prints a loss, and whether a fault caused it.
func (d *demo) reportedLoss(r Report) {
	after, asked := d.ledger.lossReported(r.Process, r.Key, r.Reason)
	why := lossWords[r.Reason]
	if why == "" {
		why = string(r.Reason)
	}
	if !asked {
		d.console.say(markNotice, "process %d lost %s: %s; no fault was aimed at it", r.Process, d.ledger.name(r.Key), why)
		return
	}
	d.console.took(markNotice, after, "process %d lost %s: %s", r.Process, d.ledger.name(r.Key), why)
}

// live shows the figures of every second until ctx ends: what happened in that second, and the present number of
// waiters.
func (d *demo) live(ctx context.Context) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	defer d.console.status("")
	before := figures{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		all := d.figures(ctx)
		// Eighty columns hold it.
		text := fmt.Sprintf("%.0f acquired/s, %.0f waiting, 99%% in %v, %.0f renewals",
			all.acquired-before.acquired, all.waiting, all.p99(before), all.renewed-before.renewed)
		d.console.detail(markFigures, "%s, %.0f handed over", text, all.handedOver-before.handedOver)
		if events := all.eventsSince(before); events != "" {
			d.console.detail(markEvent, "%s", events)
		}
		before = all
		d.console.status("%s", text)
	}
}

// figures adds up the metrics of all processes. One that does not answer keeps its last ones.
func (d *demo) figures(ctx context.Context) figures {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	for n, p := range d.processes {
		if families, err := p.gather(ctx); err == nil {
			d.latest[n] = families
		}
	}
	return figuresOf(d.latest)
}
