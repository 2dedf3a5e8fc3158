package anteroom_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
)

// All locks or none; one context; the order of the keys does not matter.
func TestAcquireAll(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		type mark struct{}
		m, _ := manager(t, s.client(), anteroom.Config{})
		other, _ := manager(t, s.client(), anteroom.Config{})
		set := must[*anteroom.HoldSet](t)(m.AcquireAll(context.WithValue(bg, mark{}, 7), "c", "a", "b", "a"))
		for i, h := range set.Holds() {
			if h.Key() != string("abc"[i]) {
				t.Errorf("hold %d is of %s", i, h.Key())
			}
			if _, err := other.Mutex(h.Key()).TryAcquire(bg); !errors.Is(err, anteroom.ErrNotAcquired) {
				t.Errorf("%s: %v", h.Key(), err)
			}
			ok(t, must[*anteroom.Hold](t)(m.Mutex(h.Key()).TryAcquire(set.Context())).Release(bg)) // enters again
		}
		if set.Context().Value(mark{}) != 7 {
			t.Error("the context's values are gone")
		}
		time.Sleep(time.Minute)
		ok(t, set.Err())
		ctx := set.Context()
		ok(t, set.Release(bg))
		if err := context.Cause(ctx); !errors.Is(err, anteroom.ErrNotHeld) {
			t.Errorf("after Release: %v", err)
		}
		if err := set.Release(bg); !errors.Is(err, anteroom.ErrNotHeld) {
			t.Errorf("a second Release: %v", err)
		}
		s.settle()
		for _, key := range []string{"a", "b", "c"} {
			s.nothing(t, key)
		}
		ok(t, must[*anteroom.HoldSet](t)(m.AcquireAll(bg)).Release(bg)) // of no keys
	})
}

// Where one cannot be had nothing is held, whatever the reason.
func TestAcquireAll_OrNone(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		other, _ := manager(t, s.client(), anteroom.Config{})
		taken := acquire(t, other.Mutex("b"))
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		_, err := m.AcquireAll(ctx, "a", "b", "c")
		of, _ := errors.AsType[*anteroom.Error](err)
		if !errors.Is(err, anteroom.ErrNotAcquired) || !errors.Is(err, context.DeadlineExceeded) || of.Key != "b" || of.Holder != taken.Holder() {
			t.Errorf("%v", err)
		}
		s.settle()
		s.nothing(t, "a")
		s.nothing(t, "c")
		ok(t, s.Set("c", "data"))
		ok(t, taken.Release(bg))
		if _, err := m.AcquireAll(bg, "a", "b", "c"); !errors.Is(err, anteroom.ErrConfig) {
			t.Errorf("%v", err)
		}
		s.settle()
		s.nothing(t, "a")
		s.nothing(t, "b")
	})
}

// One that is lost ends the context immediately, and the wait for the others; those that are held stay so until Release.
func TestAcquireAll_OneIsLost(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		other, _ := manager(t, s.client(), anteroom.Config{})
		set := must[*anteroom.HoldSet](t)(m.AcquireAll(bg, "a", "b"))
		ctx := set.Context()
		if broken := must[[]string](t)(other.ForceRelease(bg, "a")); len(broken) != 1 {
			t.Fatal("nobody had it")
		}
		<-ctx.Done()
		for _, err := range []error{context.Cause(ctx), set.Err()} {
			if of, _ := errors.AsType[*anteroom.Error](err); !errors.Is(err, anteroom.ErrLost) || of.Key != "a" {
				t.Errorf("%v", err)
			}
		}
		if _, err := other.Mutex("b").TryAcquire(bg); !errors.Is(err, anteroom.ErrNotAcquired) {
			t.Errorf("b: %v", err)
		}
		if err := set.Release(bg); !errors.Is(err, anteroom.ErrLost) {
			t.Errorf("%v", err)
		}
		taken := acquire(t, other.Mutex("b"))
		failed := make(chan error)
		go func() {
			_, err := m.AcquireAll(bg, "a", "b")
			failed <- err
		}()
		s.settle()
		s.Del("a")
		if of, _ := errors.AsType[*anteroom.Error](<-failed); of == nil || !errors.Is(of, anteroom.ErrLost) || of.Key != "a" {
			t.Errorf("lost while waiting for another: %v", of)
		}
		ok(t, taken.Release(bg))
	})
}

// Callers that name the same keys in any order never wait for each other in a circle.
func TestAcquireAll_NoDeadlock(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		var all sync.WaitGroup
		in := 0
		for _, keys := range [][]string{{"a", "b", "c"}, {"c", "b", "a"}, {"b", "c", "a"}} {
			m, _ := manager(t, s.client(), anteroom.Config{})
			all.Go(func() {
				for range 20 {
					set, err := m.AcquireAll(bg, keys...)
					if err != nil {
						t.Error(err)
						return
					}
					in++
					if in != 1 {
						t.Errorf("%d are in", in)
					}
					time.Sleep(time.Millisecond)
					in--
					ok(t, set.Release(bg))
				}
			})
		}
		all.Wait()
	})
}
