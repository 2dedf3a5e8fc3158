package anteroom_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
)

// S1: what Go's own tests of sync.RWMutex check, of ours.

var _ interface {
	sync.Locker
	RLock()
	RUnlock()
	TryLock() bool
	TryRLock() bool
	RLocker() sync.Locker
} = (*anteroom.RWMutex)(nil)

// As many readers as there are are inside together.
func TestRWMutex_ParallelReaders(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{})
		b, _ := manager(t, s.client(), anteroom.Config{})
		in, out := make(chan bool), make(chan bool)
		var wg sync.WaitGroup
		for i := range 10 {
			rw := []*anteroom.Manager{a, b}[i%2].RWMutex("k")
			wg.Go(func() {
				rw.RLock()
				in <- true
				<-out
				rw.RUnlock()
			})
		}
		for range 10 {
			<-in
		}
		close(out)
		wg.Wait()
	})
}

// hammerRW lets readers and a few writers of several clients look for each other.
func hammerRW(t *testing.T, rws []*anteroom.RWMutex, readers, rounds int) {
	t.Helper()
	var activity atomic.Int32
	var wg sync.WaitGroup
	read := func(rw *anteroom.RWMutex) {
		for i := range rounds {
			if i%8 == 3 {
				for !rw.TryRLock() {
					runtime.Gosched()
				}
			} else {
				rw.RLock()
			}
			if n := activity.Add(1); n < 1 || n >= 10000 {
				t.Errorf("a reader finds %d", n)
			}
			activity.Add(-1)
			rw.RUnlock()
		}
	}
	write := func(rw *anteroom.RWMutex) {
		for i := range rounds {
			if i%8 == 3 {
				for !rw.TryLockFor(time.Second) {
					runtime.Gosched()
				}
			} else {
				rw.Lock()
			}
			if n := activity.Add(10000); n != 10000 {
				t.Errorf("a writer finds %d", n)
			}
			activity.Add(-10000)
			rw.Unlock()
		}
	}
	for i, rw := range rws {
		wg.Go(func() { write(rw) })
		for range readers {
			wg.Go(func() { read(rws[(i+1)%len(rws)]) })
		}
	}
	wg.Wait()
}

func TestRWMutex_Hammer(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	for _, fair := range []bool{true, false} {
		a, _ := manager(t, s.Client(t), anteroom.Config{Defaults: anteroom.LockConfig{Fair: fair}})
		b, _ := manager(t, s.Client(t), anteroom.Config{Defaults: anteroom.LockConfig{Fair: fair}})
		hammerRW(t, []*anteroom.RWMutex{a.RWMutex("one")}, 5, 200)
		hammerRW(t, []*anteroom.RWMutex{a.RWMutex("k"), b.RWMutex("k"), a.RWMutex("k")}, 3, 100)
	}
}

func TestRWMutex_RLocker(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		rw := m.RWMutex("k")
		wlocked, rlocked := make(chan bool, 1), make(chan bool, 1)
		rl := rw.RLocker()
		go func() {
			for range 10 {
				rl.Lock()
				rl.Lock()
				rlocked <- true
				rw.Lock()
				wlocked <- true
			}
		}()
		for range 10 {
			<-rlocked
			rl.Unlock()
			select {
			case <-wlocked:
				t.Fatal("RLocker is a write lock")
			default:
			}
			rl.Unlock()
			<-wlocked
			select {
			case <-rlocked:
				t.Fatal("RLocker does not respect the writer")
			default:
			}
			rw.Unlock()
		}
	})
}

func TestRWMutex_Misuse(t *testing.T) {
	for name, misuse := range map[string]func(rw *anteroom.RWMutex){
		"Unlock":                    func(rw *anteroom.RWMutex) { rw.Unlock() },
		"Unlock after RLock":        func(rw *anteroom.RWMutex) { rw.RLock(); defer rw.RUnlock(); rw.Unlock() },
		"Unlock twice":              func(rw *anteroom.RWMutex) { pass(rw); rw.Unlock() },
		"RUnlock":                   func(rw *anteroom.RWMutex) { rw.RUnlock() },
		"RUnlock after Lock":        func(rw *anteroom.RWMutex) { rw.Lock(); defer rw.Unlock(); rw.RUnlock() },
		"RUnlock twice":             func(rw *anteroom.RWMutex) { pass(rw.RLocker()); rw.RUnlock() },
		"RUnlock of a Hold":         func(rw *anteroom.RWMutex) { h, _ := rw.RAcquire(bg); defer h.Release(bg); rw.RUnlock() },
		"Unlock of a Hold":          func(rw *anteroom.RWMutex) { h, _ := rw.Acquire(bg); defer h.Release(bg); rw.Unlock() },
		"Unlock of the RLocker":     func(rw *anteroom.RWMutex) { rw.RLocker().Unlock() },
		"Lock of a zero RWMutex":    func(*anteroom.RWMutex) { new(anteroom.RWMutex).Lock() },
		"RLock of a zero RWMutex":   func(*anteroom.RWMutex) { new(anteroom.RWMutex).RLock() },
		"RUnlock of a zero RWMutex": func(*anteroom.RWMutex) { new(anteroom.RWMutex).RUnlock() },
		"RLock of a nil RWMutex":    func(*anteroom.RWMutex) { (*anteroom.RWMutex)(nil).RLock() },
		"Unlock of a nil RWMutex":   func(*anteroom.RWMutex) { (*anteroom.RWMutex)(nil).Unlock() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				m, _ := manager(t, s.client(), anteroom.Config{})
				rw := m.RWMutex("k")
				func() {
					defer func() {
						err, is := recover().(error)
						if e := (*anteroom.Error)(nil); !is || !errors.As(err, &e) {
							t.Errorf("panics with %v, want an *Error", err)
						}
					}()
					misuse(rw)
				}()
				if !rw.TryLockFor(time.Second) {
					t.Error("the lock is unusable afterwards")
				} else {
					rw.Unlock()
				}
			})
		})
	}
}

