package anteroom

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
	"github.com/anteroom/anteroom/sync/observe"
)

// trackedBy is how many fields the connections of m watch, and how many grants are too young for that.
func trackedBy(m *Manager) (held, young int) {
	all := reflect.ValueOf(m.wire).Elem().FieldByName("tracking").Elem().FieldByName("all")
	for _, key := range all.MapKeys() {
		held += all.MapIndex(key).Elem().FieldByName("held").Len()
	}
	return held, reflect.ValueOf(m.locks).Elem().FieldByName("young").Len()
}

// endAll closes them: none has anything to wait for, and nothing stays tracked.
func endAll(t *testing.T, managers []*Manager) {
	t.Helper()
	time.Sleep(100 * time.Millisecond) // the last grants are no longer young
	for _, m := range managers {
		ctx, cancel := context.WithTimeout(context.Background(), pace.Hang) // shorter than any lease
		if err := m.Close(ctx); err != nil {
			t.Error(err)
		}
		cancel()
		if held, young := trackedBy(m); held+young > 0 {
			t.Errorf("%d tracked, %d young", held, young)
		}
	}
}

// Processes whose locks linger and are tracked do everything with them but remove them: nobody is notified of a loss, there is one
// owner at a time, nothing stays tracked, and Close has nothing to wait for.
func TestLinger_LingerAndTrackingTogether_Lab(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	ctx := context.Background()
	var lost atomic.Int32
	var all sync.WaitGroup
	var managers []*Manager
	const keys = 6
	var inside [keys]atomic.Int32
	end := time.Now().Add(5 * time.Second)
	var took, refused atomic.Int32
	for range 3 {
		m, err := NewManager(s.Client(t), Config{
			Defaults: LockConfig{Linger: 40 * time.Millisecond, LeaseTime: 5 * pace.Hang},
			OnEvent: func(e observe.Event) {
				if e.Kind == observe.EventLost || e.Kind == observe.EventAlert {
					lost.Add(1)
					t.Error(e)
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		managers = append(managers, m)
		for range 4 {
			all.Go(func() {
				for n := 0; time.Now().Before(end); n++ {
					i := rand.IntN(keys)
					mu := m.Mutex(fmt.Sprint("k", i))
					var h *Hold
					var err error
					ctx, cancel := context.WithTimeout(ctx, time.Duration(rand.IntN(200))*time.Millisecond)
					switch rand.IntN(8) {
					case 0, 1:
						h, err = mu.TryAcquire(ctx)
					case 2:
						h, err = mu.Acquire(ctx, Lease(3*pace.Hang))
					default:
						h, err = mu.Acquire(ctx)
					}
					cancel()
					if err != nil {
						refused.Add(1)
						continue
					}
					took.Add(1)
					if inside[i].Add(1) > 1 {
						t.Error("two owners")
					}
					if rand.IntN(3) == 0 {
						time.Sleep(time.Duration(rand.IntN(45)) * time.Millisecond)
					}
					if rand.IntN(10) == 0 {
						_ = h.Extend(context.Background(), 6*pace.Hang)
					}
					inside[i].Add(-1)
					if err := h.Release(context.Background()); err != nil {
						t.Errorf("release: %v", err)
					}
					if rand.IntN(4) == 0 {
						one, err := m.Mutex(fmt.Sprint("once", rand.Int())).Acquire(context.Background())
						if err != nil {
							t.Error(err)
							continue
						}
						if rand.IntN(2) == 0 {
							time.Sleep(time.Duration(18+rand.IntN(6)) * time.Millisecond)
						}
						_ = one.Release(context.Background())
					}
					time.Sleep(time.Duration(rand.IntN(60)) * time.Millisecond)
				}
			})
		}
	}
	all.Wait()
	t.Logf("%d took it, %d did not", took.Load(), refused.Load())
	rdb := s.Client(t)
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) { // long before any lease ends
		kept, left := 0, rdb.Keys(ctx, "*").Val()
		for _, m := range managers {
			kept += len(m.locks.All())
		}
		if kept+len(left) == 0 {
			break
		}
		if time.Since(began) > pace.Hang {
			t.Fatalf("%d keys are kept, and left are %v", kept, left)
		}
	}
	endAll(t, managers)
}

// The same with a long Linger, removals, tickets and tries: nobody waits for what lingers, and nothing is left at the end.
func TestLinger_RemovalsBesideLinger_Lab(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	ctx := context.Background()
	rdb := s.Client(t)
	var all sync.WaitGroup
	var managers []*Manager
	const keys = 4
	end := time.Now().Add(5 * time.Second)
	var took, late atomic.Int32
	for range 3 {
		m, err := NewManager(s.Client(t), Config{Defaults: LockConfig{Linger: 3 * pace.Hang, LeaseTime: 10 * pace.Hang, WatchdogPeriod: pace.Hang}})
		if err != nil {
			t.Fatal(err)
		}
		managers = append(managers, m)
		for g := range 4 {
			all.Go(func() {
				for time.Now().Before(end) {
					key := fmt.Sprint("k", rand.IntN(keys))
					mu := m.Mutex(key)
					ctx, cancel := context.WithTimeout(ctx, 2*pace.Hang)
					begin := time.Now()
					var h *Hold
					var err error
					switch n := rand.IntN(12); {
					case n < 2:
						h, err = mu.TryAcquire(ctx)
					case n == 2:
						h, err = mu.Seize(ctx)
					case n == 3 && g == 0:
						_, _ = m.ForceRelease(ctx, key)
						cancel()
						continue
					case n == 4 && g == 0:
						rdb.Del(ctx, key)
						cancel()
						continue
					default:
						h, err = mu.Acquire(ctx)
					}
					if d := time.Since(begin); d > pace.Hang {
						late.Add(1)
						t.Errorf("%s: %v after %v", key, err, d)
					}
					cancel()
					if err != nil {
						continue
					}
					took.Add(1)
					if rand.IntN(3) == 0 {
						time.Sleep(time.Duration(rand.IntN(45)) * time.Millisecond)
					}
					if rand.IntN(8) == 0 {
						if ticket, err := h.Detach(context.Background(), 5*time.Second); err == nil {
							if rand.IntN(4) > 0 {
								if h, err = mu.Resume(context.Background(), ticket); err == nil {
									_ = h.Release(context.Background())
								}
							} else {
								rdb.Del(context.Background(), key)
							}
							continue
						}
					}
					_ = h.Release(context.Background())
					time.Sleep(time.Duration(rand.IntN(60)) * time.Millisecond)
				}
			})
		}
	}
	all.Wait()
	t.Logf("%d took it, %d late", took.Load(), late.Load())
	endAll(t, managers)
	for i := range keys {
		if n := rdb.HKeys(ctx, fmt.Sprint("k", i)).Val(); len(n) > 0 {
			t.Errorf("left: %v", n)
		}
	}
}
