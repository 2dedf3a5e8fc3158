package lettucecompat_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// BenchmarkPair against BenchmarkBare is the price of this package over two bare EVALSHA
// calls of the same size, on the same kind of client.
func BenchmarkPair(b *testing.B) {
	for _, bc := range []struct {
		name     string
		option   func(*redis.Options)
		mayLeave bool
	}{{"cannot-leave", unchanged, false}, {"may-leave", unchanged, true}} {
		b.Run(bc.name, func(b *testing.B) {
			c := newClient(b, onReal(b, nil).real.Client(b, bc.option))
			caller := ctx
			if bc.mayLeave {
				cancellable, cancel := context.WithCancel(ctx)
				defer cancel()
				caller = cancellable
			}
			b.ReportAllocs()
			for n := uint64(0); b.Loop(); n++ {
				r, back := asks("k", n), gives("k", n)
				if c.Do(caller, r).Outcome != ok {
					b.Fatal("not acquired")
				}
				if c.Do(caller, back).Outcome != ok {
					b.Fatal("not released")
				}
			}
		})
	}
}

func BenchmarkBare(b *testing.B) {
	for _, bc := range []struct {
		name   string
		option func(*redis.Options)
	}{{"default", unchanged}, {"mindful", mindful}} {
		b.Run(bc.name, func(b *testing.B) {
			rdb := onReal(b, nil).real.Client(b, bc.option)
			message := lettucecompat.ReleaseMessage("k", me(1), time.Now())
			b.ReportAllocs()
			for b.Loop() {
				if !bare(rdb, message) {
					b.Fatal("failed")
				}
			}
		})
	}
}

// bare sends an acquire and a release as two bare EVALSHA of the same size.
func bare(rdb *redis.Client, message string) bool {
	keys, n := []string{"k", lineOfK}, strconv.FormatUint(first, 10)
	asked := stateScript.Run(ctx, rdb, keys, "me", n, n, "0 0 1", "2000", "10000 10000 - ABCDEFGHIJKLMNOPQRSTUVWXYZ")
	given := stateScript.Run(ctx, rdb, keys, "me", n, n, "1 0 0", "2000", "10000 10000 - ABCDEFGHIJKLMNOPQRSTUVWXYZ", message, "0 1")
	return asked.Val() == int64(1) && given.Val() == int64(0)
}

var stateScript = redis.NewScript(lettucecompat.StateSource)

func unchanged(*redis.Options) {}

// BenchmarkManyKeys is what many callers get done in parallel, each on a key of its own: pairs a
// second, and the connections that it took.
func BenchmarkManyKeys(b *testing.B) {
	for _, delay := range []time.Duration{0, time.Millisecond, 5 * time.Millisecond} {
		for _, option := range []struct {
			name string
			set  func(*redis.Options)
		}{{"default", unchanged}, {"mindful", mindful}} {
			for _, callers := range []int{2, 4, 16, 64} {
				b.Run(fmt.Sprintf("delay=%v/%s/callers=%d", delay, option.name, callers), func(b *testing.B) {
					manyKeys(b, callers, delay, option.set)
				})
			}
		}
	}
}

func manyKeys(b *testing.B, callers int, delay time.Duration, option func(*redis.Options)) {
	bed := onReal(b, nil, option, func(o *redis.Options) { o.PoolSize = 100 })
	rdb := bed.real.Client(b, option)
	if delay > 0 {
		rdb = bed.rdb
	}
	c := newClient(b, rdb)
	warm(b, c)
	bed.net.Delay(delay)
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for range callers {
		wg.Go(func() {
			key := lettucecompat.NewClientID("")
			for n := uint64(0); left.Add(-1) >= 0; n++ {
				ask, back := asks(key, n), gives(key, n)
				if c.Do(ctx, ask).Outcome != ok || c.Do(ctx, back).Outcome != ok {
					b.Error("failed")
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pairs/s")
	if delay > 0 {
		b.ReportMetric(float64(bed.net.Open()), "conns")
	}
}
