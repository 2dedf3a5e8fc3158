package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
)

// console writes the output of a run, line by line and each with the time of day, and counts events of which there
// would be too many lines. Safe for concurrent use.
type console struct {
	mu    sync.Mutex
	out   io.Writer
	tally map[anteroom.EventKind]int // events since the last live line, guarded by mu
}

func newConsole(out io.Writer) *console {
	return &console{out: out, tally: map[anteroom.EventKind]int{}}
}

// say writes one line.
func (c *console) say(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprintf(c.out, time.Now().Format(time.TimeOnly)+" "+format+"\n", args...)
}

// last writes the last line of a run, which has no time of day.
func (c *console) last(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprintln(c.out, line)
}

// count counts an event that is reported together with others of its kind.
func (c *console) count(k anteroom.EventKind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tally[k]++
}

// tallied returns the counted events as text, "" if there were none, and resets the counts.
func (c *console) tallied() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	parts := make([]string, 0, len(c.tally))
	for k, n := range c.tally {
		parts = append(parts, fmt.Sprintf("%d × %s", n, k))
	}
	clear(c.tally)
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// reported handles an event of the library: it prints it in plain words, or counts it if one fault causes dozens of
// them. Several processes may call it at once, on the goroutine of a Manager that delivers its events, so it must not
// wait for one.
func (d *demo) reported(r report) {
	switch r.Kind {
	case anteroom.EventLost:
		d.reportedLoss(r)
		return
	case kindProblem:
		d.console.say("PROBLEM: %s in process %d: %s", d.subject(r.Key), r.Process, r.Text)
		d.problem(fmt.Sprintf("process %d could not go on with %s", r.Process, d.subject(r.Key)))
		return
	}
	if r.Key == "" {
		// Events of the process come from every process at once, and again each period while the server is away.
		d.console.count(r.Kind)
		return
	}
	switch r.Kind {
	case anteroom.EventRecovery, anteroom.EventAbandoned, anteroom.EventUnlockLost, anteroom.EventReleaseGivenUp,
		anteroom.EventSelfDeadlock, anteroom.EventReentryLost, anteroom.EventClockJump:
		d.console.say("reported: %s of %s in process %d: %s", r.Kind, d.ledger.name(r.Key), r.Process, r.Text)
	case anteroom.EventAlert:
		d.console.say("reported: alert of the %s check for %s in process %d: %s", r.Check, d.ledger.name(r.Key), r.Process, r.Text)
	default:
		d.console.count(r.Kind)
	}
}

// subject names what a problem is about: a lock, or the process if there is no key.
func (d *demo) subject(key string) string {
	if key == "" {
		return "the process"
	}
	return d.ledger.name(key)
}

// reportedLoss prints a loss, and whether a fault caused it.
func (d *demo) reportedLoss(r report) {
	after, asked := d.ledger.lossReported(r.Process, r.Key, r.Reason)
	if !asked {
		d.console.say("reported: lock lost: %s in process %d, reason %s; not caused by a fault", d.ledger.name(r.Key), r.Process, r.Reason)
		return
	}
	d.console.say("reported: lock lost: %s in process %d, reason %s, %v after the fault", d.ledger.name(r.Key), r.Process, r.Reason, round(after))
}

// live prints the figures of every second until ctx ends: what happened in that second, and the present number of
// waiters.
func (d *demo) live(ctx context.Context) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
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
		d.console.say("live: %d acquisitions, %d hand-offs, %d renewals, %d waiters, p99 wait %v",
			s.Acquisitions, s.HandOffs, s.Renewals, s.Waiters, round(s.p99()))
		if events := d.console.tallied(); events != "" {
			d.console.say("reported: %s", events)
		}
	}
}

// stats adds up the figures of all processes. A process that has ended keeps its last ones.
func (d *demo) stats() (all stats) {
	for _, p := range d.processes {
		all.add(p.stats())
	}
	return all
}

// round shortens a duration to about three digits for display.
func round(d time.Duration) time.Duration {
	switch {
	case d >= 100*time.Millisecond:
		return d.Round(time.Millisecond)
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(time.Microsecond)
}
