package anteroom_test

import (
	"context"
	"errors"
	"testing"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
)

// TryLockFor returns false for whatever ends its wait, so it reports what an Acquire reports: a
// key of another type, and that the Manager closes.
func TestTryLockForLearnsOfARefusal(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		ok(t, s.Set("k", "a string"))
		m, _ := manager(t, s.client(), anteroom.Config{})
		began := time.Now()
		if m.Mutex("k").TryLockFor(time.Minute) {
			t.Error("locked a key that holds no lock")
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("returned after %v that no wait will help", took)
		}
	})
}

func TestTryLockForLearnsOfClose(t *testing.T) {
	for name, try := range map[string]func(*anteroom.Manager) bool{
		"Mutex":   func(m *anteroom.Manager) bool { return m.Mutex("k").TryLockFor(time.Minute) },
		"RWMutex": func(m *anteroom.Manager) bool { return m.RWMutex("rw").TryLockFor(time.Minute) },
		"to read": func(m *anteroom.Manager) bool { return m.RWMutex("rw").TryRLockFor(time.Minute) },
	} {
		t.Run(name, func(t *testing.T) { learnsOfClose(t, try) })
	}
}

func learnsOfClose(t *testing.T, try func(*anteroom.Manager) bool) {
	bubble(t, func(t *testing.T, s *embedded) {
		other, _ := manager(t, s.client(), anteroom.Config{})
		hold, writer := acquire(t, other.Mutex("k")), must[theHold](t)(other.RWMutex("rw").Acquire(bg))
		m, _ := manager(t, s.client(), anteroom.Config{})
		answer := make(chan bool, 1)
		began := time.Now()
		go func() { answer <- try(m) }()
		time.Sleep(time.Second)
		if err := m.Close(bg); err != nil {
			t.Errorf("Close: %v", err)
		}
		if <-answer {
			t.Error("locked under a closed Manager")
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("returned after %v", took)
		}
		ok(t, hold.Release(bg))
		ok(t, writer.Release(bg))
	})
}

// A TryAcquire that finds another goroutine's first attempt under way is behind that
// goroutine, which is all that is known: nothing of its own was sent, and Redis is well.
func TestTryAcquireBesideAnAttemptIsNotAcquired(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		ok(t, acquire(t, m.Mutex("warm")).Release(bg))
		mu := m.Mutex("k")
		s.net.HoldReplies()
		first := make(chan error, 1)
		go func() {
			h, err := mu.Acquire(bg)
			if err == nil {
				err = h.Release(bg)
			}
			first <- err
		}()
		time.Sleep(10 * time.Millisecond) // its attempt is under way
		_, err := mu.TryAcquire(bg)
		s.net.Heal()
		if !errors.Is(err, anteroom.ErrNotAcquired) || errors.Is(err, anteroom.ErrUnavailable) || errors.Is(err, anteroom.ErrUnknown) {
			t.Errorf("TryAcquire: %v", err)
		}
		ok(t, <-first)
	})
}

// lockedBehindAString returns a mutex whose Lock waits behind an answer that no repetition
// changes, and what mends that and waits for the Lock.
func lockedBehindAString(t *testing.T, s *embedded) (mu *anteroom.Mutex, mended func()) {
	ok(t, s.Set("k", "a string"))
	m, _ := manager(t, s.client(), anteroom.Config{})
	mu = m.Mutex("k")
	locked := make(chan struct{})
	go func() { pass(mu); close(locked) }()
	return mu, func() { s.Del("k"); <-locked }
}

// The same where somebody waits behind an answer that no repetition changes: the lock is
// another's to wait for, and Redis has answered.
func TestTryAcquireBehindAWaiterThatMeetsErrors(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		mu, mended := lockedBehindAString(t, s)
		time.Sleep(time.Second)
		_, err := mu.TryAcquire(bg)
		if errors.Is(err, anteroom.ErrUnavailable) || errors.Is(err, anteroom.ErrUnknown) {
			t.Errorf("TryAcquire: %v", err)
		}
		mended()
	})
}

// An Acquire whose context ends while it waits in front of such an answer says what the
// answer was.
func TestAcquireThatEndsBehindAPermanentAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		mu, mended := lockedBehindAString(t, s)
		time.Sleep(5 * time.Second) // the back-off is a second long by now
		ctx, cancel := context.WithTimeout(bg, time.Millisecond)
		defer cancel()
		_, err := mu.Acquire(ctx)
		if !errors.Is(err, anteroom.ErrConfig) || errors.Is(err, anteroom.ErrUnavailable) {
			t.Errorf("Acquire: %v", err)
		}
		mended()
	})
}
