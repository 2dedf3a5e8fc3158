package metrics

import (
	"slices"
	"sync"

	"github.com/anteroom/anteroom/sync/observe"
)

// Counter is what a Collector reads at each scrape; *anteroom.Manager implements it. Counts is called on the scrape's
// goroutine, possibly by several scrapes together, and no lock of the Collector is held during the call.
type Counter interface {
	Counts() map[string]observe.Count
}

// sources are the attached Managers.
type sources struct {
	mu sync.Mutex
	// list is only appended to or replaced as a whole, so a scrape reads the slice it saw under mu without holding
	// mu.
	list []Counter
}

// Attach includes m's locks and waiters in held, waiters and their ages from the next scrape on. Attaching twice has
// no further effect. The Collector keeps m until Detach: a program that creates and closes Managers must detach them.
// m must be comparable, as pointers are, so that it can be found again. A nil m panics.
func (c *Collector) Attach(m Counter) {
	if m == nil {
		panic("anteroom/metrics: Attach(nil)")
	}
	c.sources.mu.Lock()
	defer c.sources.mu.Unlock()
	if !slices.Contains(c.sources.list, m) {
		c.sources.list = append(c.sources.list, m)
	}
}

// Detach removes m from the next scrape on. Counters keep what they counted. Detaching a Counter that is not attached
// has no effect.
func (c *Collector) Detach(m Counter) {
	c.sources.mu.Lock()
	defer c.sources.mu.Unlock()
	if i := slices.Index(c.sources.list, m); i >= 0 {
		c.sources.list = slices.Concat(c.sources.list[:i], c.sources.list[i+1:])
	}
}

// count reads all attached Managers and returns the sums by class (of the ages the maximum) and the number of
// Managers. A class first seen here becomes known (I1) but is not a report, so a scrape never counts as an overflow.
func (c *Collector) count() (map[*class]observe.Count, int) {
	c.sources.mu.Lock()
	list := c.sources.list
	c.sources.mu.Unlock()
	sums := map[*class]observe.Count{}
	for _, m := range list {
		for name, n := range m.Counts() {
			cl, _ := c.classes.get(name)
			sum := sums[cl]
			sum.Held += n.Held
			sum.Waiting += n.Waiting
			sum.OldestHold = max(sum.OldestHold, n.OldestHold)
			sum.OldestWait = max(sum.OldestWait, n.OldestWait)
			sums[cl] = sum
		}
	}
	return sums, len(list)
}
