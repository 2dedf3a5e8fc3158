package anteroom_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/internal/faultnet"
	anteroom "github.com/anteroom/anteroom/sync"
)

// After Close gave the holds up, the release of an inner one must not delete the key
// while the outer hold's work may still run.
func TestAnInnerReleaseAfterCloseSparesTheOuterHold(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		mu := m.Mutex("k")
		outer := acquire(t, mu)
		inner := must[*anteroom.Hold](t)(mu.Acquire(outer.Context()))
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		_ = m.Close(ctx)
		_ = inner.Release(bg)
		time.Sleep(time.Second)
		if !s.Exists("k") {
			t.Error("deleted while the outer hold is not released")
		}
		_ = outer.Release(bg)
		time.Sleep(time.Second)
		if s.Exists("k") {
			t.Error("the outer release sent nothing")
		}
	})
}

// Close waits for who has the lock, and that may come in once more meanwhile. Nobody else may.
func TestClose_TheOwnerEntersAgain(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		mu := mutex(t, m, anteroom.LockConfig{Key: "k", Reentrant: true})
		mu.Lock()
		closed := make(chan error, 1)
		go func() { closed <- m.Close(bg) }()
		synctest.Wait()
		mu.Lock()
		if !mu.TryLock() || !mu.TryLockFor(time.Second) {
			t.Error("its owner was refused")
		}
		other := make(chan any)
		for _, enter := range []func(){mu.Lock, func() { mu.TryLock() }, m.Mutex("other").Lock} {
			go func() {
				defer func() { other <- recover() }()
				enter()
			}()
			if err, _ := (<-other).(error); !errors.Is(err, anteroom.ErrClosed) {
				t.Errorf("somebody else: %v, want ErrClosed", err)
			}
		}
		for range 4 {
			mu.Unlock()
		}
		ok(t, <-closed)
	})
}

// Where Close has given the lock up, its owner is refused as anybody.
func TestClose_NobodyEntersWhatWasGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		mu := mutex(t, m, anteroom.LockConfig{Key: "k", Reentrant: true})
		mu.Lock()
		if err := m.CloseWithin(time.Second); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("closed: %v", err)
		}
		if err := panics(t, mu.Lock); !errors.Is(err, anteroom.ErrClosed) {
			t.Errorf("Lock: %v, want ErrClosed", err)
		}
		mu.Unlock()
	})
}

// Redis has granted, and the answer hangs: Close waits until the field is cleaned up.
func TestCloseWaitsForAnAttemptUnderWay(t *testing.T) {
	for range 100 {
		bubble(t, func(t *testing.T, s *embedded) {
			m, _ := manager(t, s.client(), anteroom.Config{})
			ok(t, acquire(t, m.Mutex("k")).Release(bg))
			s.net.HoldReplies() // Redis grants, the answer hangs
			go func() { _, _ = m.Mutex("k").Acquire(bg) }()
			time.Sleep(100 * time.Millisecond)
			if !s.Exists("k") {
				t.Fatal("not granted")
			}
			time.AfterFunc(500*time.Millisecond, func() { s.net.CloseAll(); s.net.Heal() })
			ctx, cancel := context.WithTimeout(bg, 20*time.Second)
			defer cancel()
			start := time.Now()
			err := m.Close(ctx)
			took := time.Since(start)
			time.Sleep(3 * time.Second)
			if err == nil && s.Exists("k") {
				t.Fatalf("Close returned nil after %v, and the attempt's field is still in Redis, TTL %v", took, s.TTL("k"))
			}
		})
		if t.Failed() {
			return
		}
	}
}

// The same where the command has not reached Redis yet.
func TestCloseWaitsForAnAttemptOnItsWay(t *testing.T) {
	for range 100 {
		bubble(t, func(t *testing.T, s *embedded) {
			m, _ := manager(t, s.client(), anteroom.Config{})
			ok(t, acquire(t, m.Mutex("k")).Release(bg))
			time.Sleep(time.Second)
			s.net.BlackHole() // the acquire is on its way
			go func() { _, _ = m.Mutex("k").Acquire(bg) }()
			time.Sleep(100 * time.Millisecond)
			time.AfterFunc(500*time.Millisecond, s.net.Heal)
			ctx, cancel := context.WithTimeout(bg, 60*time.Second)
			defer cancel()
			start := time.Now()
			err := m.Close(ctx)
			took := time.Since(start)
			time.Sleep(time.Second)
			if err == nil && s.Exists("k") {
				t.Fatalf("Close returned nil after %v, and the attempt's field is still in Redis, TTL %v", took, s.TTL("k"))
			}
		})
		if t.Failed() {
			return
		}
	}
}

