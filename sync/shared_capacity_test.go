package anteroom_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// In one process, as among processes, the least capacity of those inside counts, and of who comes next.
func TestCapacity_TheLeastInsideCounts(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, rec := manager(t, s.client(), anteroom.Config{})
		small, large := m.Semaphore("k", 3), m.Semaphore("k", 5)
		a := must[theHold](t)(small.Acquire(bg, 1))
		b := must[theHold](t)(large.Acquire(bg, 2)) // three units of three
		for name, sem := range map[string]*anteroom.Semaphore{"small": small, "large": large} {
			if _, err := sem.TryAcquire(bg, 1); !errors.Is(err, anteroom.ErrNotAcquired) {
				t.Errorf("a fourth of the %s one: %v", name, err)
			}
		}
		if _, err := large.TryAcquire(bg, 4); !errors.Is(err, anteroom.ErrNotAcquired) {
			t.Errorf("more than the lesser one has: %v", err)
		}
		if _, err := small.TryAcquire(bg, 4); !errors.Is(err, anteroom.ErrConfig) {
			t.Errorf("more than it has itself: %v", err)
		}
		ok(t, a.Release(bg)) // the last one with the lesser capacity
		c := must[theHold](t)(large.TryAcquire(bg, 3))
		if st := stateOfK(m); st.Capacity != 5 || st.Used != 5 {
			t.Errorf("%+v", st)
		}
		if _, err := small.TryAcquire(bg, 1); !errors.Is(err, anteroom.ErrNotAcquired) {
			t.Errorf("one of three beside five: %v", err)
		}
		ok(t, b.Release(bg))
		if _, err := small.TryAcquire(bg, 1); !errors.Is(err, anteroom.ErrNotAcquired) {
			t.Errorf("one of three beside three: %v", err)
		}
		ok(t, c.Release(bg))
		d := must[theHold](t)(small.TryAcquire(bg, 3))
		ok(t, d.Release(bg))
		if evs := rec.of(observe.EventCapacity); len(evs) > 0 {
			t.Errorf("no other process counts: %+v", evs)
		}
	})
}

// A lesser capacity counts in Redis before anybody comes in by it: other processes give no more than it leaves.
func TestCapacity_ALesserOneIsStatedFirst(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		other, _ := manager(t, s.client(), anteroom.Config{})
		a := must[theHold](t)(m.Semaphore("k", 5).Acquire(bg, 1))
		x := must[theHold](t)(other.Semaphore("k", 5).Acquire(bg, 2))
		in := make(chan theHold, 1)
		go func() { in <- must[theHold](t)(m.Semaphore("k", 3).Acquire(bg, 1)) }()
		time.Sleep(time.Second)
		if len(in) > 0 {
			t.Fatal("four units inside with one of three among them")
		}
		if info := must[anteroom.Info](t)(m.Inspect(bg, "k")); info.Capacity != 5 {
			t.Errorf("it counts before anybody has come in by it: %+v", info)
		}
		if _, err := other.Semaphore("k", 5).TryAcquire(bg, 1); !errors.Is(err, anteroom.ErrNotAcquired) {
			t.Errorf("it passes who waits: %v", err)
		}
		ok(t, x.Release(bg))
		b := <-in
		if info := must[anteroom.Info](t)(m.Inspect(bg, "k")); info.Capacity != 3 || info.Holders[0].Count != 2 {
			t.Errorf("%+v", info)
		}
		if st := stateOfK(m); st.Capacity != 3 {
			t.Errorf("%+v", st)
		}
		x = must[theHold](t)(other.Semaphore("k", 5).TryAcquire(bg, 1))
		if _, err := other.Semaphore("k", 5).TryAcquire(bg, 1); !errors.Is(err, anteroom.ErrNotAcquired) {
			t.Errorf("a fourth: %v", err)
		}
		ok(t, b.Release(bg)) // from here on five count again, also for the other process
		time.Sleep(10 * time.Millisecond)
		if info := must[anteroom.Info](t)(m.Inspect(bg, "k")); info.Capacity != 5 {
			t.Errorf("after the last one with less: %+v", info)
		}
		y := must[theHold](t)(other.Semaphore("k", 5).TryAcquire(bg, 2))
		for _, h := range []theHold{a, x, y} {
			ok(t, h.Release(bg))
		}
	})
}

