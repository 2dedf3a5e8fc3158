package anteroom_test

import (
	"context"
	"errors"
	"testing"

	anteroom "github.com/anteroom/anteroom/sync"
)

// Existing code moves from x/sync's Weighted to this one: no count that is right there panics here.
func TestWeighted_CountsAsThoseOfXSync(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		w := m.Semaphore("k", 2).Weighted()
		if w.TryAcquire(3) {
			t.Error("3 of 2 units")
		}
		ok(t, w.Acquire(bg, 2))
		if !w.TryAcquire(0) {
			t.Error("no unit was refused")
		}
		ok(t, w.Acquire(bg, 0))
		w.Release(0)
		w.Release(2)
		if s.Exists("k") {
			t.Error("units are left in Redis")
		}
		if err := w.Acquire(bg, 3); !errors.Is(err, anteroom.ErrConfig) {
			t.Errorf("3 of 2 units: %v", err)
		}
		ended, end := context.WithCancel(bg)
		end()
		if err := w.Acquire(ended, 0); !errors.Is(err, anteroom.ErrNotAcquired) || !errors.Is(err, context.Canceled) {
			t.Errorf("no unit with a context that has ended: %v", err)
		}
		for what, f := range map[string]func(){
			"TryAcquire(-1)":     func() { w.TryAcquire(-1) },
			"Release(-1)":        func() { w.Release(-1) },
			"refused TryAcquire": func() { m.Semaphore("k", 0).Weighted().TryAcquire(0) },
			"refused Release":    func() { m.Semaphore("k", 0).Weighted().Release(0) },
		} {
			if e := panicOf(f); e == nil {
				t.Errorf("%s does not panic", what)
			}
		}
	})
}

// panicOf returns the *Error with which f panics, nil if it panics with none.
func panicOf(f func()) (e *anteroom.Error) {
	defer func() { e, _ = recover().(*anteroom.Error) }()
	f()
	return nil
}