// A TryLock that began before Close is no use after Close.
func TestATryLockUnderWayIsFalseWhenCloseBegins(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		mu := m.Mutex("k")
		ok(t, acquire(t, mu).Release(bg))
		s.net.BlackHole()
		done := make(chan any)
		go func() {
			defer func() { done <- recover() }()
			mu.TryLock()
		}()
		time.Sleep(100 * time.Millisecond)
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		go func() { _ = m.Close(ctx) }()
		if p := <-done; p != nil {
			t.Errorf("TryLock that began before Close panics: %v", p)
		}
		s.net.Heal()
		time.Sleep(10 * time.Second)
	})
}

// The end of a turn must not let a parked Lock in after Close has begun.
func TestCloseLetsNoParkedLockIn(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		mu := mutex(t, m, anteroom.LockConfig{Key: "k"})
		mu.Lock()
		in := make(chan struct{})
		go func() {
			ctx, cancel := context.WithTimeout(bg, time.Hour)
			defer cancel()
			if anteroom.LockUntil(ctx, mu) {
				close(in)
			}
		}()
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(bg, 10*time.Second)
		defer cancel()
		done := make(chan error)
		go func() { done <- m.Close(ctx) }()
		time.Sleep(time.Second)
		mu.Unlock()
		time.Sleep(time.Second)
		select {
		case <-in:
			t.Error("a parked Lock came in after Close had begun")
			mu.Unlock()
		default:
		}
		if err := <-done; !errors.Is(err, anteroom.ErrClosed) {
			t.Errorf("Close does not name the caller that stays parked: %v", err)
		}
		time.Sleep(2 * time.Hour)
	})
}

// A grant that comes while Close waits for its attempt, for a caller that is parked in Lock, is removed before Close
// returns: only the attempt is waited for, not that caller.
func TestClose_LeavesNoGrantThatCameLate(t *testing.T) {
	for range 50 {
		bubble(t, func(t *testing.T, s *embedded) {
			m, _ := manager(t, s.mindfulClient(), anteroom.Config{})
			ok(t, acquire(t, m.Mutex("k")).Release(bg))
			s.net.HoldReplies()
			parked, end := context.WithCancel(bg)
			var done sync.WaitGroup
			done.Go(func() {
				if anteroom.LockUntil(parked, m.Mutex("k")) {
					t.Error("came in")
				}
			})
			time.Sleep(100 * time.Millisecond)
			if !s.Exists("k") {
				t.Fatal("not granted")
			}
			time.AfterFunc(300*time.Millisecond, s.net.Heal)
			_ = m.Close(bg)
			if s.Exists("k") {
				t.Error("the grant is left to its lease")
			}
			end()
			done.Wait()
		})
		if t.Failed() {
			return
		}
	}
}

// Close does not wait for an acquire whose connection broke, where Redis answers again: one answer
// that nothing is there is enough. The clean-up, which pauses between two releases, is woken.
func TestF5_CloseDoesNotWaitForAnAcquireThatWasCut(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{CommandTimeout: time.Second})
		mu := mutex(t, m, anteroom.LockConfig{Key: "k", LeaseTime: 6 * time.Second})
		ok(t, acquire(t, mu).Release(bg)) // scripts are loaded, a connection is made
		s.net.OnRequest("k", 1, faultnet.Swallowed)
		ok(t, acquire(t, mu).Release(bg)) // the repeat was granted
		time.Sleep(3*time.Second + time.Millisecond)
		begin := time.Now()
		ctx, cancel := context.WithTimeout(bg, 3*time.Second)
		defer cancel()
		err := m.Close(ctx)
		if took := time.Since(begin); err != nil || took > 10*time.Millisecond || s.Exists("k") {
			t.Errorf("Close: %v after %v", err, took)
		}
	})
}

// After Close every question about a key says so, and none waits for Redis, also where a hold that it left keeps the client open
// for its release.
func TestClose_QuestionsSaySo(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		h := acquire(t, m.Mutex("k"))
		if err := m.CloseWithin(time.Second); !errors.Is(err, anteroom.ErrClosed) {
			t.Fatal(err)
		}
		_, inspected := m.Inspect(bg, "k")
		_, forced := m.ForceRelease(bg, "k")
		for name, err := range map[string]error{"Inspect": inspected, "ForceRelease": forced, "Ping": m.Ping(bg, "k")} {
			if !errors.Is(err, anteroom.ErrClosed) {
				t.Errorf("%s: %v, want ErrClosed", name, err)
			}
		}
		_ = h.Release(bg)
	})
}
