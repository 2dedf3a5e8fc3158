package anteroom_test

import (
	"context"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/faultnet"
	anteroom "github.com/anteroom/anteroom/sync"
)

// A holder of ours that dies tells nobody, and neither does its lease: the first in line asks when
// it ends, and not at its next confirmation.
func TestLine_TheEndOfALeaseNeedsNoMessage(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		for _, lease := range []time.Duration{700 * time.Millisecond, 5 * time.Second, 29 * time.Second} {
			s.HSet("k", "died:2000000000000000", "1") // a number of those who call
			s.SetTTL("k", lease)
			start := time.Now()
			ok(t, acquire(t, m.Mutex("k")).Release(bg))
			if late := time.Since(start) - lease; late < 0 || late > 20*time.Millisecond {
				t.Errorf("a lease of %v: %v late", lease, late)
			}
		}
	})
}

// A call that names an attempt which a later answer has overtaken is old, however young the
// attempt is: the lock may have been deleted since, and called for another client.
func TestLine_AYoungCallOfBeforeTheLastStandAsks(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, sent, got, at := forger(t, s, anteroom.LockConfig{LeaseTime: 1200 * time.Millisecond})
		for s.spots("k")[0].attempt == at.attempt {
			time.Sleep(10 * time.Millisecond) // a confirmation comes soon
		}
		s.settle()
		sent.take()
		s.sayCalled(m, at.field, at.attempt, 1200*time.Millisecond, "")
		isOut(t, got)
		if n := sent.take(); n == 0 {
			t.Error("it does not ask")
		}
	})
}

// turns lets m end a turn of another lock, so that the server has the script: what happens to the
// next one happens to the command that does it.
func (s *embedded) turns(t *testing.T, m *anteroom.Manager) {
	t.Helper()
	mu := mutex(t, m, anteroom.LockConfig{Key: "warm", MaxHandoffTime: time.Millisecond})
	h := acquire(t, mu)
	next := make(chan *anteroom.Hold)
	go func() { next <- acquire(t, mu) }()
	time.Sleep(10 * time.Millisecond)
	ok(t, h.Release(bg))
	ok(t, (<-next).Release(bg))
	s.settle()
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

// Behind a holder that calls nobody a waiter listens for the release, also where that one came
// while it stood.
func TestLine_TheReleaseOfAStrangerThatCameLaterIsHeard(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		_, _, got, at := forger(t, s, anteroom.LockConfig{})
		s.Del("k")
		s.HSet("k", "stranger", "1")
		s.SetTTL("k", time.Hour)
		for s.spots("k")[0].attempt == at.attempt {
			time.Sleep(10 * time.Millisecond) // a confirmation comes soon
		}
		time.Sleep(100 * time.Millisecond)
		s.Del("k")
		s.Publish("lock:release:k", `{"lockKey":"k","releaseTime":1,"holder":"stranger"}`)
		s.settle()
		ok(t, isIn(t, got).Release(bg))
	})
}
