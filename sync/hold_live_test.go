package anteroom_test

import (
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// A held lock has no goroutine of its own, though it is renewed and looked at.
func TestHeld_NoGoroutineForALock_Lab(t *testing.T) {
	const locks = 2000
	seen := &renewalCount{}
	m, _ := manager(t, testredis.Start(t).Client(t), anteroom.Config{
		Observer: hooks(seen), Defaults: anteroom.LockConfig{LeaseTime: 12 * time.Second, RenewalTime: time.Second, WatchdogPeriod: time.Second},
	})
	var holds []*anteroom.Hold
	hold := func(n int) {
		for range n {
			holds = append(holds, acquire(t, m.Mutex("k"+strconv.Itoa(len(holds)))))
		}
	}
	// Goroutines that carry a batch or a question, or linger after one, come and go: what
	// counts is that the number falls back to what it was.
	least := 1 << 30
	hold(10)
	eventually(t, "all that is started on demand runs", func() bool { return seen.n.Load() > 20 })
	for range 20 {
		least = min(least, runtime.NumGoroutine())
		time.Sleep(10 * time.Millisecond)
	}
	hold(locks)
	eventually(t, "every lock is renewed, and there are no more goroutines than with ten locks", func() bool {
		return seen.n.Load() > 2*locks && runtime.NumGoroutine() <= least
	})
	for _, h := range holds {
		ok(t, h.Release(bg))
	}
}

type renewalCount struct {
	n atomic.Int64
}

func (r *renewalCount) Renewed(string, observe.Outcome, time.Duration) { r.n.Add(1) }