func TestRWMutex_Try(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		o, _ := manager(t, s.client(), anteroom.Config{})
		rw, other := m.RWMutex("k"), o.RWMutex("k")
		rw.Lock()
		for _, l := range []*anteroom.RWMutex{rw, other} {
			if l.TryLock() || l.TryRLock() || l.TryLockFor(time.Millisecond) || l.TryRLockFor(-1) {
				t.Error("beside a writer")
			}
		}
		rw.Unlock()
		rw.RLock()
		for _, l := range []*anteroom.RWMutex{rw, other} {
			if l.TryLock() {
				t.Error("a writer beside a reader")
			}
			if !l.TryRLock() {
				t.Error("no reader beside a reader")
			} else {
				l.RUnlock()
			}
		}
		rw.RUnlock()
		time.Sleep(time.Second) // two were inside: unused units linger
		if !other.TryLock() {
			t.Error("the lock is free")
		} else {
			other.Unlock()
		}
	})
}

// A writer that waits keeps new readers out, here and elsewhere, and those come in after it.
func TestRWMutex_AWaitingWriterKeepsReadersOut(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		var rws []*anteroom.RWMutex
		for range 3 {
			m, _ := manager(t, s.client(), anteroom.Config{})
			rws = append(rws, m.RWMutex("k"))
		}
		rws[0].RLock()
		wrote := make(chan bool, 1)
		go func() {
			rws[1].Lock()
			wrote <- true
			rws[1].Unlock()
		}()
		synctest.Wait()
		time.Sleep(10 * time.Millisecond)
		read := make(chan bool, 3)
		for _, rw := range rws {
			go func() {
				rw.RLock()
				read <- len(wrote) == 1
				rw.RUnlock()
			}()
		}
		synctest.Wait()
		time.Sleep(10 * time.Millisecond)
		if len(read) > 0 {
			t.Error("a reader passed the writer")
		}
		rws[0].RUnlock()
		for range rws {
			if !<-read {
				t.Error("a reader came in before the writer")
			}
		}
	})
}

func TestRWMutex_Contexts(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		rw := m.RWMutex("k")
		h := must[*anteroom.Hold](t)(rw.Acquire(bg))
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		if _, err := rw.RAcquire(ctx); !errors.Is(err, anteroom.ErrNotAcquired) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("RAcquire: %v", err)
		}
		if _, err := rw.TryRAcquire(bg); !errors.Is(err, anteroom.ErrNotAcquired) {
			t.Errorf("TryRAcquire: %v", err)
		}
		if _, err := rw.Acquire(bg, anteroom.Wait(time.Second)); !errors.Is(err, anteroom.ErrNotAcquired) {
			t.Errorf("Acquire: %v", err)
		}
		if h.Key() != "k" || !h.Held() || h.TTL() <= 0 || h.Holder() != m.ClientID() || h.Since().IsZero() {
			t.Errorf("%v %v %v %q %v", h.Key(), h.Held(), h.TTL(), h.Holder(), h.Since())
		}
		ok(t, h.Release(bg))
		if err := context.Cause(h.Context()); !errors.Is(err, anteroom.ErrNotHeld) {
			t.Errorf("cause after the release: %v", err)
		}
		if err := h.Release(bg); !errors.Is(err, anteroom.ErrNotHeld) {
			t.Errorf("second release: %v", err)
		}
		ok(t, rw.RDo(bg, func(ctx context.Context) error {
			if !rw.TryRLock() {
				t.Error("one reader more")
			} else {
				rw.RUnlock()
			}
			return ctx.Err()
		}))
		if s.Exists("k") {
			time.Sleep(20 * time.Millisecond) // unused units linger
		}
		if s.Exists("k") {
			t.Error("the key is left")
		}
	})
}
