package lock

import (
	"context"
	"slices"
	"sync"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/renewal"
)

// A script blocks its server while it runs, so a question is about as many grants as a
// renewal is, and a few of them are under way together for one shard.
const (
	statusBatch    = renewal.DefaultBatchSize
	statusInFlight = renewal.DefaultInFlight
)

// Status asks Redis whether grants are there, all shards together: one that hangs keeps no other waiting. It calls each for every grant that is
// not nil, by several goroutines, with the answer about grants[i]. Only a renewal shows whether units are still those of the grant: if that
// has ended the answer is OutcomeFailed.
func (l *Locks) Status(ctx context.Context, grants []*Held, each func(i int, r lettucecompat.StatusReply)) {
	type part struct {
		shard string
		units bool
	}
	parts := map[part][]int{}
	for i, g := range grants {
		if g != nil {
			p := part{l.wire.Shard(g.k.name), g.u != nil}
			parts[p] = append(parts[p], i)
		}
	}
	var all sync.WaitGroup
	for p, some := range parts {
		batches := make(chan []int, len(some)/statusBatch+1)
		for batch := range slices.Chunk(some, statusBatch) {
			batches <- batch
		}
		close(batches)
		for range min(len(batches), statusInFlight) {
			all.Go(func() {
				for batch := range batches {
					l.askStatus(ctx, p.units, grants, batch, each)
				}
			})
		}
	}
	all.Wait()
}

// askStatus is Status for a batch of one shard, all of them of units or none.
func (l *Locks) askStatus(ctx context.Context, units bool, grants []*Held, batch []int, each func(i int, r lettucecompat.StatusReply)) {
	if !units {
		queries := make([]lettucecompat.Query, len(batch))
		for j, i := range batch {
			queries[j] = lettucecompat.Query{Key: grants[i].k.name, Field: grants[i].Field()}
		}
		for j, r := range l.wire.Status(ctx, queries, 0) {
			each(batch[j], r)
		}
		return
	}
	some := make([]*Held, len(batch))
	for j, i := range batch {
		some[j] = grants[i]
	}
	for j, r := range l.renewUnits(ctx, some, 0) {
		s := lettucecompat.StatusReply{Outcome: lettucecompat.OutcomeFailed, Count: 1, Fields: 1, TTL: some[j].Terms().For, Err: r.Err}
		switch {
		case r.Renewed:
			s.Outcome = lettucecompat.OutcomeOK
		case r.Gone:
			s.Outcome = lettucecompat.OutcomeGone
		}
		each(batch[j], s)
	}
}
