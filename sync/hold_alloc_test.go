package anteroom

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom/sync/observe"
)

// Passing the lock from goroutine to goroutine allocates its new owner, and nothing to queue
// or to park. The turn does not end meanwhile, since that asks Redis. A collection, and the race
// detector, make sync.Pool forget a part of what it is given.
func TestHandOff_AllocatesItsOwnerOnly(t *testing.T) {
	const goroutines, warm, count = 8, 1000, 30000
	for name, fair := range map[string]bool{"fair": true, "non-fair": false} {
		t.Run(name, func(t *testing.T) {
			m := insideManager(t, Config{})
			defer func() { _ = m.Close(context.Background()) }()
			mu, err := m.NewMutex(LockConfig{Key: "k", Fair: fair, MaxHandoffs: 65535, MaxHandoffTime: time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			passed := 0
			enough := false
			pass := func() (more bool) {
				mu.Lock()
				defer mu.Unlock()
				if passed++; passed == warm {
					runtime.ReadMemStats(&before)
				}
				if passed == warm+count {
					runtime.ReadMemStats(&after)
					enough = true
				}
				return !enough
			}
			mu.Lock() // until all wait, so that nobody ever finds the queue empty
			var wg sync.WaitGroup
			for range goroutines {
				wg.Go(func() {
					for pass() {
					}
				})
			}
			for e := mu.find(); e.Queue().Len() < goroutines; {
				runtime.Gosched()
			}
			mu.Unlock()
			wg.Wait()
			bound := 1.5 // collections that others cause
			if raceEnabled {
				bound = 2
			}
			if each := float64(after.Mallocs-before.Mallocs) / count; each > bound {
				t.Errorf("%.2f allocations for each acquisition, want at most %v", each, bound)
			}
		})
	}
}

// idleTracer has every hook, and does nothing.
var idleTracer = &observe.Tracer{
	StartAcquire: func(ctx context.Context, _ observe.AcquireStart) (context.Context, func(observe.AcquireEnd)) {
		return ctx, nil
	},
	StartRelease: func(context.Context, observe.ReleaseStart) func(observe.ReleaseEnd) { return nil },
	Lost:         func(context.Context, observe.Event) {},
}

// Without a Tracer a hold that is handed on costs what it did before there were any: the
// possession and its Hold. With one that does nothing it is two more, what the hook needs.
func TestTrace_NoTracerAllocatesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		tracer *observe.Tracer
		bound  float64
	}{"none": {nil, 2}, "one that does nothing": {idleTracer, 3}} {
		t.Run(name, func(t *testing.T) {
			m := insideManager(t, Config{Tracer: c.tracer})
			defer func() { _ = m.Close(context.Background()) }()
			mu, err := m.NewMutex(LockConfig{Key: "k", MaxHandoffs: 65535, MaxHandoffTime: time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			each := allocationsOfHolds(t, mu)
			if raceEnabled {
				c.bound += 2 // what sync.Pool forgets
			}
			if each > c.bound+0.5 {
				t.Errorf("%.2f allocations for each acquisition, want at most %v", each, c.bound)
			}
		})
	}
}

// allocationsOfHolds returns how many allocations a hold costs that is handed on.
func allocationsOfHolds(t *testing.T, mu *Mutex) float64 {
	t.Helper()
	const goroutines, warm, count = 8, 1000, 20000
	ctx := context.Background()
	var before, after runtime.MemStats
	passed := 0
	pass := func() (more bool) {
		h, err := mu.Acquire(ctx)
		if err != nil {
			t.Error(err)
			return false
		}
		if passed++; passed == warm {
			runtime.ReadMemStats(&before)
		}
		if passed == warm+count {
			runtime.ReadMemStats(&after)
		}
		more = passed < warm+count
		if err := h.Release(ctx); err != nil {
			t.Error(err)
		}
		return more
	}
	first, err := mu.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for pass() {
			}
		})
	}
	for e := mu.find(); e.Queue().Len() < goroutines; {
		runtime.Gosched()
	}
	if err := first.Release(ctx); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	return float64(after.Mallocs-before.Mallocs) / count
}
