package anteroom_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
)

// ErrNotAcquired names who has the lock: a try's refusal, a wait that ended, and what another goroutine of the process has.
func TestErrNotAcquiredNamesTheHolder(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		other, _ := manager(t, s.client(), anteroom.Config{})
		held := acquire(t, other.Mutex("k"))
		check := func(what string, err error, holder string) {
			t.Helper()
			var e *anteroom.Error
			if !errors.Is(err, anteroom.ErrNotAcquired) || !errors.As(err, &e) || e.Holder != holder {
				t.Errorf("%s: %v, want the holder %q", what, err, holder)
			}
		}
		_, err := m.Mutex("k").TryAcquire(bg)
		check("try", err, held.Holder())
		if text := fmt.Sprintf("anteroom: try acquire \"k\": not acquired: held by %q", held.Holder()); err.Error() != text {
			t.Errorf("%q, want %q", err, text)
		}
		ctx, cancel := context.WithTimeout(bg, 3*time.Second)
		defer cancel()
		_, err = m.Mutex("k").Acquire(ctx)
		check("wait", err, held.Holder())
		_, err = other.Mutex("k").TryAcquire(bg)
		check("beside an owner", err, held.Holder())
		ok(t, held.Release(bg))
		ended, end := context.WithCancel(bg)
		end()
		_, err = m.Mutex("other").Acquire(ended)
		check("nothing was asked", err, "")
		writes := must[*anteroom.Hold](t)(m.RWMutex("rw").Acquire(bg))
		_, err = m.RWMutex("rw").TryRAcquire(bg)
		check("beside a writer", err, writes.Holder())
		_, err = other.RWMutex("rw").TryRAcquire(bg)
		check("elsewhere", err, "")
		ok(t, writes.Release(bg))
	})
}
