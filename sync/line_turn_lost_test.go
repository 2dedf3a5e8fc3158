package anteroom_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/internal/faultnet"
	anteroom "github.com/anteroom/anteroom/sync"
)

// turns lets m end a turn of another lock, so that the server has the script: what happens to the
// next one happens to the command that does it.
func (s *embedded) turns(t *testing.T, m *anteroom.Manager) {
	t.Helper()
	mu := mutex(t, m, anteroom.LockConfig{Key: "turns", MaxHandoffTime: time.Millisecond})
	h := acquire(t, mu)
	next := make(chan *anteroom.Hold)
	go func() { next <- acquire(t, mu) }()
	time.Sleep(10 * time.Millisecond)
	ok(t, h.Release(bg))
	ok(t, (<-next).Release(bg))
	s.settle()
}

// The answer to the end of a turn is lost, whatever it has done: the waiters here come in again,
// nobody is in beside another, and nothing is left once the last command can have arrived.
func TestLine_TheEndOfATurnWithoutAnAnswer(t *testing.T) {
	for name, fate := range map[string]faultnet.Fate{
		"done":     faultnet.Lost,
		"not done": faultnet.Swallowed,
		"late":     faultnet.Late(4 * time.Second),
	} {
		for _, leave := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				bubble(t, func(t *testing.T, s *embedded) {
					net := s.network()
					a, _ := manager(t, s.clientOver(net), anteroom.Config{})
					b, _ := manager(t, s.client(), anteroom.Config{})
					s.turns(t, a)
					mu := mutex(t, a, anteroom.LockConfig{Key: "k", MaxHandoffs: 1, MaxHandoffTime: time.Hour})
					first := acquire(t, mu)
					ctx, cancel := context.WithCancel(bg)
					defer cancel()
					here := make(chan *anteroom.Hold, 3)
					for range 3 {
						go func() {
							if h, err := mu.Acquire(ctx); err == nil {
								here <- h
							}
						}()
					}
					s.settle()
					there := s.waiting(t, bg, b.Mutex("k"))
					time.Sleep(time.Second)
					ok(t, first.Release(bg)) // a hand-off
					second := <-here
					net.OnRequest("releaseTime", 1, fate)
					_ = second.Release(bg) // the budget is over
					if leave {
						cancel()
					}
					h := <-there
					ok(t, h.Release(bg))
					if !leave {
						ok(t, (<-here).Release(bg))
						ok(t, (<-here).Release(bg))
					}
					time.Sleep(2 * time.Minute)
					synctest.Wait()
					s.nothing(t, "k")
					anteroom.NothingLeft(t, a)
					anteroom.NothingLeft(t, b)
				})
			})
		}
	}
}

// Those who waited here give up while the turn ends: the place that it has taken goes.
func TestLine_AllGiveUpWhileATurnEnds(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := &late{Client: s.client(), at: make(chan struct{}), let: make(chan struct{})}
		a, _ := manager(t, l, anteroom.Config{})
		b, _ := manager(t, s.client(), anteroom.Config{})
		mu := mutex(t, a, anteroom.LockConfig{Key: "k", MaxHandoffs: 1, MaxHandoffTime: time.Millisecond})
		first := acquire(t, mu)
		ctx, cancel := context.WithCancel(bg)
		gone := make(chan struct{})
		go func() { _, _ = mu.Acquire(ctx); close(gone) }()
		s.settle()
		there := s.waiting(t, bg, b.Mutex("k"))
		time.Sleep(time.Second)
		l.armed.Store(true)
		go func() { _ = first.Release(bg) }()
		<-l.at
		cancel()
		<-gone
		close(l.let)
		h := isIn(t, there)
		s.settle()
		if spots := s.spots("k"); len(spots) != 0 {
			t.Errorf("places: %v", spots)
		}
		ok(t, h.Release(bg))
		s.nothing(t, "k")
		anteroom.NothingLeft(t, a)
	})
}

// The place that the end of a turn has taken, whose answer is lost, is left when nobody waits here
// any more: the next release calls nobody who has gone.
func TestLine_ThePlaceOfAnUnansweredTurnIsLeft(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		net := s.network()
		a, _ := manager(t, s.clientOver(net), anteroom.Config{})
		b, _ := manager(t, s.client(), anteroom.Config{})
		s.turns(t, a)
		mu := mutex(t, a, anteroom.LockConfig{Key: "k", MaxHandoffTime: time.Millisecond})
		h := acquire(t, mu)
		ctx, cancel := context.WithCancel(bg)
		go func() { _, _ = mu.Acquire(ctx) }()
		s.settle()
		there := s.waiting(t, bg, b.Mutex("k"))
		time.Sleep(time.Second) // the turn is over
		net.OnRequest("releaseTime", 1, faultnet.Late(4*time.Second))
		released := make(chan error)
		go func() { released <- h.Release(bg) }()
		s.settle()
		if spots := s.spots("k"); len(spots) != 1 || spots[0].client != a.ClientID() {
			t.Fatal("the end of the turn has taken no place, so nothing is tested")
		}
		cancel()
		<-released
		h = <-there
		time.Sleep(10 * time.Second) // the clean-up
		ok(t, h.Release(bg))
		s.settle()
		s.nothing(t, "k")
	})
}

// The end of a turn has taken a place, and its answer is lost. What follows confirms that place, and its call is entered
// without a command.
func TestLine_ThePlaceOfAnUnansweredTurnIsKept(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		net := s.network()
		rdb, sent := s.clientOver(net), &traffic{}
		rdb.AddHook(sent)
		a, _ := manager(t, rdb, anteroom.Config{})
		b, _ := manager(t, s.client(), anteroom.Config{})
		s.turns(t, a)
		mu := mutex(t, a, anteroom.LockConfig{Key: "k", MaxHandoffTime: time.Millisecond})
		h := acquire(t, mu)
		here := make(chan *anteroom.Hold, 1)
		go func() { here <- acquire(t, mu) }()
		s.settle()
		there := s.waiting(t, bg, b.Mutex("k"))
		time.Sleep(time.Second) // the turn is over
		net.OnRequest("releaseTime", 1, faultnet.Late(4*time.Second))
		released := make(chan error)
		go func() { released <- h.Release(bg) }()
		s.settle()
		at := s.spots("k")
		if len(at) != 1 || at[0].client != a.ClientID() {
			t.Fatal("the end of the turn has taken no place, so nothing is tested")
		}
		<-released
		time.Sleep(20 * time.Millisecond)
		s.settle()
		if now := s.spots("k"); len(now) != 1 || now[0].client != at[0].client || now[0].n <= at[0].n {
			t.Errorf("has place %v, after %v", now, at)
		}
		sent.take()
		ok(t, (<-there).Release(bg))
		h = isIn(t, here)
		if n := sent.take(); n != 0 {
			t.Errorf("%d commands to enter", n)
		}
		ok(t, h.Release(bg))
		time.Sleep(10 * time.Second) // the clean-up
		s.nothing(t, "k")
		anteroom.NothingLeft(t, a)
	})
}
