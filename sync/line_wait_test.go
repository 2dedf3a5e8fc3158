package anteroom_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	anteroom "github.com/anteroom/anteroom/sync"
)

// number is that of a field in Redis.
func number(t *testing.T, field string) uint64 {
	t.Helper()
	_, n, ok := lettucecompat.ParseField(field)
	if !ok {
		t.Fatalf("not a field of ours: %q", field)
	}
	return n
}

// The numbers of a client's fields only grow, and have 16 digits whatever the clock says, which distinguishes them from a
// foreign client's: in here it is the year 2000.
func TestLine_NumbersGrow(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		last := uint64(0)
		m, _ := manager(t, s.client(), anteroom.Config{})
		for range 5 {
			h := acquire(t, m.Mutex("k"))
			n := number(t, s.holders("k")[0])
			if s.holders("k")[0] != h.Holder() || n < lettucecompat.FirstNumber || n > lettucecompat.LastNumber || n <= last {
				t.Errorf("%s, after the number %d; in Redis %v", h.Holder(), last, s.holders("k"))
			}
			last = n
			ok(t, h.Release(bg))
		}
	})
}

// A refused client waits in line, and the release calls it: the waiter is in with no command of its own, and nothing is left in
// the end.
func TestLine_WhoWaitsIsCalled(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{})
		rdb, sent := s.client(), &traffic{}
		rdb.AddHook(sent)
		b, _ := manager(t, rdb, anteroom.Config{})
		first := acquire(t, a.Mutex("k"))
		got := s.waiting(t, bg, b.Mutex("k"))
		time.Sleep(200 * time.Millisecond) // a place that was taken before the subscription was up is confirmed after it
		spots := s.spots("k")
		sent.take()
		ok(t, first.Release(bg))
		h := isIn(t, got)
		if h.Holder() != spots[0].field() || s.holders("k")[0] != h.Holder() {
			t.Errorf("%v is in, %v waited, %v is in Redis", h.Holder(), spots, s.holders("k"))
		}
		if n := sent.take(); n != 0 {
			t.Errorf("%d commands of the one that was called, want none", n)
		}
		ok(t, h.Release(bg))
		s.nothing(t, "k")
	})
}

// A try does not wait in line, and takes nothing from waiters.
func TestLine_ATryNeitherWaitsNorOvertakes(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{})
		b, _ := manager(t, s.client(), anteroom.Config{})
		rdb, sent := s.client(), &traffic{}
		rdb.AddHook(sent)
		c, _ := manager(t, rdb, anteroom.Config{})
		ok(t, acquire(t, c.Mutex("warm")).Release(bg))
		first := acquire(t, a.Mutex("k"))
		sent.take()
		if _, err := c.Mutex("k").TryAcquire(bg); !errors.Is(err, anteroom.ErrNotAcquired) || s.Exists(lineOf("k")) {
			t.Errorf("%v, and a line is there: %v", err, s.Exists(lineOf("k")))
		}
		s.settle()
		if n := sent.take(); n != 1 {
			t.Errorf("%d commands for a try that was refused", n)
		}
		got := s.waiting(t, bg, b.Mutex("k"))
		s.Del("k") // free without a script
		if h, err := c.Mutex("k").TryAcquire(bg); !errors.Is(err, anteroom.ErrNotAcquired) {
			t.Errorf("a try has passed it: %v, %v", h, err)
		}
		// But it has called.
		ok(t, isIn(t, got).Release(bg))
		if h, err := c.Mutex("k").TryAcquire(bg); err != nil {
			t.Errorf("nobody is in line any more: %v", err)
		} else {
			ok(t, h.Release(bg))
		}
		_ = first.Release(bg)
		s.nothing(t, "k")
	})
}

// The line is in the order of arrival, and each of the three comes in with one release.
func TestLine_OrderAcrossProcesses(t *testing.T) {
	for _, fair := range []bool{false, true} {
		bubble(t, func(t *testing.T, s *embedded) {
			first, _ := manager(t, s.client(), anteroom.Config{})
			h := acquire(t, mutex(t, first, anteroom.LockConfig{Key: "k", Fair: fair}))
			var got []<-chan *anteroom.Hold
			for range 5 {
				m, _ := manager(t, s.client(), anteroom.Config{})
				got = append(got, s.waiting(t, bg, mutex(t, m, anteroom.LockConfig{Key: "k", Fair: fair})))
			}
			for i, c := range got {
				for _, later := range got[i:] {
					isOut(t, later)
				}
				start := time.Now()
				ok(t, h.Release(bg))
				h = isIn(t, c)
				if took := time.Since(start); took > 50*time.Millisecond {
					t.Errorf("number %d came in after %v", i, took)
				}
			}
			ok(t, h.Release(bg))
			s.nothing(t, "k")
		})
	}
}

