package anteroom_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	anteroom "github.com/anteroom/anteroom/sync"
)

// slowAttempt holds one acquire up: on its way to Redis, or its answer on the way back.
// Confirmations pass it.
type slowAttempt struct {
	*redis.Client
	armed   atomic.Bool
	answer  bool          // it is the answer that is held up
	at, let chan struct{} // it is there; it may go on
}

func (a *slowAttempt) Process(ctx context.Context, cmd redis.Cmder) error {
	if !isAcquire(cmd) || !a.armed.CompareAndSwap(true, false) {
		return a.Client.Process(ctx, cmd)
	}
	if !a.answer {
		close(a.at)
		<-a.let
		return a.Client.Process(ctx, cmd)
	}
	err := a.Client.Process(ctx, cmd)
	close(a.at)
	<-a.let
	return err
}

// isAcquire tells an acquire from a confirmation: after the lock and its line comes a field or the
// fencing record, not whether its client hears.
func isAcquire(cmd redis.Cmder) bool {
	args := cmd.Args()
	if !strings.HasPrefix(cmd.Name(), "eval") || len(args) < 7 {
		return false
	}
	first, _ := args[5].(string)
	return strings.Contains(first, ":")
}

// overtaken has a waiter ask for a lock that the test has given it, with the attempt held up,
// and returns when a confirmation has found neither its place nor its grant: meanwhile deletes
// the lock, before or after the attempt.
func overtaken(t *testing.T, s *embedded, answer bool, meanwhile func()) (m *anteroom.Manager, a *slowAttempt, got <-chan *anteroom.Hold) {
	t.Helper()
	a = &slowAttempt{Client: s.client(), answer: answer, at: make(chan struct{}), let: make(chan struct{})}
	sent := &traffic{}
	a.AddHook(sent)
	m, _ = manager(t, a, anteroom.Config{})
	s.HSet("k", "other:1700000000000000", "1")
	s.SetTTL("k", time.Hour)
	got = s.waiting(t, bg, mutex(t, m, anteroom.LockConfig{Key: "k", LeaseTime: 10 * time.Second, Fencing: true}))
	time.Sleep(100 * time.Millisecond)
	s.settle()
	at := s.spots("k")[0]
	s.give(at, 2*time.Second)
	a.armed.Store(true)
	s.sayCalled(m, at.field, at.attempt-1, 2*time.Second, "") // an old call: it asks
	<-a.at
	meanwhile()
	s.settle()
	sent.take()
	for sent.take() == 0 { // a confirmation
		time.Sleep(10 * time.Millisecond)
	}
	s.settle()
	return m, a, got
}

// A lock is deleted by hand after Redis has granted it, and a confirmation finds nothing before
// the grant's answer is here: the answer is not believed, and nobody is in beside the next one.
func TestLine_AGrantThatAGoneHasOvertakenIsAskedForAgain(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		other, _ := manager(t, s.client(), anteroom.Config{})
		var h *anteroom.Hold
		m, a, got := overtaken(t, s, true, func() {
			s.Del("k")
			h = acquire(t, mutex(t, other, anteroom.LockConfig{Key: "k", Fencing: true}))
		})
		close(a.let)
		s.settle()
		isOut(t, got)
		if fields := s.holders("k"); !h.Held() || len(fields) != 1 || fields[0] != h.Holder() {
			t.Errorf("%v holds: %v; in Redis %v", h, h.Held(), fields)
		}
		before := tokenOf(h)
		ok(t, h.Release(bg))
		next := isIn(t, got)
		if token := tokenOf(next); token <= before {
			t.Errorf("token %d after %d", token, before)
		}
		ok(t, next.Release(bg))
		time.Sleep(time.Second)
		s.nothing(t, "k")
		anteroom.NothingWanted(t, m)
	})
}

// A confirmation finds nothing, and then the attempt is granted. It is asked for again, which
// finds it.
func TestLine_AGrantAfterAGoneIsFound(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, a, got := overtaken(t, s, false, func() { s.Del("k") })
		close(a.let)
		s.settle()
		h := isIn(t, got)
		if fields := s.holders("k"); !h.Held() || len(fields) != 1 || fields[0] != h.Holder() {
			t.Errorf("%v holds: %v; in Redis %v", h, h.Held(), fields)
		}
		ok(t, h.Release(bg))
		time.Sleep(time.Second)
		s.nothing(t, "k")
		anteroom.NothingWanted(t, m)
	})
}
