package anteroom_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// panics runs f and returns the *Error it panics with, nil if it does not.
func panics(t *testing.T, f func()) (err *anteroom.Error) {
	t.Helper()
	defer func() {
		if r := recover(); r != nil {
			var ok bool
			if err, ok = r.(*anteroom.Error); !ok {
				t.Fatalf("panic with %T: %v", r, r)
			}
		}
	}()
	f()
	return nil
}

func TestLockIsReentrantUpTo255(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		mu := mutex(t, m, anteroom.LockConfig{Key: "k", Reentrant: true})
		commands := 0
		for i := range 255 {
			if i%2 == 0 {
				mu.Lock()
			} else if !mu.TryLock() {
				t.Fatalf("TryLock number %d by the owner is false", i)
			}
			if i == 0 {
				commands = s.CommandCount()
			}
		}
		if n := mu.Holds(); n != 255 || !mu.Held() {
			t.Fatalf("Holds() = %d, Held() = %v", n, mu.Held())
		}
		if n := s.CommandCount(); n > commands+2 { // the subscription may still be under way
			t.Fatalf("nesting asked Redis: %d commands after %d", n, commands)
		}
		if err := panics(t, mu.Lock); !errors.Is(err, anteroom.ErrReentryLimit) {
			t.Fatalf("the 256th Lock: %v", err)
		}
		if f := s.HGet("k", m.Snapshot()[0].Holder); f != "1" {
			t.Fatalf("the count in Redis is %q, want 1", f)
		}
		for range 255 {
			if !s.Exists("k") {
				t.Fatal("released too early")
			}
			mu.Unlock()
		}
		if s.Exists("k") || mu.Held() || mu.Holds() != 0 {
			t.Fatal("still locked after the last Unlock")
		}
	})
}

// Who unlocks what another goroutine has locked learns whose it is.
func TestUnlockByAnotherPanics(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{RecordCallSites: true})
		mu := mutex(t, m, anteroom.LockConfig{Key: "k", Reentrant: true})
		if err := panics(t, mu.Unlock); !errors.Is(err, anteroom.ErrNotHeld) {
			t.Fatalf("unlock of an unlocked lock: %v", err)
		}
		mu.Lock()
		whose := fmt.Sprintf("locked by goroutine %d at ", m.Snapshot()[0].Goroutine)
		done := make(chan error)
		go func() { done <- panics(t, mu.Unlock) }()
		if err := <-done; !errors.Is(err, anteroom.ErrNotHeld) || !strings.Contains(err.Error(), whose) || !strings.Contains(err.Error(), "lock_test.go:") {
			t.Fatalf("unlock by another goroutine: %v", err)
		}
		if !mu.Held() {
			t.Fatal("another goroutine's Unlock released the lock")
		}
		mu.Unlock()
	})
}

// A Mutex with another configuration than the key's is refused by Lock, so its Unlock owns nothing.
func TestUnlockThroughAMutexWithAnotherReentrancy(t *testing.T) {
	for _, reentrant := range []bool{true, false} {
		bubble(t, func(t *testing.T, s *embedded) {
			m, _ := manager(t, s.client(), anteroom.Config{})
			mu := mutex(t, m, anteroom.LockConfig{Key: "k", Reentrant: reentrant})
			other := mutex(t, m, anteroom.LockConfig{Key: "k", Reentrant: !reentrant})
			mu.Lock()
			if reentrant {
				done := make(chan error)
				go func() { done <- panics(t, other.Unlock) }()
				if err := <-done; !errors.Is(err, anteroom.ErrNotHeld) {
					t.Fatalf("unlock by another goroutine: %v", err)
				}
				mu.Unlock()
				return
			}
			done := make(chan struct{})
			go func() { // any goroutine may unlock what is not Reentrant
				defer close(done)
				other.Unlock()
			}()
			<-done
			if mu.Held() || s.Exists("k") {
				t.Fatal("still locked after the Unlock")
			}
		})
	}
}