// A lesser one that comes while its process has more than that, unused, gives the rest back.
func TestCapacity_UnusedUnitsAboveItGoBack(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		large := m.Semaphore("k", 5)
		a := must[theHold](t)(large.Acquire(bg, 2))
		b := must[theHold](t)(large.Acquire(bg, 3))
		ok(t, b.Release(bg)) // its units stay for 10 ms
		c := must[theHold](t)(m.Semaphore("k", 3).TryAcquire(bg, 1))
		if info := must[anteroom.Info](t)(m.Inspect(bg, "k")); info.Capacity != 3 || info.Holders[0].Count != 3 {
			t.Errorf("%+v", info)
		}
		ok(t, a.Release(bg))
		ok(t, c.Release(bg))
	})
}

// A lesser one that Redis does not hear of, or whose answer is lost, lets nobody in.
func TestCapacity_ACommandThatFails(t *testing.T) {
	for name, fail := range map[string]func(s *embedded){
		"refused":   func(s *embedded) { s.net.Refuse(); s.net.CloseAll() },
		"no answer": func(s *embedded) { s.net.BlackHole() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				m, _ := manager(t, s.client(), anteroom.Config{})
				a := must[theHold](t)(m.Semaphore("k", 5).Acquire(bg, 1))
				b := must[theHold](t)(m.Semaphore("k", 5).Acquire(bg, 1))
				time.Sleep(time.Second)
				ok(t, b.Release(bg)) // there is a unit for the next
				fail(s)
				if _, err := m.Semaphore("k", 3).TryAcquire(bg, 1); err == nil {
					t.Error("it came in by what nobody has stated")
				}
				in := make(chan theHold, 1)
				go func() { in <- must[theHold](t)(m.Semaphore("k", 3).Acquire(bg, 1)) }()
				time.Sleep(5 * time.Second)
				if len(in) > 0 {
					t.Error("it came in without an answer")
				}
				s.net.Heal()
				c := <-in
				if err := a.Err(); err != nil {
					t.Error(err)
				}
				if info := must[anteroom.Info](t)(m.Inspect(bg, "k")); info.Capacity != 3 {
					t.Errorf("%+v", info)
				}
				ok(t, a.Release(bg))
				ok(t, c.Release(bg))
			})
		})
	}
}

// Units without a Hold have the capacity of the Weighted that has acquired them; a Hold within a Hold has its own.
func TestCapacity_WeightedAndNested(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		small, large := m.Semaphore("k", 3).Weighted(), m.Semaphore("k", 5).Weighted()
		ok(t, large.Acquire(bg, 2))
		ok(t, small.Acquire(bg, 1))
		if large.TryAcquire(1) {
			t.Error("a fourth")
		}
		small.Release(1)
		if !large.TryAcquire(3) || small.TryAcquire(1) {
			t.Error("five of five, and no more")
		}
		small.Release(5) // any of them, whoever has acquired it
		h := must[theHold](t)(m.Semaphore("k", 5).Acquire(bg, 2))
		in := must[theHold](t)(m.Semaphore("k", 3).Acquire(h.Context(), 1))
		if large.TryAcquire(1) {
			t.Error("a fourth")
		}
		ok(t, h.Release(bg))
		if large.TryAcquire(3) || !large.TryAcquire(2) {
			t.Error("three of three")
		}
		ok(t, in.Release(bg))
		large.Release(2)
		time.Sleep(time.Second)
		if s.Exists("k") {
			t.Error("something is left")
		}
	})
}

// What cannot be reconciled is ErrConfig: another kind of lock, and another configuration.
func TestCapacity_WhatIsNotReconciled(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		h := must[theHold](t)(m.Semaphore("k", 3).Acquire(bg, 1))
		if _, err := m.RWMutex("k").RAcquire(bg); !errors.Is(err, anteroom.ErrConfig) {
			t.Errorf("an RWMutex: %v", err)
		}
		if _, err := m.Mutex("k").Acquire(bg); !errors.Is(err, anteroom.ErrConfig) {
			t.Errorf("a Mutex: %v", err)
		}
		other := must[*anteroom.Semaphore](t)(m.NewSemaphore(anteroom.LockConfig{Key: "k", LeaseTime: time.Minute}, 5))
		if _, err := other.Acquire(bg, 1); !errors.Is(err, anteroom.ErrConfig) || !strings.Contains(err.Error(), "LeaseTime") {
			t.Errorf("another lease: %v", err)
		}
		ok(t, h.Release(bg))
	})
}

