package main

import (
	"time"

	"github.com/anteroom/anteroom/lab/history"
)

// maxSaid bounds what is printed of each sort: a broken lock would cause thousands, and the first ones are enough.
const maxSaid = 40

// complete is the length from which a run must contain every kind of fault.
const complete = time.Minute

// conclude prints the counts, the findings, and the last line. It returns the exit status.
func (c *chaos) conclude(failures []string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.outcome
	if o == nil {
		o = &history.Outcome{Verdict: &history.Verdict{}}
	}
	faults := 0
	for _, k := range kinds {
		c.out.say("%5d  %s", c.counts[k.name], k.name)
		faults += c.counts[k.name]
		if c.counts[k.name] == 0 && c.lasts >= complete && len(c.only) == 0 {
			failures = append(failures, "no fault of this kind took place: "+k.name)
		}
	}
	c.out.say("%d holders were notified of a loss; the last caller returned %v after everything had healed", o.Lost, o.Through.Round(time.Millisecond))
	for n, f := range o.Findings {
		if n == maxSaid {
			c.out.say("… and %d more", len(o.Findings)-n)
			break
		}
		c.out.say("%s: %s: %s", f.Rule, f.Key, f.Text)
	}
	failures = append(failures, o.Problems...)
	c.list("problem", failures)
	c.list("leak", o.Leaks)
	violations := o.Violations() + len(failures)
	c.out.say("acquisitions=%d faults=%d overlaps=%d violations=%d late_losses=%d stuck=%d leaks=%d",
		o.Acquisitions, faults, o.Overlaps, violations, o.LateLosses(), o.Stuck, len(o.Leaks))
	if violations+o.LateLosses()+o.Stuck+len(o.Leaks) > 0 {
		return 1
	}
	return 0
}

// list prints a list, up to maxSaid items.
func (c *chaos) list(name string, items []string) {
	for n, item := range items {
		if n == maxSaid {
			c.out.say("… and %d more", len(items)-n)
			return
		}
		c.out.say("%s: %s", name, item)
	}
}
