package lock

import (
	"context"
	"sync"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/sync/internal/conversation"
)

// This file is how leases are renewed, in batches: those of units by a script that names the grant and says whether another client
// waits.

// sender is the renewal.Sender.
type sender struct{ l *Locks }

// RenewBatch renews the leases of one shard. A slot may have moved since the batch was put together, so it asks by
// shard again.
func (s sender) RenewBatch(ctx context.Context, _ string, items []renewal.Item, at time.Time) []renewal.Result {
	l := s.l
	end := at.Add(l.cfg.Timeout(items[0].Lease)) // of all: their shard has the time limit in its name
	results := make([]renewal.Result, len(items))
	shards := map[string][]int{}
	var all sync.WaitGroup
	for i, it := range items {
		shard := l.wire.Shard(it.Key)
		shards[shard] = append(shards[shard], i)
	}
	for _, some := range shards {
		all.Go(func() {
			left := time.Until(end)
			if left <= 0 { // it has waited for a processor for so long
				for _, i := range some {
					results[i].Err = lettucecompat.ErrTimeout
				}
				return
			}
			if g, is := items[0].Owner.(*Held); is && g.u != nil { // and all others are
				grants := make([]*Held, len(some))
				for j, i := range some {
					grants[j] = items[i].Owner.(*Held)
				}
				for j, r := range l.renewUnits(ctx, grants, left) {
					results[some[j]] = r
				}
				return
			}
			batch := make([]lettucecompat.Renewal, len(some))
			for j, i := range some {
				batch[j] = lettucecompat.Renewal{Key: items[i].Key, Field: items[i].Field, Lease: items[i].Lease}
			}
			for j, r := range l.wire.Renew(ctx, batch, left) {
				results[some[j]] = renewal.Result{
					Renewed: r.Outcome == lettucecompat.OutcomeOK, Gone: r.Outcome == lettucecompat.OutcomeGone, SentAt: r.SentAt, Err: r.Err,
				}
			}
		})
	}
	all.Wait()
	return results
}

// asked is what was known when a renewal was sent.
type asked struct {
	g       *Held
	units   int64
	last    uint64 // command
	open    bool   // that was unanswered
	deleted uint64 // see units.deleted
}

// renewUnits renews the units of some grants of one shard, at most a batch of them, and takes in the answers. A grant that has
// ended has an empty result.
func (l *Locks) renewUnits(ctx context.Context, grants []*Held, timeout time.Duration) []renewal.Result {
	results := make([]renewal.Result, len(grants))
	batch, of, questions := make([]lettucecompat.Renewal, 0, len(grants)), make([]int, 0, len(grants)), make([]asked, 0, len(grants))
	for i, g := range grants {
		if q, is := g.asks(); is {
			batch = append(batch, lettucecompat.Renewal{Key: g.k.name, Grant: g.n, Units: q.units, Lease: g.k.set.Lease.For})
			of, questions = append(of, i), append(questions, q)
		}
	}
	for j, r := range l.wire.Renew(ctx, batch, timeout) {
		results[of[j]] = questions[j].answered(r)
	}
	return results
}

// asks returns what a renewal of g is about; false: there is nothing to renew.
func (g *Held) asks() (asked, bool) {
	k := g.k
	k.mu.Lock()
	defer k.mu.Unlock()
	return asked{g, k.conv.Units, k.conv.LastCommand().N, k.conv.Unanswered(), k.u.deleted}, k.usableLocked() && k.conv.Grant.Record == g.n
}

// answered takes in the answer to a renewal. It means nothing for units that a command was sent about since, whose own answer
// says what has become of them; but what Redis has renewed lasts.
func (q *asked) answered(r lettucecompat.RenewReply) renewal.Result {
	g, k := q.g, q.g.k
	res := renewal.Result{Renewed: r.Outcome == lettucecompat.OutcomeOK, Gone: r.Outcome == lettucecompat.OutcomeGone, SentAt: r.SentAt, Err: r.Err}
	k.mu.Lock()
	same := k.usableLocked() && k.conv.Grant.Record == g.n
	settled := same && k.conv.LastCommand().N == q.last
	switch {
	case res.Gone:
		res.Gone = settled
	case res.Renewed && same:
		g.lease.Extend(r.SentAt, k.set.Lease.For)
		if k.u.deleted == q.deleted { // whoever has said so was wrong
			k.u.deleted = 0
		}
		if settled && !q.open {
			k.u.contention = k.u.contention.Answered(q.last, r.Contended)
			if r.Units > q.units {
				k.handleLocked(conversation.Event{Kind: conversation.Surplus}, 0, k.l.now())
			}
		}
		k.q.Renewed(k.contendedLocked(), g.deadline())
	}
	k.mu.Unlock()
	k.sendAsync()
	return res
}
