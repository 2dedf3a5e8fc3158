package anteroom_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// seenCalls keeps what an Observer is notified of calls.
type seenCalls struct {
	mu   sync.Mutex
	list []string
}

func (s *seenCalls) Called(class, how string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, class+" "+how)
}

func (s *seenCalls) want(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait() // a call is reported after its grant is passed on
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.list, want) {
		t.Errorf("calls %q, want %q", s.list, want)
	}
	s.list = nil
}

// waits acquires mu on a goroutine of its own, and returns the hold once it is there.
func waits(t *testing.T, mu *anteroom.Mutex) (come func() *anteroom.Hold) {
	t.Helper()
	got := make(chan *anteroom.Hold, 1)
	go func() {
		h, err := mu.Acquire(bg)
		if err != nil {
			t.Error(err)
		}
		got <- h
	}()
	synctest.Wait()
	return func() *anteroom.Hold { return <-got }
}

// How a process learns that it was called is reported, once for each call: by the message or, where it is lost, by a
// confirmation.
func TestLine_CallsAreReported(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		seen := &seenCalls{}
		a, _ := manager(t, s.client(), anteroom.Config{})
		b, _ := manager(t, s.client(), anteroom.Config{Observer: hooks(seen)})

		h := acquire(t, a.Mutex("k"))
		come := waits(t, mutex(t, b, anteroom.LockConfig{Key: "k", Name: "orders"}))
		ok(t, h.Release(bg))
		h = come()
		seen.want(t, "orders entered")
		ok(t, h.Release(bg))

		h = acquire(t, a.Mutex("k"))
		come = waits(t, mutex(t, b, anteroom.LockConfig{Key: "k", Name: "orders"}))
		s.settle()
		s.give(s.spots("k")[0], 2*time.Second)
		found := come()
		seen.want(t, "orders found")
		ok(t, found.Release(bg))
		_ = h.Release(bg)

		// A lease that ends by itself calls nobody: who takes the free lock was not called.
		s.HSet("k", "foreign", "1")
		s.SetTTL("k", 500*time.Millisecond)
		ok(t, acquire(t, b.Mutex("k")).Release(bg))
		seen.want(t)
	})
}

// A place of a process that has died is one until somebody is called beyond it.
func TestLine_DeadPlacesAreSeen(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{})
		b, _ := manager(t, s.client(), anteroom.Config{})
		h := acquire(t, a.Mutex("k"))
		s.addPlace("dead", -time.Minute)
		come := waits(t, b.Mutex("k"))
		if st := b.Snapshot(); len(st) != 1 || !st[0].InLine || st[0].Ahead != 1 {
			t.Errorf("%+v", st)
		}
		info, err := a.Inspect(bg, "k")
		if ok(t, err); info.InLine != 2 || info.First != "dead" || info.Open != 0 {
			t.Errorf("%+v", info)
		}
		ok(t, h.Release(bg))
		h = come()
		info, err = a.Inspect(bg, "k")
		if ok(t, err); info.InLine != 0 || info.First != "" {
			t.Errorf("%+v", info)
		}
		ok(t, h.Release(bg))
	})
}

// A process in line knows who holds the lock now, and how far it has come, though it asks
// for the lock once only.
func TestLine_AWaiterKnowsWhoHoldsTheLockNow(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{})
		b, _ := manager(t, s.client(), anteroom.Config{})
		c, rec := manager(t, s.client(), anteroom.Config{LongWait: 40 * time.Second, Defaults: anteroom.LockConfig{WatchdogPeriod: time.Second}})
		h := acquire(t, a.Mutex("k"))
		second := waits(t, b.Mutex("k"))
		third := waits(t, c.Mutex("k"))
		state := func() observe.State {
			t.Helper()
			states := c.Snapshot()
			if len(states) != 1 {
				t.Fatalf("%+v", states)
			}
			return states[0]
		}
		if st := state(); st.HeldBy != h.Holder() || !st.InLine || st.Ahead != 1 {
			t.Errorf("%+v", st)
		}
		ok(t, h.Release(bg))
		h = second()
		time.Sleep(time.Minute)
		if st := state(); st.HeldBy != h.Holder() || !st.InLine || st.Ahead != 0 {
			t.Errorf("%+v", st)
		}
		if evs := rec.of(observe.EventLongWait); len(evs) == 0 || evs[0].Holder != h.Holder() || !strings.Contains(evs[0].Text, ", and 0 in line before this one") {
			t.Errorf("%+v", evs)
		}
		ok(t, h.Release(bg))
		h = third()
		if st := state(); st.HeldBy != "" || st.InLine || st.Ahead != 0 {
			t.Errorf("%+v", st)
		}
		ok(t, h.Release(bg))
	})
}

// A turn that ends leaves a place behind for those who wait here. A caller that stops waiting then was
// refused: there was an answer, though nobody has asked.
func TestLine_GivingUpAfterATurnIsARefusal(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{})
		b, _ := manager(t, s.client(), anteroom.Config{})
		mu := mutex(t, a, anteroom.LockConfig{Key: "k", MaxHandoffs: 1})
		h := acquire(t, mu)
		come, ctx := waits(t, mu), context.Background()
		ctx, cancel := context.WithCancel(ctx)
		failed := make(chan error, 1)
		go func() {
			_, err := mu.Acquire(ctx)
			failed <- err
		}()
		other := waits(t, b.Mutex("k"))
		ok(t, h.Release(bg))
		ok(t, come().Release(bg)) // the one hand-off: the turn is over, and b has the lock
		held := other()
		synctest.Wait()
		if st := a.Snapshot(); len(st) != 1 || st[0].HeldBy != held.Holder() || !st[0].InLine {
			t.Errorf("%+v", st)
		}
		cancel()
		if err := <-failed; !errors.Is(err, anteroom.ErrNotAcquired) || errors.Is(err, anteroom.ErrUnavailable) {
			t.Error(err)
		}
		ok(t, held.Release(bg))
	})
}
