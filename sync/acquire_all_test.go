package anteroom_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// S10: several keys are acquired one after the other in the order of their bytes, each by a command of its own that names
// no other key. While one is waited for those before it are held, and those after it are not asked for.
func TestAcquireAll_S10_OneCommandPerKey(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		rdb, sent := s.client(), &said{off: true}
		rdb.AddHook(sent)
		m, _ := manager(t, rdb, anteroom.Config{})
		other, _ := manager(t, s.client(), anteroom.Config{})
		ok(t, acquire(t, m.Mutex("warm")).Release(bg))
		taken := acquire(t, other.Mutex("b"))
		sent.off = false
		got := make(chan *anteroom.HoldSet, 1)
		go func() {
			set, err := m.AcquireAll(bg, "b", "\xff", "B", "é", "a\x00", "9", "a", "10")
			ok(t, err)
			got <- set
		}()
		s.settle()
		asked := func(want ...string) {
			t.Helper()
			var keys []string
			for _, args := range sent.calls {
				if key := fmt.Sprint(args[3]); args[2] != 2 || args[4] != lineOf(key) {
					t.Errorf("a script about %q", args[3:])
				} else if !slices.Contains(keys, key) { // else it is a confirmation of its place, or a renewal
					keys = append(keys, key)
				}
			}
			if !slices.Equal(keys, want) {
				t.Errorf("asked for %q, want %q", keys, want)
			}
		}
		asked("10", "9", "B", "a", "a\x00", "b")
		ok(t, taken.Release(bg))
		set := <-got
		s.settle()
		asked("10", "9", "B", "a", "a\x00", "b", "é", "\xff")
		ok(t, set.Release(bg))
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
