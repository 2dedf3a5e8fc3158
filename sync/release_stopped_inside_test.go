package anteroom

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/sync/observe"
)

// A process was stopped, or its machine suspended, for longer than its lease, and the first that it does is to unlock: the loss is
// reported, for each kind of lock, and nobody comes in by what Redis has ended.
func TestRelease_AfterAStopTellsOfTheLoss(t *testing.T) {
	bg := context.Background()
	for name, c := range map[string]struct{ in, out func(m *Manager) }{
		"a Mutex":  {func(m *Manager) { m.Mutex("k").Lock() }, func(m *Manager) { m.Mutex("k").Unlock() }},
		"a writer": {func(m *Manager) { m.RWMutex("k").Lock() }, func(m *Manager) { m.RWMutex("k").Unlock() }},
		"a reader": {func(m *Manager) { m.RWMutex("k").RLock() }, func(m *Manager) { m.RWMutex("k").RUnlock() }},
		"one of two readers": {
			func(m *Manager) { m.RWMutex("k").RLock(); m.RWMutex("k").RLock() },
			func(m *Manager) { m.RWMutex("k").RUnlock() },
		},
		"the last of two readers": {
			func(m *Manager) { readLocks(m); readLocks(m)() },
			func(m *Manager) { m.RWMutex("k").RUnlock() },
		},
		"units": {func(m *Manager) { _ = m.Semaphore("k", 3).Weighted().Acquire(bg, 2) }, func(m *Manager) { m.Semaphore("k", 3).Weighted().Release(2) }},
	} {
		for how, suspended := range map[string]bool{"stopped": false, "suspended": true} {
			if !suspended && strings.Contains(name, "reader") {
				continue // who reads asks Redis each second, by a timer that a test cannot stop
			}
			t.Run(name+", "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					events := make(chan observe.EventKind, 100)
					m, s := insideServer(t, Config{OnEvent: func(e observe.Event) {
						if e.Kind == observe.EventLost || e.Kind == observe.EventUnlockLost {
							events <- e.Kind
						}
					}})
					defer func() { _ = m.CloseWithin(time.Second) }()
					var asleep atomic.Int64
					m.leases.Stop()
					suspendable(m, &asleep)
					m.leases.Start()
					c.in(m)
					time.Sleep(time.Second)
					m.dog.Stop()
					m.leases.Stop()
					if suspended {
						asleep.Store(int64(31 * time.Second))
					} else {
						time.Sleep(31 * time.Second)
					}
					s.FastForward(31 * time.Second)
					c.out(m)
					m.leases.Start()
					time.Sleep(time.Second)
					var seen []observe.EventKind
					for len(events) > 0 {
						seen = append(seen, <-events)
					}
					slices.Sort(seen)
					if !slices.Equal(seen, []observe.EventKind{observe.EventLost, observe.EventUnlockLost}) {
						t.Errorf("events: %v", seen)
					}
				})
			})
		}
	}
}
