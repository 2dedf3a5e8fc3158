package anteroom

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"
)

// Passing the lock from goroutine to goroutine allocates nothing: neither to queue, nor
// to park, nor to own. The turn does not end meanwhile, since that asks Redis. The race
// detector makes sync.Pool forget a part of what it is given, so there the bound is one
// allocation and not a hundredth of one.
func TestHandOff_AllocatesNothing(t *testing.T) {
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
			for e := mu.find(); e.q.Len() < goroutines; {
				runtime.Gosched()
			}
			mu.Unlock()
			wg.Wait()
			bound := 0.01
			if raceEnabled {
				bound = 1
			}
			if each := float64(after.Mallocs-before.Mallocs) / count; each > bound {
				t.Errorf("%.2f allocations for each acquisition, want at most %v", each, bound)
			}
		})
	}
}
