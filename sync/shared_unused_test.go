package anteroom_test

import (
	"context"
	"errors"
	"testing"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
)

// S30: units that nobody uses go back within about a second of the last exit, whoever has waited for them meanwhile.
func TestShared_S30_AfterWhoWaited(t *testing.T) {
	for name, play := range map[string]func(*anteroom.RWMutex){
		"a writer in vain": func(rw *anteroom.RWMutex) {
			rw.RLock()
			time.Sleep(3 * time.Second) // it is renewed
			if rw.TryLockFor(50 * time.Millisecond) {
				panic("beside a reader")
			}
			rw.RUnlock()
		},
		"a reader": func(rw *anteroom.RWMutex) {
			rw.Lock()
			time.Sleep(3 * time.Second)
			in := make(chan struct{})
			go func() { rw.RLock(); close(in) }()
			time.Sleep(time.Second)
			rw.Unlock()
			<-in
			rw.RUnlock()
		},
		"a reader in vain": func(rw *anteroom.RWMutex) {
			rw.Lock()
			time.Sleep(3 * time.Second)
			ctx, cancel := context.WithTimeout(bg, time.Second)
			defer cancel()
			go func() { time.Sleep(time.Second); rw.Unlock() }() // at the same moment
			if h, err := rw.RAcquire(ctx); err == nil {
				_ = h.Release(bg)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				a, _ := manager(t, s.client(), anteroom.Config{})
				b, _ := manager(t, s.client(), anteroom.Config{})
				play(a.RWMutex("k"))
				time.Sleep(1200 * time.Millisecond)
				if rw := b.RWMutex("k"); !rw.TryLock() {
					t.Error("units that nobody uses stay")
				} else {
					rw.Unlock()
				}
			})
		})
	}
}

// A client that another one has waited beside, in vain or until it was served, is not contended for good: its own tries succeed
// within about a second.
func TestShared_S22_NobodyWaitsAnyMore(t *testing.T) {
	for name, play := range map[string]func(t *testing.T, s *embedded, a, b, c *anteroom.Manager) func() bool{
		"called together": func(t *testing.T, s *embedded, a, b, c *anteroom.Manager) func() bool {
			w := must[theHold](t)(c.RWMutex("k").Acquire(bg))
			in := make(chan theHold, 2)
			for _, m := range []*anteroom.Manager{a, b} {
				go func() { in <- must[theHold](t)(m.RWMutex("k").RAcquire(bg)) }()
				s.settle()
			}
			ok(t, w.Release(bg))
			<-in
			<-in
			return a.RWMutex("k").TryRLock
		},
		"given up": func(t *testing.T, s *embedded, a, b, _ *anteroom.Manager) func() bool {
			must[theHold](t)(a.Semaphore("k", 10).Acquire(bg, 1))
			ctx, cancel := context.WithTimeout(bg, time.Second)
			defer cancel()
			if _, err := b.Semaphore("k", 10).Acquire(ctx, 10); !errors.Is(err, anteroom.ErrNotAcquired) {
				t.Errorf("%v", err)
			}
			return func() bool { _, err := a.Semaphore("k", 10).TryAcquire(bg, 1); return err == nil }
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				a, _ := manager(t, s.client(), anteroom.Config{})
				b, _ := manager(t, s.client(), anteroom.Config{})
				c, _ := manager(t, s.client(), anteroom.Config{})
				try := play(t, s, a, b, c)
				time.Sleep(2 * time.Second)
				if !try() {
					t.Error("refused, though nobody waits")
				}
			})
		})
	}
}

// S30: the last of several readers that leaves while the client closes is noticed.
func TestShared_S30_TheLastReaderBesideClose(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		rw := m.RWMutex("k")
		rw.RLock()
		rw.RLock()
		time.Sleep(5 * time.Second)
		ctx, cancel := context.WithTimeout(bg, 500*time.Millisecond)
		defer cancel()
		closed := make(chan error, 1)
		go func() { closed <- m.Close(ctx) }()
		time.Sleep(50 * time.Millisecond)
		rw.RUnlock()
		rw.RUnlock()
		ok(t, <-closed)
	})
}
