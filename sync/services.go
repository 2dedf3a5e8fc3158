package anteroom

import (
	"context"
	"slices"
	"sync"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/watchdog"
)

// services is all that renewal and watchdog see of a Manager: a renewal.Sender, and the
// watchdog's Source, Prober and Actor. This file has their way to Redis, watched.go the rest.
type services struct {
	m       *Manager
	answers []watchdog.Status // to the last question, which is over when the next one is put
}

// A script blocks its server while it runs, so a question is about as many holds as a
// renewal is, and a few of them are under way at once for one shard.
const (
	statusBatch    = renewal.DefaultBatchSize
	statusInFlight = renewal.DefaultInFlight
)

// byShard groups the numbers below n by the server that has the key of each now.
func (m *Manager) byShard(n int, key func(i int) string) map[string][]int {
	shards := map[string][]int{}
	for i := range n {
		shard := m.wire.Shard(key(i))
		shards[shard] = append(shards[shard], i)
	}
	return shards
}

// eachShard calls ask with the numbers below n of each server, all at once, and waits: a slot
// may have moved since the items of a batch were put together.
func (m *Manager) eachShard(n int, key func(i int) string, ask func(some []int)) {
	var wg sync.WaitGroup
	for _, some := range m.byShard(n, key) {
		wg.Go(func() { ask(some) })
	}
	wg.Wait()
}

// RenewBatch renews leases of one shard.
func (s *services) RenewBatch(ctx context.Context, _ string, items []renewal.Item, at time.Time) []renewal.Result {
	end := at.Add(s.m.cfg.commandTimeout(items[0].Lease)) // that of all: see startLease
	results := make([]renewal.Result, len(items))         // each is written by one goroutine
	s.m.eachShard(len(items), func(i int) string { return items[i].Key }, func(some []int) { s.renew(ctx, items, some, end, results) })
	return results
}

// renew asks one shard for some of the items until end, the time limit of its batch, and
// sends nothing after it: how long a renewal may be under way after its lease has ended is
// what field.burn counts on.
func (s *services) renew(ctx context.Context, items []renewal.Item, some []int, end time.Time, results []renewal.Result) {
	left := time.Until(end)
	if left <= 0 { // this goroutine has waited for a processor for so long
		for _, i := range some {
			results[i].Err = lettucecompat.ErrTimeout
		}
		return
	}
	batch := make([]lettucecompat.Renewal, len(some))
	for j, i := range some {
		it := items[i]
		batch[j] = lettucecompat.Renewal{Key: it.Key, Field: it.Field, Lease: it.Lease, Reacquire: it.Reacquire}
		if it.Reacquire {
			batch[j].RecordTime = s.m.recordTime(it.Field)
		}
	}
	for j, r := range s.m.wire.Renew(ctx, batch, left) {
		results[some[j]] = renewal.Result{
			Renewed: r.Outcome == lettucecompat.OutcomeOK, Reacquired: r.Reacquired,
			Gone: r.Outcome == lettucecompat.OutcomeGone, SentAt: r.SentAt, Err: r.Err,
		}
	}
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

// Status asks Redis about holds, all shards at once: one that hangs keeps no other waiting.
func (s *services) Status(ctx context.Context, holds []watchdog.Facts) []watchdog.Status {
	s.answers = slices.Grow(s.answers[:0], len(holds))[:len(holds)] // each is written by one goroutine
	clear(s.answers)
	var wg sync.WaitGroup
	for _, some := range s.m.byShard(len(holds), func(i int) string { return holds[i].Key }) {
		batches := make(chan []int, len(some)/statusBatch+1)
		for batch := range slices.Chunk(some, statusBatch) {
			batches <- batch
		}
		close(batches)
		for range min(len(batches), statusInFlight) {
			wg.Go(func() {
				for batch := range batches {
					s.ask(ctx, holds, batch)
				}
			})
		}
	}
	wg.Wait()
	return s.answers
}

// ask asks one shard about some of the holds.
func (s *services) ask(ctx context.Context, holds []watchdog.Facts, some []int) {
	queries := make([]lettucecompat.Query, len(some))
	for j, i := range some {
		queries[j] = lettucecompat.Query{Key: holds[i].Key, Field: s.m.field(holds[i].ID)}
	}
	for j, r := range s.m.wire.Status(ctx, queries, 0) {
		s.answers[some[j]] = watchdog.Status{
			Answered: r.Outcome == lettucecompat.OutcomeOK || r.Outcome == lettucecompat.OutcomeGone,
			Present:  r.Outcome == lettucecompat.OutcomeOK, Gone: r.Outcome == lettucecompat.OutcomeGone,
			Count: r.Count, Fields: r.Fields, TTL: r.TTL, Err: r.Err,
		}
	}
}

// Ping asks whether Redis answers.
func (s *services) Ping(ctx context.Context) (time.Duration, error) { return s.m.wire.Ping(ctx, 0) }

// ProbeDelivery asks whether messages arrive.
func (s *services) ProbeDelivery(ctx context.Context) (time.Duration, error) {
	return s.m.wire.Probe(ctx)
}
