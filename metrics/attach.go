package metrics

import "github.com/anteroom/anteroom/sync/observe"

// Counter is what a Collector reads at each scrape; *anteroom.Manager implements it. Counts is called on the scrape's
// goroutine, possibly by several scrapes together, and no lock of the Collector is held during the call.
type Counter interface {
	Counts() map[string]observe.Count
}

// Attach includes m's locks and waiters in held, waiters and their ages from the next scrape on. Attaching twice has
// no further effect. The Collector keeps m until Detach: a program that creates and closes Managers must detach them.
// m must be comparable, as pointers are, so that it can be found again. A nil m panics.
func (c *Collector) Attach(m Counter) {
	if m == nil {
		panic("anteroom/metrics: Attach(nil)")
	}
	c.sources.Attach(m)
}

// Detach removes m from the next scrape on. Counters keep what they counted. Detaching a Counter that is not attached
// has no effect.
func (c *Collector) Detach(m Counter) { c.sources.Detach(m) }
