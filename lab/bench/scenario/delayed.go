package scenario

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/lab/bench/handover"
	"github.com/anteroom/anteroom/lab/bench/library"
	"github.com/anteroom/anteroom/lab/bench/measure"
	"github.com/anteroom/anteroom/lab/bench/proxy"
)

// OneWay is what the proxy adds to each direction: 1 ms per round trip in total.
const OneWay = 500 * time.Microsecond

// delayed is work with a Redis that is not on loopback.
func delayed() []Scenario {
	remote := append(slices.Clone(shared), library.Evalsha)
	return []Scenario{{
		Name: "alone-1ms", Title: "One goroutine, lock and unlock, Redis 1 ms away",
		Libraries: remote, Kind: library.Alone,
		Load: measure.Load{Goroutines: 1, Keys: 1},
		Warm: 100 * time.Millisecond, For: 300 * time.Millisecond, Rounds: 3,
		Measure: throughProxy(oneProcess),
		Targets: []Target{{Of: library.Anteroom, Figure: TimePerOp, Over: []string{library.Evalsha}, AtMost: 1.10}},
	}, {
		Name: "one-key-64-1ms", Title: "64 goroutines, one key, one process, Redis 1 ms away",
		Libraries: shared, Kind: library.Short,
		Load: measure.Load{Goroutines: 64, Keys: 1},
		Warm: 200 * time.Millisecond, For: 500 * time.Millisecond, Rounds: 3,
		Measure: throughProxy(oneProcess),
	}, {
		Name: "many-keys-1ms", Title: "64 goroutines, 64,000 keys, Redis 1 ms away",
		Libraries: remote, Kind: library.Alone,
		Load: measure.Load{Goroutines: 64, Keys: 64_000},
		Warm: 200 * time.Millisecond, For: 400 * time.Millisecond, Rounds: 3,
		Measure: throughProxy(oneProcess),
	}}
}

// oneProcess measures in this process.
func oneProcess(ctx context.Context, r Round) (measure.Figures, error) {
	load := r.Scenario.Load
	load.Prefix = r.Prefix
	f, failure, err := measure.Round(ctx, r.Addr, r.Library, load, r.Warm, r.For)
	if failure != "" {
		r.Note(failure)
	}
	return f, err
}

// throughProxy measures a round through a proxy of its own, and notes the time of a round trip without load.
func throughProxy(next func(context.Context, Round) (measure.Figures, error)) func(context.Context, Round) (measure.Figures, error) {
	return func(ctx context.Context, r Round) (f measure.Figures, err error) {
		p, err := proxy.Start(ctx, proxy.Plan{Target: r.Addr, OneWay: OneWay}, r.Warm+r.For+roundLimit)
		if err != nil {
			return nil, err
		}
		defer p.Close()
		r.Addr = p.Addr()
		trip, err := roundTrip(ctx, r.Addr)
		if err != nil {
			return nil, err
		}
		if f, err = next(ctx, r); err != nil {
			return nil, err
		}
		if _, ok := f[handover.RoundTrip]; !ok {
			f[handover.RoundTrip] = trip
		}
		return f, nil
	}
}

// roundTrip returns the median of some PINGs, in microseconds.
func roundTrip(ctx context.Context, addr string) (float64, error) {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer rdb.Close()
	var took []time.Duration
	for range 31 {
		before := time.Now()
		if err := rdb.Ping(ctx).Err(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(before))
	}
	slices.Sort(took)
	return float64(took[len(took)/2].Nanoseconds()) / 1e3, nil
}
