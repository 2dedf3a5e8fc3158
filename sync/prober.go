package anteroom

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/watchdog"
)

// prober lets the watchdog ask Redis.
type prober struct {
	m       *Manager
	answers []watchdog.Status // to the last question, which is over when the next one is put
}

// A script blocks its server while it runs, so a question is about as many holds as a
// renewal is, and a few of them are under way at once for one shard.
const (
	statusBatch    = renewal.DefaultBatchSize
	statusInFlight = renewal.DefaultInFlight
)

func (p *prober) Status(ctx context.Context, holds []watchdog.Facts) []watchdog.Status {
	byShard := map[string][]int{}
	for i, f := range holds {
		shard := p.m.wire.Shard(f.Key)
		byShard[shard] = append(byShard[shard], i)
	}
	if cap(p.answers) < len(holds) {
		p.answers = make([]watchdog.Status, len(holds))
	}
	answers := p.answers[:len(holds)] // each is written by one goroutine
	clear(answers)
	var wg sync.WaitGroup
	for _, at := range byShard {
		batches := slices.Collect(slices.Chunk(at, statusBatch))
		var next atomic.Int64
		work := func() {
			for i := next.Add(1); i <= int64(len(batches)); i = next.Add(1) {
				p.ask(ctx, holds, batches[i-1], answers)
			}
		}
		if len(byShard) == 1 && len(batches) == 1 {
			work()
			continue
		}
		for range min(len(batches), statusInFlight) {
			wg.Go(work)
		}
	}
	wg.Wait()
	return answers
}

// ask asks one shard about some of the holds.
func (p *prober) ask(ctx context.Context, holds []watchdog.Facts, some []int, answers []watchdog.Status) {
	queries := p.m.queries.take()
	defer p.m.queries.give(queries)
	for _, i := range some {
		*queries = append(*queries, lettucecompat.Query{Key: holds[i].Key, Field: p.m.field(holds[i].ID)})
	}
	for j, r := range p.m.wire.Status(ctx, *queries, 0) {
		answers[some[j]] = watchdog.Status{
			Answered: r.Outcome == lettucecompat.OutcomeOK || r.Outcome == lettucecompat.OutcomeGone,
			Present:  r.Outcome == lettucecompat.OutcomeOK, Gone: r.Outcome == lettucecompat.OutcomeGone,
			Count: r.Count, Fields: r.Fields, TTL: r.TTL, Err: r.Err,
		}
	}
}

func (p *prober) Ping(ctx context.Context) (time.Duration, error) { return p.m.wire.Ping(ctx, 0) }

func (p *prober) ProbeDelivery(ctx context.Context) (time.Duration, error) {
	return p.m.wire.Probe(ctx)
}
