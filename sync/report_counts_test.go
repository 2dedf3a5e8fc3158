package anteroom_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// The ages belong to the present owner and to those who wait now, and are 0 with nobody.
func TestCounts_AgesAreThoseOfTheOldest(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		count := func(want observe.Count) {
			t.Helper()
			synctest.Wait()
			if got := m.Counts()["default"]; got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
		}
		first := acquire(t, m.Mutex("a"))
		time.Sleep(time.Hour)
		second := acquire(t, m.Mutex("b"))
		time.Sleep(time.Second)
		count(observe.Count{Held: 2, OldestHold: time.Hour + time.Second})

		ctx, cancel := context.WithCancel(bg)
		defer cancel()
		var wg sync.WaitGroup
		var heir *anteroom.Hold
		wg.Go(func() { heir, _ = m.Mutex("a").Acquire(bg) })
		synctest.Wait()
		time.Sleep(time.Minute)
		wg.Go(func() { _, _ = m.Mutex("b").Acquire(ctx) })
		synctest.Wait()
		time.Sleep(time.Second)
		count(observe.Count{Held: 2, Waiting: 2, OldestHold: time.Hour + time.Minute + 2*time.Second, OldestWait: time.Minute + time.Second})

		// The next owner of a hand-off begins a hold of its own.
		ok(t, first.Release(bg))
		count(observe.Count{Held: 2, Waiting: 1, OldestHold: time.Minute + 2*time.Second, OldestWait: time.Second})
		cancel()
		wg.Wait()
		count(observe.Count{Held: 2, OldestHold: time.Minute + 2*time.Second})
		ok(t, second.Release(bg))
		count(observe.Count{Held: 1})
		ok(t, heir.Release(bg))
		if n := m.Counts()["default"]; n.Held != 0 || n.OldestHold != 0 {
			t.Errorf("nobody holds anything: %+v", n)
		}
	})
}

// A lock that was lost blocks its key in this process until it is unlocked, so its age
// continues; inner holds do not make it younger.
func TestCounts_ALostLockAgesUntilItIsUnlocked(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		mu := mutex(t, m, anteroom.LockConfig{Key: "k", Reentrant: true})
		mu.Lock()
		time.Sleep(time.Minute)
		mu.Lock()
		if broken, err := m.ForceRelease(bg, "k"); err != nil || len(broken) != 1 {
			t.Fatal(broken, err)
		}
		time.Sleep(time.Minute)
		if c := m.Counts()["default"]; c.Held != 1 || c.OldestHold != 2*time.Minute {
			t.Errorf("%+v", c)
		}
		mu.Unlock()
		mu.Unlock()
		synctest.Wait()
		if c := m.Counts()["default"]; c != (observe.Count{}) {
			t.Errorf("%+v", c)
		}
	})
}
