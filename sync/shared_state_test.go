package anteroom_test

import (
	"context"
	"slices"
	"testing"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

func stateOf(t testing.TB, m *anteroom.Manager, key string) observe.State {
	t.Helper()
	for _, s := range m.Snapshot() {
		if s.Key == key {
			return s
		}
	}
	t.Fatalf("nothing is known of %q", key)
	return observe.State{}
}

// State.Count is the number of Holds, also of those inside another one.
func TestState_CountsNestedHoldsOfAnRWMutex(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		rw := m.RWMutex("k")
		for name, acquire := range map[string]func(context.Context, ...anteroom.AcquireOption) (theHold, error){"write": rw.Acquire, "read": rw.RAcquire} {
			holds := []theHold{must[theHold](t)(acquire(bg))}
			for range 19 {
				holds = append(holds, must[theHold](t)(acquire(holds[len(holds)-1].Context())))
			}
			if s := stateOf(t, m, "k"); s.Count != 20 {
				t.Errorf("%s: Count is %d of 20 Holds", name, s.Count)
			}
			other := must[theHold](t)(rw.RAcquire(holds[0].Context()))
			for _, h := range slices.Backward(holds) {
				ok(t, h.Release(bg))
			}
			if s := stateOf(t, m, "k"); s.Count != 1 {
				t.Errorf("%s: Count is %d of 1 Hold", name, s.Count)
			}
			ok(t, other.Release(bg))
		}
	})
}

// Who looks for what keeps a waiter out sees what it waits for.
func TestState_WaitersShowModeAndUnits(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		rw, sem, mu := m.RWMutex("rw"), m.Semaphore("sem", 5), m.Mutex("mutex")
		w, all, h := must[theHold](t)(rw.Acquire(bg)), must[theHold](t)(sem.Acquire(bg, 5)), acquire(t, mu)
		defer func() {
			ok(t, w.Release(bg))
			ok(t, all.Release(bg))
			ok(t, h.Release(bg))
		}()
		ctx, cancel := context.WithTimeout(bg, time.Minute)
		defer cancel()
		for _, waits := range []func(){
			func() { _, _ = rw.RAcquire(ctx) }, func() { _, _ = rw.Acquire(ctx) },
			func() { _, _ = sem.Acquire(ctx, 3) }, func() { _ = sem.Weighted().Acquire(ctx, 2) },
			func() { _, _ = mu.Acquire(ctx) },
		} {
			go waits()
			time.Sleep(time.Second)
		}
		type waiter struct {
			Mode  string
			Units int64
		}
		for key, want := range map[string][]waiter{"rw": {{"read", 1}, {"write", 1 << 20}}, "sem": {{"", 3}, {"", 2}}, "mutex": {{"", 0}}} {
			var got []waiter
			for _, w := range stateOf(t, m, key).Waiters {
				got = append(got, waiter{w.Mode, w.Units})
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %v wait, want %v", key, got, want)
			}
		}
		cancel()
		time.Sleep(time.Second)
	})
}
