package anteroom_test

import (
	"context"
	"testing"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
)

// A waiter of this process comes in when MinHold is over, and a try before that is refused immediately, also where the
// release has no answer yet.
func TestMinHold_WhoWaitsAndWhoTries(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		mu := mutex(t, m, anteroom.LockConfig{Key: "k", MinHold: 3 * time.Second})
		start := time.Now()
		h := acquire(t, mu)
		time.AfterFunc(time.Second, func() { _ = h.Release(bg) })
		ctx, cancel := context.WithTimeout(bg, time.Minute)
		defer cancel()
		h, err := mu.Acquire(ctx)
		ok(t, err)
		if d := time.Since(start); d < 3*time.Second || d > 4*time.Second {
			t.Errorf("in after %v", d)
		}
		s.net.BlackHole()
		time.AfterFunc(1200*time.Millisecond, s.net.Heal)
		go func() { _ = h.Release(bg) }()
		time.Sleep(time.Millisecond)
		start = time.Now()
		if _, err := mu.TryAcquire(ctx); err == nil || time.Since(start) > 2*time.Second {
			t.Errorf("a try: %v, after %v", err, time.Since(start))
		}
	})
}

// Answers that come late, but in time, let a try in, or refuse it, soon.
func TestTryBesideSlowAnswers(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		mu := m.Mutex("k")
		ok(t, acquire(t, mu).Release(bg))
		s.net.Delay(850 * time.Millisecond)
		ctx, cancel := context.WithTimeout(bg, 2*time.Minute)
		defer cancel()
		start := time.Now()
		h, err := mu.TryAcquire(ctx)
		if d := time.Since(start); d > 4*time.Second {
			t.Errorf("%v, after %v", err, d)
		}
		s.net.Delay(0)
		if err == nil {
			ok(t, h.Release(bg))
		}
	})
}