func TestLock_IsLikeSyncMutexs(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		mu := mutex(t, m, anteroom.LockConfig{Key: "k"})
		mu.Lock()
		if mu.TryLock() {
			t.Fatal("entered twice")
		}
		second := make(chan struct{})
		go func() {
			mu.Lock()
			close(second)
		}()
		synctest.Wait()
		go mu.Unlock() // by any goroutine
		<-second
		mu.Unlock()
		if err := panics(t, mu.Unlock); !errors.Is(err, anteroom.ErrNotHeld) {
			t.Fatalf("unlock of an unlocked lock: %v", err)
		}
	})
}

func TestADispatcherNeverGetsItsOwnHoldTwice(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		mu := m.Mutex("k")
		h := acquire(t, mu) // to be handed to a worker
		if _, err := mu.TryAcquire(bg); !errors.Is(err, anteroom.ErrNotAcquired) {
			t.Fatalf("the same goroutine without the Hold's context: %v", err)
		}
		if mu.TryLock() {
			t.Fatal("TryLock entered a Hold of the same goroutine")
		}
		inner, err := mu.TryAcquire(h.Context())
		ok(t, err)
		ok(t, h.Release(bg))
		if !s.Exists("k") || !inner.Held() {
			t.Fatal("released although the inner hold is live")
		}
		// h is over: its context no longer lets anybody in.
		if _, err := mu.TryAcquire(h.Context()); err == nil {
			t.Fatal("entered through a released Hold")
		}
		ok(t, inner.Release(bg))
		if s.Exists("k") {
			t.Fatal("not released with the last unit")
		}
	})
}

// A TryLock waits for nobody, so it is no deadlock.
func TestSelfDeadlock_NotByTryLock(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, rec := manager(t, s.client(), anteroom.Config{})
		mu := m.Mutex("k")
		h := acquire(t, mu)
		if mu.TryLock() || mu.TryLockFor(-1) {
			t.Fatal("locked beside the Hold")
		}
		synctest.Wait()
		if ev := rec.of(observe.EventSelfDeadlock); len(ev) != 0 {
			t.Errorf("%+v", ev)
		}
		ok(t, h.Release(bg))
	})
}

func TestSelfDeadlockIsReported(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, rec := manager(t, s.client(), anteroom.Config{RecordCallSites: true})
		mu := m.Mutex("k")
		h := acquire(t, mu)
		if mu.TryLockFor(time.Second) {
			t.Fatal("locked beside the Hold")
		}
		synctest.Wait()
		if ev := rec.of(observe.EventSelfDeadlock); len(ev) != 1 || ev[0].CallSite == "" {
			t.Fatalf("events: %+v", ev)
		}
		ok(t, h.Release(bg))
	})
}

func TestSync_I7_StaleUnlockNeverFreesASuccessor(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, rec := manager(t, s.client(), anteroom.Config{})
		other, _ := manager(t, s.client(), anteroom.Config{})
		mu := mutex(t, m, anteroom.LockConfig{Key: "k", Reentrant: true})
		mu.Lock()
		s.Del("k")
		h := acquire(t, other.Mutex("k"))
		time.Sleep(6 * time.Second) // a watchdog period and more
		if mu.Held() {
			t.Fatal("Held after the notice of the loss")
		}
		pass(mu) // enters again: waiting for itself would be a deadlock
		mu.Unlock()
		synctest.Wait()
		if !h.Held() || s.HGet("k", h.Holder()) != "1" {
			t.Fatal("a stale Unlock freed the successor")
		}
		if n := len(rec.of(observe.EventUnlockLost)); n != 2 {
			t.Fatalf("%d events for Unlock of a lost lock, want 2", n)
		}
		if n := len(rec.of(observe.EventReentryLost)); n != 1 {
			t.Fatalf("%d events for entering a lost lock, want 1", n)
		}
		if lost := rec.of(observe.EventLost); len(lost) != 1 || lost[0].Reason != observe.LostGone || lost[0].Owners != 1 {
			t.Fatalf("losses: %+v", lost)
		}
		ok(t, h.Release(bg))
	})
}

