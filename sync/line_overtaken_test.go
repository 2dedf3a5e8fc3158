package anteroom_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/faultnet"
	anteroom "github.com/anteroom/anteroom/sync"
)

// slowAcquire holds one acquire up: on its way to Redis, or its answer on the way back. Other commands pass it.
type slowAcquire struct {
	*redis.Client
	armed   atomic.Bool
	answer  bool          // it is the answer that is held up
	at, let chan struct{} // it is there; it may continue
}

func newSlowAcquire(rdb *redis.Client, answer bool) *slowAcquire {
	return &slowAcquire{Client: rdb, answer: answer, at: make(chan struct{}), let: make(chan struct{})}
}

func (a *slowAcquire) Process(ctx context.Context, cmd redis.Cmder) error {
	if !slices.Contains(cmd.Args(), any("0 0 1")) || !a.armed.CompareAndSwap(true, false) {
		return a.Client.Process(ctx, cmd)
	}
	if !a.answer {
		close(a.at)
		<-a.let
		return a.Client.Process(context.WithoutCancel(ctx), cmd)
	}
	err := a.Client.Process(ctx, cmd)
	close(a.at)
	<-a.let
	return err
}

// onlyHolder demands that h is held, and nobody else has the lock in Redis.
func (s *embedded) onlyHolder(t *testing.T, h *anteroom.Hold) {
	t.Helper()
	if fields := s.holders("k"); !h.Held() || len(fields) != 1 || fields[0] != h.Holder() {
		t.Errorf("%v holds: %v; in Redis %v", h, h.Held(), fields)
	}
}

// A lock is deleted by hand after Redis has granted it, and another process gets it before the grant's answer is here:
// the answer is not believed, and nobody is in beside the other one.
func TestLine_AnAnswerThatIsTooLateLetsNobodyIn(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		cfg := anteroom.LockConfig{Key: "k", Fencing: true}
		other, _ := manager(t, s.client(), anteroom.Config{})
		a := newSlowAcquire(s.client(), true)
		m, _ := manager(t, a, anteroom.Config{})
		ok(t, acquire(t, mutex(t, m, anteroom.LockConfig{Key: "warm", Fencing: true})).Release(bg))
		a.armed.Store(true)
		got := make(chan *anteroom.Hold, 1)
		go func() { got <- acquire(t, mutex(t, m, cfg)) }()
		<-a.at
		s.Del("k")
		h := acquire(t, mutex(t, other, cfg))
		time.Sleep(3 * time.Second) // it is given up, and asked anew
		if len(s.spots("k")) != 1 {
			t.Error("it is not in line")
		}
		close(a.let)
		s.settle()
		isOut(t, got)
		s.onlyHolder(t, h)
		before := tokenOf(h)
		ok(t, h.Release(bg))
		s.settle()
		next := isIn(t, got)
		if token := tokenOf(next); token <= before {
			t.Errorf("token %d after %d", token, before)
		}
		ok(t, next.Release(bg))
		s.nothing(t, "k")
		anteroom.NothingLeft(t, m)
	})
}

// An acquire lands long after it was given up: it takes nothing from the owner who has come in since, and what it leaves
// behind a release lasts for a call lease, on which nobody relies.
func TestLine_AnAcquireThatLandsLateChangesNothing(t *testing.T) {
	for name, held := range map[string]bool{"beside the owner": true, "after the release": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				other, _ := manager(t, s.client(), anteroom.Config{})
				a := newSlowAcquire(s.client(), false)
				m, _ := manager(t, a, anteroom.Config{})
				mu := m.Mutex("k")
				ok(t, acquire(t, mu).Release(bg))
				a.armed.Store(true)
				h := acquire(t, mu) // by a second acquire
				if held {
					close(a.let)
					s.settle()
					s.onlyHolder(t, h)
				}
				time.Sleep(time.Second)
				ok(t, h.Release(bg))
				if !held {
					close(a.let)
					s.settle()
				}
				start := time.Now()
				ok(t, acquire(t, other.Mutex("k")).Release(bg))
				if took := time.Since(start); took > 2100*time.Millisecond {
					t.Errorf("another one is in after %v", took)
				}
				s.settle()
				s.nothing(t, "k")
				anteroom.NothingLeft(t, m)
			})
		})
	}
}

// A lock is deleted by hand after Redis has granted it by a call, and another process gets it. A confirmation says that
// before the message is here, which is not believed then.
func TestLine_ACallThatAConfirmationHasOvertakenLetsNobodyIn(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		other, _ := manager(t, s.client(), anteroom.Config{})
		m, sent, got, _ := forger(t, s, anteroom.LockConfig{})
		for sent.take() == 0 { // the next confirmation is due in a second
			time.Sleep(10 * time.Millisecond)
		}
		s.settle()
		at := s.spots("k")[0]
		s.give(at, 2*time.Second) // the call, whose message is late
		s.Del("k")
		h := acquire(t, other.Mutex("k"))
		time.Sleep(1100 * time.Millisecond) // a confirmation finds nothing
		s.sayCalled(at, 0)
		isOut(t, got)
		s.onlyHolder(t, h)
		if spots := s.spots("k"); len(spots) != 1 || spots[0].n <= at.n {
			t.Errorf("had place %v, has %v", at, spots)
		}
		ok(t, h.Release(bg))
		s.settle()
		ok(t, isIn(t, got).Release(bg))
		s.nothing(t, "k")
		anteroom.NothingLeft(t, m)
	})
}

// A message of a call is late: its place was given up, and its process has forgotten the key and uses it anew. It gives nothing,
// and refuses no try.
func TestLine_ACallOfAKeyThatWasForgotten(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b, net := s.two(t)
		h := acquire(t, a.Mutex("k"))
		ctx, cancel := context.WithCancel(bg)
		got := s.waiting(t, ctx, b.Mutex("k"))
		at := s.spots("k")[0]
		cancel()
		<-got
		s.settle()
		ok(t, h.Release(bg))
		s.settle()
		net.OnRequest(lineOf("k"), 1, faultnet.Late(300*time.Millisecond))
		time.AfterFunc(100*time.Millisecond, func() { s.sayCalled(at, 0) })
		h, err := b.Mutex("k").TryAcquire(bg)
		if err != nil {
			t.Fatalf("a try of a free lock: %v", err)
		}
		ok(t, h.Release(bg))
	})
}