// Waiters that give up leave nothing, whatever is before or behind them.
func TestLine_AClientThatLeavesLeavesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{})
		b, _ := manager(t, s.client(), anteroom.Config{})
		c, _ := manager(t, s.client(), anteroom.Config{})
		h := acquire(t, a.Mutex("k"))
		ctx, cancel := context.WithCancel(bg)
		leaves := s.waiting(t, ctx, b.Mutex("k"))
		stays := s.waiting(t, bg, c.Mutex("k"))
		cancel()
		s.settle()
		if _, in := <-leaves; in {
			t.Fatal("it is in")
		}
		if spots := s.spots("k"); len(spots) != 1 || spots[0].client != c.ClientID() {
			t.Errorf("places: %v", spots)
		}
		ok(t, h.Release(bg))
		ok(t, isIn(t, stays).Release(bg))
		s.nothing(t, "k")
		for _, m := range []*anteroom.Manager{a, b, c} {
			anteroom.NothingLeft(t, m)
		}
	})
}

// Close while its waiters wait leaves no place, and the next one is called without a delay.
func TestLine_CloseLeavesNoPlace(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{})
		b, _ := manager(t, s.client(), anteroom.Config{})
		c, _ := manager(t, s.client(), anteroom.Config{})
		h := acquire(t, a.Mutex("k"))
		closes := s.waiting(t, bg, b.Mutex("k"))
		stays := s.waiting(t, bg, c.Mutex("k"))
		ok(t, b.Close(bg))
		if _, in := <-closes; in {
			t.Error("it is in")
		}
		if spots := s.spots("k"); len(spots) != 1 || spots[0].client != c.ClientID() {
			t.Errorf("places: %v", spots)
		}
		ok(t, h.Release(bg))
		ok(t, isIn(t, stays).Release(bg))
		s.nothing(t, "k")
		anteroom.NothingLeft(t, b)
	})
}

// The same for a waiter in Lock, who stays parked.
func TestLine_CloseLeavesNoPlaceOfAParkedLock(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{})
		b, _ := manager(t, s.client(), anteroom.Config{})
		h := acquire(t, a.Mutex("k"))
		end, parked := context.WithCancel(bg)
		done := make(chan bool)
		go func() { done <- anteroom.LockUntil(end, b.Mutex("k")) }()
		s.settle()
		if len(s.spots("k")) != 1 {
			t.Fatal("it is not in line")
		}
		_ = b.Close(bg)
		s.settle()
		if s.Exists(lineOf("k")) {
			t.Errorf("places: %v", s.spots("k"))
		}
		ok(t, h.Release(bg))
		parked()
		if <-done {
			t.Error("locked")
		}
		synctest.Wait()
		s.nothing(t, "k")
	})
}

// A try that comes while a turn ends, after all waiters have given up, is answered immediately: the place
// that the end of the turn has taken is no reason to wait for a call.
func TestLine_ATryAtTheEndOfATurnWaitsForNobody(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		net := s.network()
		a, _ := manager(t, s.clientOver(net), anteroom.Config{})
		b, _ := manager(t, s.client(), anteroom.Config{})
		mu := mutex(t, a, anteroom.LockConfig{Key: "k", MaxHandoffTime: time.Millisecond})
		h := acquire(t, mu)
		s.settle() // it is notified that somebody waits
		theirs := s.waiting(t, bg, b.Mutex("k"))
		ctx, cancel := context.WithCancel(bg)
		defer cancel()
		ours, released, tried := make(chan error, 1), make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := mu.Acquire(ctx)
			ours <- err
		}()
		s.settle() // the turn is over by now
		net.Delay(50 * time.Millisecond)
		go func() { released <- h.Release(bg) }()
		synctest.Wait()
		cancel()
		<-ours
		go func() {
			_, err := mu.TryAcquire(bg)
			tried <- err
		}()
		select {
		case err := <-tried:
			if !errors.Is(err, anteroom.ErrNotAcquired) {
				t.Errorf("the try: %v", err)
			}
		case <-time.After(time.Second): // far more than some answers
			t.Error("the try waits for the holder")
		}
		ok(t, <-released)
		time.Sleep(200 * time.Millisecond) // for the clean-up
		if spots := s.spots("k"); len(spots) > 0 {
			t.Errorf("places of who only tried: %v", spots)
		}
		net.Delay(0)
		ok(t, isIn(t, theirs).Release(bg))
		s.nothing(t, "k")
	})
}
