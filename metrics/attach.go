package metrics

import (
	"slices"
	"sync"

	anteroom "github.com/anteroom/anteroom/sync"
)

// Counter is what a Collector reads at each scrape. *anteroom.Manager has it.
// Counts is called by the goroutine of the scrape, maybe by several at once, while no
// lock of the Collector is held.
type Counter interface {
	Counts() map[string]anteroom.Count
}

// sources are the attached Managers.
type sources struct {
	mu sync.Mutex
	// list is only ever appended to, or replaced as a whole: a scrape reads the part that it
	// saw under mu without holding it.
	list []Counter
}

// Attach makes m's locks and waiters part of held, waiters and their ages from the next
// scrape on. Attaching twice changes nothing. The Collector keeps m until Detach: a program
// that makes and closes Managers detaches them. m must be comparable, as pointers
// are, so that it can be found again; a nil m panics.
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

// Detach takes m out again, so that it adds nothing to the next scrape. What was
// counted stays counted. Detaching what is not attached changes nothing.
func (c *Collector) Detach(m Counter) {
	c.sources.mu.Lock()
	defer c.sources.mu.Unlock()
	if i := slices.Index(c.sources.list, m); i >= 0 {
		c.sources.list = slices.Concat(c.sources.list[:i], c.sources.list[i+1:])
	}
}

// count asks all attached Managers and returns the sums by class, of the ages the
// greatest, and how many Managers there are. A class that is met here for the first time becomes known (I1)
// but is no report, so that a scrape never counts as an overflow.
func (c *Collector) count() (map[*class]anteroom.Count, int) {
	c.sources.mu.Lock()
	list := c.sources.list
	c.sources.mu.Unlock()
	sums := map[*class]anteroom.Count{}
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
