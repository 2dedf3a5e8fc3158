package anteroom_test

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/faultnet"
	anteroom "github.com/anteroom/anteroom/sync"
)

// The end of a turn has taken a place, and its answer is lost. The attempts that follow are
// numbered on from its own, so that the call names one that is known: it is entered without a
// command.
func TestLine_AttemptsGoOnAfterAnUnansweredTurn(t *testing.T) {
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
		if now := s.spots("k"); len(now) != 1 || now[0].field != at[0].field || now[0].attempt != at[0].attempt+1 {
			t.Errorf("stands as %v, after %v", now, at)
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
		anteroom.NothingWanted(t, a)
	})
}
