package anteroom_test

import (
	"testing"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
)

// A program may end right after its last RUnlock or Release. Who waits elsewhere then does not wait for the lease to end.
func TestShared_WhoLeavesHasGivenBack(t *testing.T) {
	for name, of := range map[string]func(m *anteroom.Manager) (lock, unlock func()){
		"RUnlock": func(m *anteroom.Manager) (lock, unlock func()) {
			rw := m.RWMutex("k")
			return rw.RLock, rw.RUnlock
		},
		"Unlock": func(m *anteroom.Manager) (lock, unlock func()) {
			rw := m.RWMutex("k")
			return rw.Lock, rw.Unlock
		},
		"Release": func(m *anteroom.Manager) (lock, unlock func()) {
			w := m.Semaphore("k", 1).Weighted()
			return func() { _ = w.Acquire(bg, 1) }, func() { w.Release(1) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				net := s.network()
				a, _ := manager(t, s.clientOver(net), anteroom.Config{})
				b, _ := manager(t, s.client(), anteroom.Config{})
				lock, unlock := of(a)
				lock()
				in := make(chan time.Time, 1)
				go func() {
					if name == "Release" {
						w := b.Semaphore("k", 1).Weighted()
						_ = w.Acquire(bg, 1)
						in <- time.Now()
						w.Release(1)
						return
					}
					rw := b.RWMutex("k")
					rw.Lock()
					in <- time.Now()
					rw.Unlock()
				}()
				time.Sleep(3 * time.Second)
				unlock()
				net.BlackHole() // the program has ended
				left := time.Now()
				if took := (<-in).Sub(left); took > time.Second {
					t.Errorf("the other waits for another %v", took)
				}
			})
		})
	}
}
