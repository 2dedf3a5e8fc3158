package locktest_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/locktest"
	"github.com/anteroom/anteroom/sync/observe"
)

func TestLocktest_I1_TakenStaysTaken_Lab(t *testing.T) {
	inBubble(t, func(t *testing.T, lt *locktest.Manager) {
		leave := lt.TakeBy("k")
		time.Sleep(25 * time.Hour) // longer than the longest lease
		_, err := lt.Mutex("k").TryAcquire(bg)
		wantErr(t, err, anteroom.ErrNotAcquired)
		info, err := lt.Inspect(bg, "k")
		if err != nil || len(info.Holders) != 1 || info.Holders[0].Client != locktest.OtherClient {
			t.Fatalf("Inspect: %+v, %v", info, err)
		}
		leave()
		release(t, acquire(t, lt.Mutex("k")))
	})
}

func TestReleaseOfTakeByWakesAWaiterImmediately(t *testing.T) {
	inBubble(t, func(t *testing.T, lt *locktest.Manager) {
		leave := lt.TakeBy("k")
		got := make(chan *anteroom.Hold)
		go func() { got <- acquire(t, lt.Mutex("k")) }()
		synctest.Wait() // it waits, and listens
		began := time.Now()
		leave()
		h := <-got
		if took := time.Since(began); took != 0 {
			t.Errorf("woken after %v; a message takes no virtual time", took)
		}
		leave() // must not touch the new holder
		if err := h.Err(); err != nil {
			t.Errorf("after the second release by TakeBy's holder: %v", err)
		}
		release(t, h)
	})
}

func TestTakeByRespectsAContext(t *testing.T) {
	inBubble(t, func(t *testing.T, lt *locktest.Manager) {
		defer lt.TakeBy("k")()
		ctx, cancel := context.WithTimeout(bg, 3*time.Second)
		defer cancel()
		began := time.Now()
		_, err := lt.Mutex("k").Acquire(ctx)
		wantErr(t, err, anteroom.ErrNotAcquired)
		wantErr(t, err, context.DeadlineExceeded)
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("waited %v, want 3s", took)
		}
	})
}

func TestTakeByOfAHeldLockEndsTheTest(t *testing.T) {
	var h *anteroom.Hold
	msg := fatal(t, func(r *recording) {
		lt := locktest.NewManager(r, anteroom.Config{})
		h = acquire(t, lt.Mutex("k"))
		defer func() { _ = h.Release(bg) }()
		lt.TakeBy("k")
	})
	if !strings.Contains(msg, h.Holder()) {
		t.Errorf("message %q does not name the holder %s", msg, h.Holder())
	}
	if msg := fatal(t, func(r *recording) { locktest.NewManager(r, anteroom.Config{}).TakeBy("") }); !strings.Contains(msg, "Key") {
		t.Errorf("message for an empty key: %q", msg)
	}
}

func TestLocktest_I2_LoseNotifiesBeforeItReturns(t *testing.T) {
	everywhere(t, func(t *testing.T, lt *locktest.Manager) {
		other := lt.Another(anteroom.Config{})
		for _, m := range []*locktest.Manager{lt, other} {
			mu := m.Mutex("k")
			h := acquire(t, mu)
			ctx := h.Context()
			if !lt.Lose("k") {
				t.Fatal("nobody had the lock")
			}
			select {
			case <-ctx.Done(): // without asking the Hold, which would read the clock
			default:
				t.Fatal("the context has not ended when Lose returns")
			}
			wantErr(t, context.Cause(ctx), anteroom.ErrLost)
			if h.Held() {
				t.Error("still held")
			}
			wantErr(t, h.Release(bg), anteroom.ErrLost)
		}
		if lt.Lose("k") {
			t.Error("Lose of a free lock says that somebody had it")
		}
	})
}

func TestLocktest_I2_LoseNotifiesAHolderByLock(t *testing.T) {
	everywhere(t, func(t *testing.T, lt *locktest.Manager) {
		mu := lt.Mutex("k")
		mu.Lock()
		lt.Lose("k")
		if mu.Held() {
			t.Error("Held after Lose")
		}
		leave := lt.TakeBy("k")
		mu.Unlock() // must not free the foreign client's lock
		_, err := mu.TryAcquire(bg)
		wantErr(t, err, anteroom.ErrNotAcquired)
		leave()
	})
}

func TestLoseTakesNoVirtualTime(t *testing.T) {
	inBubble(t, func(t *testing.T, lt *locktest.Manager) {
		h := acquire(t, lt.Mutex("k"))
		began := time.Now()
		lt.Lose("k")
		if took := time.Since(began); took != 0 {
			t.Errorf("took %v", took)
		}
		wantErr(t, h.Err(), anteroom.ErrLost)
	})
}

func TestLoseOfAForeignLockLetsTheWaiterIn(t *testing.T) {
	everywhere(t, func(t *testing.T, lt *locktest.Manager) {
		leave := lt.TakeBy("k")
		done := make(chan struct{})
		go func() {
			defer close(done)
			release(t, acquire(t, lt.Mutex("k")))
		}()
		if !lt.Lose("k") {
			t.Error("nobody had the lock")
		}
		soon(t, "the waiter had the lock", done)
		leave()
	})
}

// A stuck OnEvent must not keep Lose from returning: a test may read its events from a channel only after that.
func TestLoseDoesNotWaitForOnEvent(t *testing.T) {
	everywhere(t, func(t *testing.T, lt *locktest.Manager) {
		events := make(chan observe.Event)
		other := lt.Another(anteroom.Config{OnEvent: func(e observe.Event) { events <- e }})
		h := acquire(t, other.Mutex("k"))
		lt.Lose("k")
		wantErr(t, h.Err(), anteroom.ErrLost)
		for e := range events {
			if e.Kind == observe.EventLost {
				if e.Key != "k" || e.Reason != observe.LostForced || e.Holder != h.Holder() {
					t.Errorf("event %+v", e)
				}
				break
			}
		}
		go func() { // later events
			for range events {
				continue
			}
		}()
		if err := other.Close(bg); err != nil {
			t.Error(err)
		}
		close(events)
	})
}

func TestLoseIsSafeWhileHoldersChange(t *testing.T) {
	everywhere(t, func(t *testing.T, lt *locktest.Manager) {
		other := lt.Another(anteroom.Config{})
		var wg sync.WaitGroup
		stop := make(chan struct{})
		for i := range 8 {
			m := []*locktest.Manager{lt, other}[i%2]
			wg.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					h, err := m.Mutex("k").Acquire(bg)
					if err != nil {
						t.Error(err)
						return
					}
					time.Sleep(time.Microsecond) // in a bubble time passes only while all sleep, and Lose needs some
					if err := h.Release(bg); err != nil && !errors.Is(err, anteroom.ErrLost) {
						t.Error(err)
					}
				}
			})
		}
		for range 50 {
			lt.Lose("k")
		}
		close(stop)
		wg.Wait()
	})
}
