package report

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/anteroom/anteroom/sync/internal/lock"
	"github.com/anteroom/anteroom/sync/observe"
)

// capacities are the differences between what this process and another one take for the capacity of a Semaphore, as the answers of
// Redis show them. Holders come and go, so in a rolling deploy every other answer shows one. It is reported when it is seen first, and
// when it was seen no more for a lease: who uses the Semaphore has an answer more often.
type capacities struct {
	mu      sync.Mutex
	stopped bool                    // no end is raised any more
	seen    map[difference]*differs // at most maxTroubles; of a further one nothing is said
}

type difference struct {
	key         string
	here, there int64
}

type differs struct {
	class string
	lease time.Duration
	last  time.Time // when it was seen
	end   *time.Timer
}

// Capacity notes that this process counts with so many units of a Semaphore here, and another one with so many there.
func (p *Reports) Capacity(k *lock.Key, here, there int64) {
	c, of := &p.capacities, difference{k.Name(), here, there}
	c.mu.Lock()
	d := c.seen[of]
	first := d == nil && !c.stopped && len(c.seen) < maxTroubles
	if first {
		d = &differs{class: k.Settings().Class, lease: k.Settings().Lease.For}
		d.end = time.AfterFunc(d.lease, func() { p.endDifference(of, d) })
		c.seen[of] = d
	}
	if d != nil {
		d.last = time.Now()
	}
	c.mu.Unlock()
	if first {
		p.capacity(of, d, fmt.Sprintf("the capacity is %d here and %d in another process: the lesser one, %d, counts", here, there, min(here, there)))
	}
}

// endDifference reports that d was not seen for a lease, or waits until that is so.
func (p *Reports) endDifference(of difference, d *differs) {
	c, counts := &p.capacities, of.here
	c.mu.Lock()
	left := d.lease - time.Since(d.last)
	switch {
	case c.stopped:
	case left > 0:
		d.end.Reset(left)
	default:
		p.batches.Add(1) // Close waits for what is raised
		defer p.batches.Done()
		delete(c.seen, of)
		for other := range c.seen {
			if other.key == of.key && other.here == of.here {
				counts = min(counts, other.there)
			}
		}
	}
	over := !c.stopped && left <= 0
	c.mu.Unlock()
	if over {
		p.capacity(of, d, fmt.Sprintf("no other process has been seen for %v that counts with %d: the capacity that counts here is %d", d.lease, of.there, counts))
	}
}

func (p *Reports) capacity(of difference, d *differs, text string) {
	p.event(context.Background(), observe.Event{Kind: observe.EventCapacity, Key: of.key, Class: d.class, Text: text})
}

func (c *capacities) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	for _, d := range c.seen {
		d.end.Stop()
	}
}