func TestALostLockStaysLocallyLockedUntilItsUnlock(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		mu := m.Mutex("k")
		mu.Lock()
		s.Del("k")
		time.Sleep(6 * time.Second)
		in := make(chan struct{})
		go func() {
			mu.Lock()
			close(in)
			mu.Unlock()
		}()
		time.Sleep(time.Minute)
		select {
		case <-in:
			t.Fatal("a goroutine of this process came in beside the one that still runs")
		default:
		}
		mu.Unlock()
		<-in
	})
}

func TestALostHoldLetsTheLocalQueueMoveOnImmediately(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		mu := m.Mutex("k")
		h := acquire(t, mu)
		next := make(chan *anteroom.Hold)
		go func() {
			h, err := mu.Acquire(bg)
			if err != nil {
				t.Error(err)
			}
			next <- h
		}()
		synctest.Wait()
		s.Del("k")
		h2 := <-next
		if h.Held() || !h2.Held() {
			t.Fatal("the waiter came in before the holder was notified")
		}
		cause := context.Cause(h.Context())
		var e *anteroom.Error
		if !errors.As(cause, &e) || !errors.Is(cause, anteroom.ErrLost) || e.Since.IsZero() {
			t.Fatalf("cause %v", cause)
		}
		if err := h.Release(bg); !errors.Is(err, anteroom.ErrLost) {
			t.Fatalf("release of a lost hold: %v", err)
		}
		if err := h.Release(bg); !errors.Is(err, anteroom.ErrNotHeld) {
			t.Fatalf("second release: %v", err)
		}
		if !h2.Held() || !s.Exists("k") {
			t.Fatal("the release of the lost hold freed its successor")
		}
		if _, err := mu.Acquire(h.Context()); err == nil {
			t.Fatal("entered again into a lost hold")
		}
		ok(t, h2.Release(bg))
	})
}

func TestWaitLimitsAreExact(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		other, _ := manager(t, s.client(), anteroom.Config{})
		h := acquire(t, other.Mutex("k"))
		mu := m.Mutex("k")
		start := time.Now()
		if mu.TryLockFor(3*time.Second) || time.Since(start) != 3*time.Second {
			t.Fatalf("TryLockFor ended after %v", time.Since(start))
		}
		start = time.Now()
		_, err := mu.Acquire(bg, anteroom.Wait(7*time.Second))
		if !errors.Is(err, anteroom.ErrNotAcquired) || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 7*time.Second {
			t.Fatalf("Acquire ended after %v: %v", time.Since(start), err)
		}
		start = time.Now()
		ctx, cancel := context.WithCancelCause(bg)
		because := errors.New("because")
		time.AfterFunc(time.Second, func() { cancel(because) })
		_, err = mu.Acquire(ctx)
		if !errors.Is(err, anteroom.ErrNotAcquired) || !errors.Is(err, context.Canceled) || !errors.Is(err, because) || time.Since(start) != time.Second {
			t.Fatalf("Acquire ended after %v: %v", time.Since(start), err)
		}
		_, err = mu.Acquire(ctx)
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("Acquire with an ended context: %v", err)
		}
		if mu.TryLock() {
			t.Fatal("TryLock of a held lock")
		}
		ok(t, h.Release(bg))
		if !mu.TryLockFor(time.Second) {
			t.Fatal("TryLockFor of a free lock")
		}
		mu.Unlock()
	})
}

// Where nothing but the release has found the loss, Unlock's event says as much as any other.
func TestMutex_UnlockOfALostLockSaysWhy(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, rec := manager(t, s.client(), anteroom.Config{})
		mu := m.Mutex("k")
		mu.Lock()
		since := time.Now()
		time.Sleep(time.Second) // it is renewed for the first time
		s.Del("k")
		mu.Unlock()
		s.settle()
		ev := rec.of(observe.EventUnlockLost)
		if len(ev) != 1 || ev[0].Reason != observe.LostGone || !ev[0].LastConfirmed.After(since) || ev[0].Deadline.IsZero() {
			t.Errorf("%+v", ev)
		}
	})
}
