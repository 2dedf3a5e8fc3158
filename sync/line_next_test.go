package anteroom_test

import (
	"context"
	"testing"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
)

// This file is who gets the lock next, and when.

// A holder of ours that dies notifies nobody, and neither does its lease: the first in line asks when
// it ends, and not at its next confirmation.
func TestLine_TheEndOfALeaseNeedsNoMessage(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		for _, lease := range []time.Duration{700 * time.Millisecond, 5 * time.Second, 29 * time.Second} {
			s.HSet("k", "died:2000000000000000", "1")
			s.SetTTL("k", lease)
			start := time.Now()
			ok(t, acquire(t, m.Mutex("k")).Release(bg))
			if late := time.Since(start) - lease; late < 0 || late > 20*time.Millisecond {
				t.Errorf("a lease of %v: %v late", lease, late)
			}
		}
	})
}

// A client that is called while it gives up passes the lock on to the next one, with no delay.
func TestLine_ACalledOneThatHasGivenUpCallsTheNext(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		net := s.network()
		a, _ := manager(t, s.client(), anteroom.Config{})
		b, _ := manager(t, s.clientOver(net), anteroom.Config{})
		c, _ := manager(t, s.client(), anteroom.Config{})
		h := acquire(t, a.Mutex("k"))
		ctx, cancel := context.WithCancel(bg)
		called := s.waiting(t, ctx, b.Mutex("k"))
		next := s.waiting(t, bg, c.Mutex("k"))
		time.Sleep(100 * time.Millisecond)
		net.Delay(50 * time.Millisecond)
		ok(t, h.Release(bg))
		cancel() // its message is on the way
		start := time.Now()
		h = <-next
		if took := time.Since(start); took > 300*time.Millisecond {
			t.Errorf("in after %v", took)
		}
		if _, in := <-called; in {
			t.Error("who had given up is in")
		}
		ok(t, h.Release(bg))
		time.Sleep(time.Second)
		s.nothing(t, "k")
		anteroom.NothingLeft(t, b)
	})
}

// A called one that is killed costs the others a call lease and a confirmation at most, not its
// whole lease.
func TestLine_ACalledOneThatIsKilledCostsACallLease(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		net := s.network()
		a, _ := manager(t, s.client(), anteroom.Config{})
		b, _ := manager(t, s.clientOver(net), anteroom.Config{})
		c, _ := manager(t, s.client(), anteroom.Config{})
		h := acquire(t, a.Mutex("k"))
		ctx, cancel := context.WithCancel(bg)
		defer cancel()
		_ = s.waiting(t, ctx, b.Mutex("k"))
		next := s.waiting(t, bg, c.Mutex("k"))
		time.Sleep(time.Second)
		net.BlackHole()
		ok(t, h.Release(bg))
		start := time.Now()
		h = <-next
		if took := time.Since(start); took > 4100*time.Millisecond {
			t.Errorf("in after %v", took)
		}
		ok(t, h.Release(bg))
		net.Heal()
	})
}

// The watchdog's or somebody's ForceRelease lets the first in line in immediately.
func TestLine_AForcedReleaseCallsTheNext(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{})
		b, _ := manager(t, s.client(), anteroom.Config{})
		h := acquire(t, a.Mutex("k"))
		got := s.waiting(t, bg, b.Mutex("k"))
		time.Sleep(100 * time.Millisecond)
		if broken, err := a.ForceRelease(bg, "k"); len(broken) != 1 || err != nil {
			t.Fatal(broken, err)
		}
		next := isIn(t, got)
		if h.Held() {
			t.Error("the other one still holds")
		}
		_ = h.Release(bg)
		ok(t, next.Release(bg))
		s.nothing(t, "k")
	})
}

// A caller with another lease becomes the first here while its process waits in line: it gets the lease
// that it has asked for, and the lock is never left to nobody.
func TestLine_OtherTermsAtTheHead(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{})
		b, _ := manager(t, s.client(), anteroom.Config{})
		h := acquire(t, a.Mutex("k"))
		ctx, cancel := context.WithCancel(bg)
		defer cancel()
		_ = s.waiting(t, ctx, b.Mutex("k"))
		fixed := make(chan *anteroom.Hold, 1)
		go func() { h, _ := b.Mutex("k").Acquire(bg, anteroom.Lease(5*time.Second)); fixed <- h }()
		time.Sleep(100 * time.Millisecond)
		cancel()
		s.settle()
		start := time.Now()
		ok(t, h.Release(bg))
		h = <-fixed
		if took := time.Since(start); took > 100*time.Millisecond {
			t.Errorf("in after %v", took)
		}
		if left := s.TTL("k"); left < 4*time.Second || left > 5*time.Second {
			t.Errorf("a lease of %v", left)
		}
		ok(t, h.Release(bg))
		time.Sleep(time.Second)
		s.nothing(t, "k")
		anteroom.NothingLeft(t, b)
	})
}

// Another lease at the head does not cost the process its position, be it that a turn ends for it or
// that who was before it has given up.
func TestLine_OtherTermsKeepThePosition(t *testing.T) {
	for name, turn := range map[string]bool{"a turn ends": true, "the head gives up": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				a, _ := manager(t, s.client(), anteroom.Config{})
				b, _ := manager(t, s.client(), anteroom.Config{})
				c, _ := manager(t, s.client(), anteroom.Config{})
				cfg := anteroom.LockConfig{Key: "k", MaxHandoffs: 1, MaxHandoffTime: time.Millisecond}
				other := func() <-chan *anteroom.Hold {
					got := make(chan *anteroom.Hold, 1)
					go func() { h, _ := mutex(t, a, cfg).Acquire(bg, anteroom.Lease(5*time.Second)); got <- h }()
					s.settle()
					return got
				}
				var fixed <-chan *anteroom.Hold
				var h *anteroom.Hold
				if turn {
					mine := acquire(t, mutex(t, a, cfg))
					fixed = other()
					first := s.waiting(t, bg, b.Mutex("k"))
					ok(t, mine.Release(bg))
					h = isIn(t, first)
				} else {
					h = acquire(t, b.Mutex("k"))
					ctx, cancel := context.WithCancel(bg)
					_ = s.waiting(t, ctx, mutex(t, a, cfg))
					fixed = other()
					time.Sleep(100 * time.Millisecond)
					cancel()
				}
				s.settle()
				last := s.waiting(t, bg, c.Mutex("k"))
				time.Sleep(100 * time.Millisecond)
				ok(t, h.Release(bg))
				time.Sleep(100 * time.Millisecond)
				isOut(t, last)
				ok(t, isIn(t, fixed).Release(bg))
				ok(t, isIn(t, last).Release(bg))
				time.Sleep(time.Second)
				s.nothing(t, "k")
			})
		})
	}
}

// Behind a holder that calls nobody a waiter listens for the release, also where that one came
// while it waited in line.
func TestLine_TheReleaseOfAForeignClientThatCameLaterIsHeard(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		_, _, got, at := forger(t, s, anteroom.LockConfig{})
		s.Del("k")
		s.HSet("k", "foreign", "1")
		s.SetTTL("k", time.Hour)
		for s.spots("k")[0].n == at.n {
			time.Sleep(10 * time.Millisecond) // a confirmation comes soon
		}
		time.Sleep(100 * time.Millisecond)
		s.Del("k")
		s.Publish("lock:release:k", `{"lockKey":"k","releaseTime":1,"holder":"foreign"}`)
		s.settle()
		ok(t, isIn(t, got).Release(bg))
	})
}
