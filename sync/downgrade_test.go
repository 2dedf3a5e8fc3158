package anteroom_test

import (
	"context"
	"errors"
	"testing"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
)

// Each Hold reads or writes for itself. As long as one of those inside each other writes, nobody else comes in.
func TestDowngrade_OfOneOfSeveralHolds(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{})
		b, _ := manager(t, s.client(), anteroom.Config{})
		rw, other := a.RWMutex("k"), b.RWMutex("k")
		units := func(h theHold, want int64) {
			t.Helper()
			if n := h.Units(); n != want {
				t.Errorf("the Hold has %d units, want %d", n, want)
			}
		}
		readers := func(want bool) {
			t.Helper()
			if got := rw.TryRLockFor(time.Second); got != want {
				t.Errorf("a reader of this process comes in: %v, want %v", got, want)
			} else if got {
				rw.RUnlock()
			}
			r, err := other.RAcquire(bg, anteroom.Wait(time.Second))
			if (err == nil) != want || err != nil && !errors.Is(err, anteroom.ErrNotAcquired) {
				t.Errorf("a reader of another process comes in: %v, want %v", err, want)
			}
			if err == nil {
				ok(t, r.Release(bg))
			}
		}
		nested := func(inner func(context.Context, ...anteroom.AcquireOption) (theHold, error)) (w, h theHold) {
			w = must[theHold](t)(rw.Acquire(bg))
			return w, must[theHold](t)(inner(w.Context()))
		}

		w, r := nested(rw.RAcquire)
		units(w, 1<<20)
		units(r, 1)
		ok(t, r.Downgrade()) // stays as it is
		units(w, 1<<20)
		readers(false)
		ok(t, w.Downgrade())
		readers(true)
		ok(t, w.Release(bg))
		ok(t, r.Release(bg))

		for range 2 { // the inner writer first, then the outer one
			w, w2 := nested(rw.Acquire)
			ok(t, w2.Downgrade())
			ok(t, w2.Downgrade())
			units(w, 1<<20)
			units(w2, 1)
			readers(false)
			ok(t, must[theHold](t)(rw.Acquire(w2.Context())).Release(bg)) // somebody around it writes
			ok(t, w.Downgrade())
			units(w, 1)
			readers(true)
			if _, err := rw.Acquire(w.Context()); !errors.Is(err, anteroom.ErrUpgrade) {
				t.Errorf("to write in what reads: %v", err)
			}
			ok(t, w2.Release(bg))
			ok(t, w.Release(bg))
		}

		w, r = nested(rw.RAcquire)
		ok(t, w.Release(bg)) // who is left reads
		readers(true)
		if !r.Held() {
			t.Error("the inner Hold ended with the outer one")
		}
		ok(t, r.Release(bg))

		w, w2 := nested(rw.Acquire)
		ok(t, w.Release(bg))
		readers(false)
		ok(t, w2.Downgrade())
		readers(true)
		ok(t, w2.Release(bg))
	})
}
