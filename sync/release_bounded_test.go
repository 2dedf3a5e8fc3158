package anteroom_test

import (
	"context"
	"errors"
	"testing"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// A server that does not answer keeps nobody in Release for long, whatever its context
// allows; and what was not confirmed comes to its end in the background.
func TestReleaseIsBounded(t *testing.T) {
	ended, end := context.WithCancel(bg)
	end()
	for name, c := range map[string]struct {
		ctx  context.Context
		most time.Duration
	}{
		"a context without an end": {bg, 2 * time.Second},
		"one that has ended":       {ended, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				m, rec := manager(t, s.client(), anteroom.Config{CommandTimeout: time.Second})
				h := acquire(t, m.Mutex("k"))
				s.net.BlackHole()
				start := time.Now()
				err := h.Release(c.ctx)
				if took := time.Since(start); took > c.most+100*time.Millisecond {
					t.Errorf("Release took %v, want at most %v", took, c.most)
				}
				var e *anteroom.Error
				if !errors.Is(err, anteroom.ErrUnknown) || !errors.As(err, &e) || e.Outcome != observe.OutcomeUnknown {
					t.Errorf("Release: %v", err)
				}
				s.net.Heal()
				time.Sleep(15 * time.Second)
				if s.Exists("k") || len(rec.of(observe.EventReleaseFailed)) != 1 {
					t.Errorf("the key is there: %v; %d events of a failed release", s.Exists("k"), len(rec.of(observe.EventReleaseFailed)))
				}
			})
		})
	}
}

// Repetitions are awaited for a while: a connection that breaks is no reason to leave the
// caller in doubt.
func TestReleaseAwaitsARepetition(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{CommandTimeout: time.Second})
		h := acquire(t, m.Mutex("k"))
		s.net.BlackHole()
		time.AfterFunc(1200*time.Millisecond, s.net.Heal)
		ok(t, h.Release(bg))
		if s.Exists("k") {
			t.Error("released, and the key is there")
		}
	})
}

// A program that has to stop releases with contexts that have ended. That alone is no
// failure, and what Release returns still reports whether the lock had lasted.
func TestReleaseWithAnEndedContext(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, rec := manager(t, s.client(), anteroom.Config{})
		ctx, cancel := context.WithCancel(bg)
		cancel()
		h := acquire(t, m.Mutex("k"))
		ok(t, h.Release(ctx))
		h = acquire(t, m.Mutex("k"))
		ok(t, h.Release(h.Context())) // which ends with it
		if s.Exists("k") || len(rec.of(observe.EventReleaseFailed)) != 0 {
			t.Error("not released")
		}
		h = acquire(t, m.Mutex("k"))
		s.Del("k")
		if err := h.Release(ctx); !errors.Is(err, anteroom.ErrLost) {
			t.Errorf("the lock was deleted, and Release says %v", err)
		}
	})
}
