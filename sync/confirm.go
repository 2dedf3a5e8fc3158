package anteroom

import (
	"context"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/renewal"
)

// confirmer is the renewal.Sender of Manager.line: it says to Redis that places in line are
// wanted still, and finds calls whose message was lost.
type confirmer struct{ m *Manager }

// RenewBatch confirms places of one shard.
func (c confirmer) RenewBatch(ctx context.Context, _ string, items []renewal.Item, at time.Time) []renewal.Result {
	end := at.Add(c.m.cfg.commandTimeout(items[0].Lease))
	results := make([]renewal.Result, len(items)) // each is written by one goroutine
	c.m.eachShard(len(items), func(i int) string { return items[i].Key }, func(some []int) {
		c.confirm(ctx, items, some, end, results)
	})
	return results
}

// confirm asks one shard about some of the items.
func (c confirmer) confirm(ctx context.Context, items []renewal.Item, some []int, end time.Time, results []renewal.Result) {
	batch := make([]lettucecompat.Place, 0, len(some))
	places := make([]*place, 0, len(some))
	attempts := make([]attempt, 0, len(some))
	at := make([]int, 0, len(some))
	for _, i := range some {
		_, n, _ := lettucecompat.ParseField(items[i].Field)
		g := c.m.wants(n)
		if g == nil {
			continue // it is held meanwhile, or given up
		}
		g.e.mu.Lock()
		if p := g.place; p != nil {
			a := p.next()
			batch = append(batch, lettucecompat.Place{Key: items[i].Key, Field: items[i].Field, Attempt: a.n})
			places, attempts, at = append(places, p), append(attempts, a), append(at, i)
		}
		g.e.mu.Unlock()
	}
	left := time.Until(end)
	if left <= 0 || len(batch) == 0 {
		return
	}
	for j, r := range c.m.wire.Confirm(ctx, batch, left) {
		results[at[j]] = places[j].confirmed(attempts[j], r)
	}
}

// confirmed notes the answer to the confirmation a.
func (p *place) confirmed(a attempt, r lettucecompat.PlaceReply) renewal.Result {
	e := p.g.e
	switch {
	case r.Outcome == lettucecompat.OutcomeOK && r.Called:
		// The message is lost, or late. The driver asks for the grant's deadline.
		e.lookAgain()
		return renewal.Result{Renewed: true, SentAt: r.SentAt}
	case r.Outcome == lettucecompat.OutcomeOK:
		e.mu.Lock()
		wasNear, called := p.near(), e.m.wire.Calls(p.holder)
		if p.g.place == p {
			p.stands(a, r.Ahead, r.Holder, r.TTL)
			e.answer.Store(p.answer())
		}
		if called != e.m.wire.Calls(p.holder) {
			e.look = true // the driver listens for the holder's release from now on, or no more
		}
		// One that hears no calls any more is to ask when the answer says so: see due.
		changed := wasNear != p.near() || e.look || !e.m.wire.Listening()
		e.mu.Unlock()
		if changed {
			e.recall.ring()
		}
		return renewal.Result{Renewed: true, SentAt: r.SentAt}
	case r.Outcome == lettucecompat.OutcomeGone:
		e.mu.Lock()
		defer e.mu.Unlock()
		if len(p.sent) > 0 && a.n < p.sent[0].n {
			return renewal.Result{Renewed: true, SentAt: r.SentAt} // it has stood anew since
		}
		p.gone = true
		return renewal.Result{Gone: true}
	}
	if lettucecompat.Permanent(r.Err) {
		e.lookAgain() // an attempt is answered likewise, and tells those who wait
	}
	return renewal.Result{SentAt: r.SentAt, Err: r.Err}
}
