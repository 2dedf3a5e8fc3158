package anteroom_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// A process that has units asks for more, and Redis is silent: a long wait says that.
func TestWhy_AGrowthWithoutAnAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		net := s.network()
		m, rec := manager(t, s.clientOver(net), anteroom.Config{LongWait: 2 * time.Second})
		mine := must[theHold](t)(m.Semaphore("k", 3).Acquire(bg, 1))
		time.Sleep(3 * time.Second) // it is renewed
		net.BlackHole()
		ctx, cancel := context.WithTimeout(bg, 8*time.Second)
		defer cancel()
		if _, err := m.Semaphore("k", 3).Acquire(ctx, 2); !errors.Is(err, anteroom.ErrUnavailable) {
			t.Errorf("%v", err)
		}
		if evs := rec.of(observe.EventLongWait); len(evs) != 1 || evs[0].Err == nil || !strings.Contains(evs[0].Text, "acquire is failing") {
			t.Errorf("it is not said that Redis is silent: %+v", evs)
		}
		net.Heal()
		ok(t, mine.Release(bg))
	})
}

// What a confirmation beside units has failed with is forgotten once Redis has given what it was about.
func TestWhy_AnOlderFailureBesideUnits(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		net := s.network()
		m, rec := manager(t, s.clientOver(net), anteroom.Config{LongWait: 5 * time.Second})
		other, _ := manager(t, s.client(), anteroom.Config{})
		units := func(m *anteroom.Manager, n int64) theHold {
			return must[theHold](t)(m.Semaphore("k", 4).Acquire(bg, n))
		}
		mine, theirs, in := units(m, 1), units(other, 3), make(chan theHold, 1)
		go func() { in <- units(m, 2) }()
		s.settle()
		net.BlackHole() // confirmations get no answer; the call comes by the subscription, when that is healed
		time.Sleep(4 * time.Second)
		ok(t, theirs.Release(bg))
		net.Heal()
		h := <-in
		time.Sleep(time.Minute)
		before := len(rec.of(observe.EventLongWait))
		ctx, cancel := context.WithTimeout(bg, 20*time.Second)
		defer cancel()
		if _, err := m.Semaphore("k", 4).Acquire(ctx, 2); err == nil { // nothing is sent for it
			t.Error("five of four")
		}
		for _, e := range rec.of(observe.EventLongWait)[before:] {
			if e.Err != nil || strings.Contains(e.Text, "failing") {
				t.Errorf("it says that Redis fails: %q, %v", e.Text, e.Err)
			}
		}
		for _, h := range []theHold{h, mine} {
			ok(t, h.Release(bg))
		}
	})
}

// Resume on a Manager that is closing, or closed, is ErrClosed and sends nothing.
func TestTicket_ResumeWhileClosing(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		rdb, sent := s.client(), new(traffic)
		rdb.AddHook(sent)
		m, _ := manager(t, rdb, anteroom.Config{})
		other, _ := manager(t, s.client(), anteroom.Config{})
		ticket := must[anteroom.Ticket](t)(acquire(t, other.Mutex("k")).Detach(bg, time.Minute))
		keep := acquire(t, m.Mutex("other"))
		s.settle()
		closed := make(chan error, 1)
		go func() { closed <- m.Close(bg) }()
		s.settle()
		sent.take()
		if _, err := m.Mutex("k").Resume(bg, ticket); !errors.Is(err, anteroom.ErrClosed) {
			t.Errorf("closing: %v", err)
		}
		if n := sent.take(); n > 0 {
			t.Errorf("closing: it has sent %d commands", n)
		}
		ok(t, keep.Release(bg))
		ok(t, <-closed)
		if _, err := m.Mutex("k").Resume(bg, ticket); !errors.Is(err, anteroom.ErrClosed) {
			t.Errorf("closed: %v", err)
		}
	})
}
