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

// services is all that the watchdog sees of a Manager: its Source, Prober and Actor. This file has their way to Redis,
// watched.go has the others.
type services struct {
	m       *Manager
	answers []watchdog.Status // to the last question, which is over when the next one is put
}

// A script blocks its server while it runs, so a question is about as many holds as a
// renewal is, and a few of them are under way together for one shard.
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

// Status asks Redis about holds, all shards together: one that hangs keeps no other waiting.
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
