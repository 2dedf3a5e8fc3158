package anteroom

import (
	"context"
	"sync"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/renewal"
)

// sender lets the RenewalManager talk to Redis.
type sender struct{ m *Manager }

func (s sender) RenewBatch(ctx context.Context, _ string, items []renewal.Item, at time.Time) []renewal.Result {
	// The batch has one time limit (see startLease) and came from one node, but a slot
	// may have moved since a lease was added.
	end := at.Add(s.m.cfg.commandTimeout(items[0].Lease))
	results := make([]renewal.Result, len(items))
	if !s.m.wire.Multi() {
		s.renew(ctx, items, end, results, func(i int) int { return i })
		return results
	}
	groups := map[string][]int{}
	for i, it := range items {
		shard := s.m.wire.Shard(it.Key)
		groups[shard] = append(groups[shard], i)
	}
	var wg sync.WaitGroup
	for _, members := range groups {
		wg.Go(func() {
			some := make([]renewal.Item, len(members))
			for j, i := range members {
				some[j] = items[i]
			}
			s.renew(ctx, some, end, results, func(j int) int { return members[j] })
		})
	}
	wg.Wait()
	return results
}

// renew asks one shard until end, the time limit of its batch, and sends nothing after it:
// how long a renewal may be under way after its lease has ended is what field.burn counts
// on. The result of item j belongs at place(j).
func (s sender) renew(ctx context.Context, items []renewal.Item, end time.Time, results []renewal.Result, place func(j int) int) {
	left := time.Until(end)
	if left <= 0 { // this goroutine has waited for a processor for so long
		for j := range items {
			results[place(j)].Err = lettucecompat.ErrTimeout
		}
		return
	}
	batch := s.m.renewals.take()
	for _, it := range items {
		r := lettucecompat.Renewal{Key: it.Key, Field: it.Field, Lease: it.Lease, Reacquire: it.Reacquire}
		if it.Reacquire {
			r.RecordTime = s.m.recordTime(it.Field)
		}
		*batch = append(*batch, r)
	}
	for j, r := range s.m.wire.Renew(ctx, *batch, left) {
		results[place(j)] = renewal.Result{
			Renewed: r.Outcome == lettucecompat.OutcomeOK, Reacquired: r.Reacquired,
			Gone: r.Outcome == lettucecompat.OutcomeGone, SentAt: r.SentAt, Err: r.Err,
		}
	}
	s.m.renewals.give(batch)
}

// recordTime is FenceRecordTime of the lock that field holds; 0, the default, where the
// grant has ended meanwhile.
func (m *Manager) recordTime(field string) time.Duration {
	if _, n, ok := lettucecompat.ParseField(field); ok {
		if g := m.grant(n); g != nil {
			return g.e.cfg.FenceRecordTime
		}
	}
	return 0
}

// lists are slices that serve one batch after the other. The wire keeps none of them.
type lists[T any] struct{ sync.Pool }

func (l *lists[T]) take() *[]T {
	if list, ok := l.Get().(*[]T); ok {
		return list
	}
	return new([]T)
}

func (l *lists[T]) give(list *[]T) {
	clear(*list)
	*list = (*list)[:0]
	l.Put(list)
}
