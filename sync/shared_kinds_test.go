package anteroom_test

import (
	"context"
	"errors"
	"testing"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
)

// notHeld reports whether f panics with ErrNotHeld.
func notHeld(t *testing.T, name string, f func()) {
	t.Helper()
	defer func() {
		p := recover()
		if e, is := p.(*anteroom.Error); !is || !errors.Is(e, anteroom.ErrNotHeld) {
			t.Errorf("%s panics with %T %v", name, p, p)
		}
	}()
	f()
}

// What is unlocked as another kind of lock than the key is in use as is not held.
func TestShared_UnlockedAsAnotherKind(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		mu, rw, sem := m.Mutex("k"), m.RWMutex("k"), m.Semaphore("k", 5)
		h := acquire(t, mu)
		notHeld(t, "Unlock", rw.Unlock)
		notHeld(t, "RUnlock", rw.RUnlock)
		notHeld(t, "Release", func() { sem.Weighted().Release(1) })
		ok(t, h.Err())
		ok(t, h.Release(bg))
		rw.RLock()
		notHeld(t, "Release", func() { sem.Weighted().Release(1) })
		notHeld(t, "Unlock of a Mutex", mu.Unlock)
		if mu.Held() || m.RWMutex("k").TryLock() {
			t.Error("others are inside beside a reader")
		}
		if _, err := m.AcquireAll(bg, "a", "k"); !errors.Is(err, anteroom.ErrConfig) {
			t.Errorf("AcquireAll: %v", err)
		}
		if err := m.Destroy("k"); !errors.Is(err, anteroom.ErrInUse) {
			t.Errorf("Destroy: %v", err)
		}
		rw.RUnlock()
	})
}

// A string is a lock to a Manager whose Defaults say so, also while an RWMutex of it has the key in use.
func TestShared_InspectAString(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{Defaults: anteroom.LockConfig{StringHolders: true}})
		h := must[theHold](t)(m.RWMutex("k").Acquire(bg))
		s.Del("k")
		ok(t, s.Set("k", "another library's value"))
		if i, err := m.Inspect(bg, "k"); err != nil || !i.Locked {
			t.Errorf("%+v %v", i, err)
		}
		if broken, err := m.ForceRelease(bg, "k"); err != nil || len(broken) != 1 {
			t.Errorf("%q %v", broken, err)
		}
		_ = h.Release(bg)
		time.Sleep(time.Second)
	})
}

// Units that this process has in Redis count as held, though nobody is inside and somebody waits for more.
func TestShared_CountsUnitsOfWhoWaitsForMore(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{})
		b, _ := manager(t, s.client(), anteroom.Config{})
		sa := a.Semaphore("k", 10)
		other, h := must[theHold](t)(b.Semaphore("k", 10).Acquire(bg, 6)), must[theHold](t)(sa.Acquire(bg, 3))
		ctx, cancel := context.WithCancel(bg)
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = sa.Acquire(ctx, 5)
		}()
		time.Sleep(time.Second)
		ok(t, h.Release(bg))
		time.Sleep(time.Second)
		if st := stateOf(t, a, "k"); st.Units != 3 || a.Counts()["default"].Held != 1 {
			t.Errorf("%d units, %+v", st.Units, a.Counts())
		}
		cancel()
		<-done
		ok(t, other.Release(bg))
	})
}