// Before Redis is told that a larger capacity counts again, nobody comes in any more by the lesser one: others may have more already.
func TestCapacity_ALargerOneOnItsWay(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		small, large := m.Semaphore("k", 3), m.Semaphore("k", 5)
		a := must[theHold](t)(small.Acquire(bg, 1))
		b := must[theHold](t)(large.Acquire(bg, 1))
		c := must[theHold](t)(large.Acquire(bg, 1))
		ok(t, c.Release(bg)) // its unit stays for 10 ms
		s.net.BlackHole()
		ok(t, a.Release(bg)) // the command has no answer
		if h, err := small.TryAcquire(bg, 1); err == nil {
			t.Error("it is in, and others may have three more")
			ok(t, h.Release(bg))
		}
		s.net.Heal()
		d := must[theHold](t)(small.Acquire(bg, 1))
		if info := must[anteroom.Info](t)(m.Inspect(bg, "k")); info.Capacity != 3 {
			t.Errorf("%+v", info)
		}
		ok(t, b.Release(bg))
		ok(t, d.Release(bg))
	})
}

// What its own process has unused does not keep a lesser one out.
func TestCapacity_UnusedUnitsDoNotKeepItOut(t *testing.T) {
	for name, acquire := range map[string]func(*anteroom.Semaphore) (theHold, error){
		"Acquire":    func(s *anteroom.Semaphore) (theHold, error) { return s.Acquire(bg, 1) },
		"TryAcquire": func(s *anteroom.Semaphore) (theHold, error) { return s.TryAcquire(bg, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				m, _ := manager(t, s.client(), anteroom.Config{})
				other, _ := manager(t, s.client(), anteroom.Config{})
				x := must[theHold](t)(other.Semaphore("k", 5).Acquire(bg, 1))
				large := m.Semaphore("k", 5)
				a := must[theHold](t)(large.Acquire(bg, 1))
				b := must[theHold](t)(large.Acquire(bg, 3))
				ok(t, b.Release(bg)) // its units stay for 10 ms
				begin := time.Now()
				c, err := acquire(m.Semaphore("k", 3))
				if d := time.Since(begin); err != nil || d > 10*time.Millisecond {
					t.Fatalf("three units of three: %v, after %v", err, d)
				}
				for _, h := range []theHold{a, c, x} {
					ok(t, h.Release(bg))
				}
			})
		})
	}
}

// When the last one with a lesser capacity has left, and another one of its process has its units, other processes learn of that.
func TestCapacity_ALargerOneCountsAgain(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		other, _ := manager(t, s.client(), anteroom.Config{})
		small, large := m.Semaphore("k", 3), m.Semaphore("k", 5)
		a := must[theHold](t)(small.Acquire(bg, 1))
		b := must[theHold](t)(large.Acquire(bg, 2))
		in := make(chan theHold, 1)
		go func() { in <- must[theHold](t)(large.Acquire(bg, 1)) }()
		synctest.Wait()
		ok(t, a.Release(bg))
		c := <-in
		synctest.Wait()
		x, err := other.Semaphore("k", 5).TryAcquire(bg, 2)
		if err != nil {
			t.Fatalf("two of five beside three: %v", err)
		}
		for _, h := range []theHold{b, c, x} {
			ok(t, h.Release(bg))
		}
	})
}

// A place in line has the capacity of who waits now.
func TestCapacity_ANewHeadHasAnotherOne(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		other, _ := manager(t, s.client(), anteroom.Config{})
		x := must[theHold](t)(other.Semaphore("k", 5).Acquire(bg, 3))
		ctx, cancel := context.WithCancel(bg)
		in := make(chan theHold, 1)
		go func() {
			if _, err := m.Semaphore("k", 5).Acquire(ctx, 3); err == nil {
				t.Error("six of five")
			}
		}()
		synctest.Wait()
		go func() { in <- must[theHold](t)(m.Semaphore("k", 3).Acquire(bg, 3)) }()
		synctest.Wait()
		cancel()
		synctest.Wait()
		if places := s.HGet(lineOf("k"), "p1"); !strings.HasSuffix(places, " sem 3 3 0") {
			t.Errorf("the place: %q", places)
		}
		ok(t, x.Release(bg))
		ok(t, (<-in).Release(bg))
	})
}
