package anteroom_test

import (
	"context"
	"errors"
	"testing"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
)

// triesOfEachKind tries to take a lock at the key k, of each kind.
var triesOfEachKind = map[string]func(m *anteroom.Manager) (theHold, error){
	"a Mutex": func(m *anteroom.Manager) (theHold, error) { return m.Mutex("k").TryAcquire(bg) },
	"a Mutex that lingers": func(m *anteroom.Manager) (theHold, error) {
		mu, err := m.NewMutex(anteroom.LockConfig{Key: "k", Linger: 5 * time.Second})
		if err != nil {
			return nil, err
		}
		return mu.TryAcquire(bg)
	},
	"a reader":    func(m *anteroom.Manager) (theHold, error) { return m.RWMutex("k").TryRAcquire(bg) },
	"a writer":    func(m *anteroom.Manager) (theHold, error) { return m.RWMutex("k").TryAcquire(bg) },
	"a Semaphore": func(m *anteroom.Manager) (theHold, error) { return m.Semaphore("k", 3).TryAcquire(bg, 1) },
}

// Redis is silent: each try ends after its own time limit, whatever was sent before it and has no answer yet.
func TestTry_EndsAfterItsOwnLimit(t *testing.T) {
	for name, try := range triesOfEachKind {
		for _, pause := range []time.Duration{0, 10 * time.Millisecond, 500 * time.Millisecond, 1500 * time.Millisecond} {
			t.Run(name+" after "+pause.String(), func(t *testing.T) {
				bubble(t, func(t *testing.T, s *embedded) {
					m, _ := manager(t, s.client(), anteroom.Config{})
					pass(m.Mutex("warm"))
					s.net.BlackHole()
					for i := range 5 {
						begin := time.Now()
						h, err := try(m)
						if !errors.Is(err, anteroom.ErrUnavailable) || h != nil {
							t.Errorf("try %d: %v", i, err)
						}
						if took := time.Since(begin); took > time.Second {
							t.Errorf("try %d took %v", i, took)
						}
						time.Sleep(pause)
					}
				})
			})
		}
	}
}

// So does one that nobody can notify of a loss, also where go-redis ignores deadlines: it is not held up as a Lock may be.
func TestTry_ByTheWordEndsAfterItsOwnLimit(t *testing.T) {
	for name, try := range map[string]func(m *anteroom.Manager) bool{
		"TryLock":             func(m *anteroom.Manager) bool { return m.Mutex("k").TryLock() },
		"TryLock of a writer": func(m *anteroom.Manager) bool { return m.RWMutex("k").TryLock() },
		"TryRLock":            func(m *anteroom.Manager) bool { return m.RWMutex("k").TryRLock() },
		"Weighted.TryAcquire": func(m *anteroom.Manager) bool { return m.Semaphore("k", 3).Weighted().TryAcquire(2) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				m, _ := manager(t, s.client(), anteroom.Config{})
				pass(m.Mutex("warm"))
				s.net.BlackHole()
				begin := time.Now()
				if try(m) {
					t.Error("it came in")
				}
				if took := time.Since(begin); took > time.Second {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// The answer to what somebody else had asked for before, and given up, says nothing about a try that came after it.
func TestTry_IsRefusedByItsOwnAnswerOnly(t *testing.T) {
	mutex := func(m *anteroom.Manager, ctx context.Context) (theHold, error) { return m.Mutex("k").Acquire(ctx) }
	writer := func(m *anteroom.Manager, ctx context.Context) (theHold, error) { return m.RWMutex("k").Acquire(ctx) }
	reader := func(m *anteroom.Manager, ctx context.Context) (theHold, error) { return m.RWMutex("k").RAcquire(ctx) }
	units := func(n int64) func(m *anteroom.Manager, ctx context.Context) (theHold, error) {
		return func(m *anteroom.Manager, ctx context.Context) (theHold, error) {
			return m.Semaphore("k", 3).Acquire(ctx, n)
		}
	}
	for name, c := range map[string]struct {
		other  func(m *anteroom.Manager, ctx context.Context) (theHold, error) // what another process has
		before func(m *anteroom.Manager, ctx context.Context) (theHold, error) // what somebody here asks for then
		frees  bool                                                            // the other one gives back before the try
		try    string
	}{
		"units beside a larger request":       {units(2), units(3), false, "a Semaphore"},
		"a reader beside a writer":            {reader, writer, false, "a reader"},
		"a Mutex that is free by now":         {mutex, mutex, true, "a Mutex"},
		"a writer that would be alone by now": {reader, writer, true, "a writer"},
		"units that are free by now":          {units(2), units(2), true, "a Semaphore"},
		"a Mutex whose answer is late":        {nil, mutex, false, "a Mutex"},
		"a writer whose answer is late":       {nil, writer, false, "a writer"},
		"units whose answer is late":          {nil, units(3), false, "a Semaphore"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				net := s.network()
				m, _ := manager(t, s.clientOver(net), anteroom.Config{CommandTimeout: 4 * time.Second})
				other, _ := manager(t, s.client(), anteroom.Config{})
				pass(m.Mutex("warm"))
				var h theHold
				delay := 1900 * time.Millisecond // too little is left of what is granted then
				if c.other != nil {
					h, delay = must[theHold](t)(c.other(other, bg)), 200*time.Millisecond
				}
				s.settle()
				net.Delay(delay)
				ctx, cancel := context.WithTimeout(bg, 50*time.Millisecond)
				defer cancel()
				if _, err := c.before(m, ctx); err == nil {
					t.Fatal("it came in")
				}
				time.Sleep(delay - 100*time.Millisecond) // Redis has answered
				if c.frees {
					ok(t, h.Release(bg)) // of which m hears after that answer
				} else {
					net.Heal()
				}
				begin := time.Now()
				got, err := triesOfEachKind[c.try](m)
				if err != nil {
					t.Fatalf("the try: %v", err)
				}
				if took := time.Since(begin); took < 50*time.Millisecond {
					t.Errorf("%v: it did not come before the answer", took)
				}
				ok(t, got.Release(bg))
			})
		})
	}
}
