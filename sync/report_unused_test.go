package anteroom_test

import (
	"testing"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// What nobody has, nobody loses: neither the log nor an event nor a metric has a word of a lock that lingers, or of units that a
// process keeps for a moment, when they are gone.
func TestQuiet_WhatNobodyHasIsNotLost(t *testing.T) {
	const betweenRenewals = 500 * time.Millisecond // a second after the last one the next is due, and what it finds unused goes back
	for name, use := range map[string]func(t *testing.T, m *anteroom.Manager){
		"a Mutex that lingers": func(t *testing.T, m *anteroom.Manager) {
			mu := mutex(t, m, anteroom.LockConfig{Key: "k", Linger: 5 * time.Second})
			pass(mu) // the subscription begins
			time.Sleep(time.Second)
			ok(t, acquire(t, mu).Release(bg))
		},
		"a Semaphore": func(t *testing.T, m *anteroom.Manager) {
			sem := m.Semaphore("k", 3)
			a, b := must[theHold](t)(sem.Acquire(bg, 1)), must[theHold](t)(sem.Acquire(bg, 1))
			time.Sleep(betweenRenewals)
			ok(t, b.Release(bg))
			b = must[theHold](t)(sem.Acquire(bg, 1)) // by what the process has
			ok(t, a.Release(bg))
			ok(t, b.Release(bg))
		},
		"a Semaphore without a Hold": func(t *testing.T, m *anteroom.Manager) {
			w := m.Semaphore("k", 3).Weighted()
			ok(t, w.Acquire(bg, 2))
			time.Sleep(betweenRenewals)
			w.Release(1)
			ok(t, w.Acquire(bg, 1))
			w.Release(2)
		},
		"an RWMutex": func(_ *testing.T, m *anteroom.Manager) {
			rw := m.RWMutex("k")
			rw.RLock()
			rw.RLock()
			time.Sleep(betweenRenewals)
			rw.RUnlock()
			rw.RUnlock()
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				j, c := &journal{}, newCounter()
				m, rec := manager(t, s.client(), anteroom.Config{Logger: j.operator(), Observer: hooks(c)})
				use(t, m)
				if !s.Exists("k") {
					t.Fatal("it was not kept")
				}
				s.Del("k")
				time.Sleep(time.Minute)
				j.wrote(t, name)
				if lost := rec.of(observe.EventLost); len(lost) > 0 || c.get("lost/gone") > 0 {
					t.Errorf("%d are counted as lost, events %+v", c.get("lost/gone"), lost)
				}
			})
		})
	}
}

// Who is inside loses it, also those whom nobody can notify, and those who are on their way out.
func TestQuiet_WhatSomebodyHasIsLost(t *testing.T) {
	for name, use := range map[string]func(t *testing.T, m *anteroom.Manager) (leave func()){
		"a Mutex that may linger": func(t *testing.T, m *anteroom.Manager) func() {
			h := acquire(t, mutex(t, m, anteroom.LockConfig{Key: "k", Linger: 5 * time.Second}))
			return func() { _ = h.Release(bg) }
		},
		"a Semaphore": func(t *testing.T, m *anteroom.Manager) func() {
			h := must[theHold](t)(m.Semaphore("k", 3).Acquire(bg, 1))
			return func() { _ = h.Release(bg) }
		},
		"a Semaphore without a Hold": func(t *testing.T, m *anteroom.Manager) func() {
			w := m.Semaphore("k", 3).Weighted()
			ok(t, w.Acquire(bg, 1))
			return func() { w.Release(1) }
		},
		"a reader": func(_ *testing.T, m *anteroom.Manager) func() {
			rw := m.RWMutex("k")
			rw.RLock()
			return rw.RUnlock
		},
		"a writer": func(_ *testing.T, m *anteroom.Manager) func() {
			rw := m.RWMutex("k")
			rw.Lock()
			return rw.Unlock
		},
	} {
		for _, out := range []time.Duration{0, time.Minute} { // the exit finds it, or a renewal
			t.Run(name+" for "+out.String(), func(t *testing.T) {
				bubble(t, func(t *testing.T, s *embedded) {
					j, c := &journal{}, newCounter()
					m, rec := manager(t, s.client(), anteroom.Config{Logger: j.operator(), Observer: hooks(c)})
					leave := use(t, m)
					time.Sleep(time.Second)
					s.Del("k")
					time.Sleep(out)
					leave()
					time.Sleep(time.Minute)
					j.wrote(t, name, "ERROR Redis no longer has it")
					if lost := rec.of(observe.EventLost); len(lost) != 1 || c.get("lost/gone") != 1 {
						t.Errorf("%d are counted as lost, events %+v", c.get("lost/gone"), lost)
					}
				})
			})
		}
	}
}
