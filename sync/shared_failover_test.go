package anteroom_test

import (
	"errors"
	"testing"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
)

// A failover lacks the last renewal: Redis has the units, until an earlier moment. They are held, and renewed from then on.
func TestShared_AFailoverThatLacksARenewal(t *testing.T) {
	for name, take := range map[string]func(m *anteroom.Manager) (*anteroom.Hold, error){
		"a Mutex":  func(m *anteroom.Manager) (*anteroom.Hold, error) { return m.Mutex("k").Acquire(bg) },
		"a reader": func(m *anteroom.Manager) (*anteroom.Hold, error) { return m.RWMutex("k").RAcquire(bg) },
		"a writer": func(m *anteroom.Manager) (*anteroom.Hold, error) { return m.RWMutex("k").Acquire(bg) },
		"permits":  func(m *anteroom.Manager) (*anteroom.Hold, error) { return m.Semaphore("k", 5).Acquire(bg, 2) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				m, _ := manager(t, s.client(), anteroom.Config{})
				rdb := s.client()
				h := must[theHold](t)(take(m))
				began := time.Now()
				time.Sleep(5 * time.Second)
				before, left := rdb.HGetAll(bg, "k").Val(), rdb.PTTL(bg, "k").Val()
				time.Sleep(10 * time.Second)
				renewed := rdb.HGetAll(bg, "k").Val()
				rdb.Del(bg, "k")
				rdb.HSet(bg, "k", before)
				rdb.PExpire(bg, "k", left-10*time.Second)
				for time.Since(began) < 2*time.Minute {
					time.Sleep(time.Second)
					if err := h.Err(); err != nil {
						t.Fatalf("after %v: %v; Redis had %v, and has %v", time.Since(began), err, before, renewed)
					}
				}
				ok(t, h.Release(bg))
			})
		})
	}
}

// Permits that nobody uses go back, also while somebody of the process waits for more than there can be before another one of
// it has left.
func TestShared_S30_UnusedPermitsBesideAWaiter(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{})
		b, _ := manager(t, s.client(), anteroom.Config{})
		sa, sb := a.Semaphore("k", 10), b.Semaphore("k", 10)
		uses, unused := must[theHold](t)(sa.Acquire(bg, 5)), must[theHold](t)(sa.Acquire(bg, 5))
		in := make(chan theHold)
		go func() {
			h, _ := sa.Acquire(bg, 8)
			in <- h
		}()
		time.Sleep(time.Second)
		ok(t, unused.Release(bg))
		time.Sleep(100 * time.Millisecond)
		h, err := sb.TryAcquire(bg, 3)
		if err != nil {
			t.Errorf("3 of 5 that nobody uses: %v", err)
		} else {
			ok(t, h.Release(bg))
		}
		if _, err := sb.TryAcquire(bg, 6); !errors.Is(err, anteroom.ErrNotAcquired) {
			t.Errorf("6 of 5: %v", err)
		}
		ok(t, uses.Release(bg))
		ok(t, (<-in).Release(bg))
	})
}
