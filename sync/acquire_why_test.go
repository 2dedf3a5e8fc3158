package anteroom_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/faultnet"
	anteroom "github.com/anteroom/anteroom/sync"
)

// This file is about why a caller that gives up has not come in: somebody else has the lock, or Redis has not answered.

// heldByAnother and unreachable check the error of an acquire.
func heldByAnother(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, anteroom.ErrNotAcquired) || errors.Is(err, anteroom.ErrUnavailable) {
		t.Errorf("somebody else has the lock, and Redis answers: %v", err)
	}
}

func unreachable(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, anteroom.ErrUnavailable) || errors.Is(err, anteroom.ErrNotAcquired) {
		t.Errorf("Redis does not answer: %v", err)
	}
}

// afterScript is a hook that calls what is set after the answer to one script.
type afterScript struct{ f atomic.Pointer[func()] }

func (*afterScript) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *afterScript) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if cmd.Name() == "evalsha" {
			if f := h.f.Swap(nil); f != nil {
				(*f)()
			}
		}
		return err
	}
}

func (*afterScript) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// silentAfterGrant returns a Manager whose Redis falls silent right after its next script, and is unreachable for delay.
func silentAfterGrant(t *testing.T, s *embedded, delay time.Duration) *anteroom.Manager {
	t.Helper()
	c, h := s.client(), new(afterScript)
	c.AddHook(h)
	m, _ := manager(t, c, anteroom.Config{})
	ok(t, acquire(t, m.Mutex("warm"), anteroom.Lease(time.Second)).Release(bg))
	s.settle()
	s.net.Delay(delay)
	h.f.Store(new(s.net.BlackHole))
	return m
}

// The grant came so late that it has to be renewed before anybody enters, and Redis is unreachable from then on.
func TestWhy_AnOutageBehindASlowGrant(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m := silentAfterGrant(t, s, 950*time.Millisecond)
		ctx, cancel := context.WithTimeout(bg, 20*time.Second)
		defer cancel()
		_, err := m.Mutex("k").Acquire(ctx)
		unreachable(t, err)
		s.net.Heal()
		time.Sleep(time.Minute)
	})
}

// Redis falls silent between the grant and the command that makes its lease a fixed one.
func TestWhy_AnOutageBeforeAFixedLease(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m := silentAfterGrant(t, s, 0)
		ctx, cancel := context.WithTimeout(bg, 500*time.Millisecond)
		defer cancel()
		_, err := m.Mutex("k").Acquire(ctx, anteroom.Lease(20*time.Second))
		unreachable(t, err)
		s.net.Heal()
		time.Sleep(time.Minute)
	})
}

// A clean-up has no answer, and the acquire after it has: the last command counts.
func TestWhy_AnOlderCommandHasNoAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		other, _ := manager(t, s.client(), anteroom.Config{})
		h := acquire(t, other.Mutex("k"))
		s.settle()
		waits, leave := context.WithCancel(bg)
		defer leave()
		for range 4 { // so that the next confirmation is due late
			w, _ := manager(t, s.client(), anteroom.Config{})
			s.waiting(t, waits, w.Mutex("k"))
		}
		net := s.network()
		m, _ := manager(t, s.clientOver(net), anteroom.Config{})
		gone, cancel := context.WithCancel(bg)
		first := s.waiting(t, gone, m.Mutex("k"))
		net.OnRequest("0 0 0\r\n", 1, faultnet.Swallowed)
		cancel()
		<-first
		s.settle()
		if net.Waiting() > 0 {
			t.Fatal("the command that leaves was not lost")
		}
		ctx, cancel := context.WithTimeout(bg, 1500*time.Millisecond)
		defer cancel()
		_, err := m.Mutex("k").Acquire(ctx)
		heldByAnother(t, err)
		leave()
		ok(t, h.Release(bg))
		time.Sleep(time.Minute)
	})
}

// A confirmation of the place has no answer, and a call gives this process the lock meanwhile.
func TestWhy_ThisProcessHasTheLock(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		other, _ := manager(t, s.client(), anteroom.Config{})
		before := acquire(t, other.Mutex("k"))
		net := s.network()
		m, _ := manager(t, s.clientOver(net), anteroom.Config{})
		got := s.waiting(t, bg, m.Mutex("k"))
		net.OnRequest("p 1 1\r\n", 1, faultnet.Swallowed)
		for net.Waiting() > 0 {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(10 * time.Millisecond) // other commands pass that connection
		ok(t, before.Release(bg))
		s.settle()
		h := isIn(t, got)
		time.Sleep(30 * time.Second)
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		_, err := m.Mutex("k").Acquire(ctx)
		heldByAnother(t, err)
		ok(t, h.Release(bg))
		time.Sleep(time.Minute)
	})
}

// Redis answers everything, and the lock is another's at every moment: nobody whose time is up gets an error about an outage, though
// a release may be on its way in that moment.
func TestWhy_TimeIsUpBesideARelease(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		mu := mutex(t, m, anteroom.LockConfig{Key: "k", MaxHandoffs: -1, Fair: true})
		ok(t, acquire(t, mu).Release(bg))
		s.settle()
		s.net.Delay(2 * time.Millisecond)
		var all sync.WaitGroup
		stop := time.Now().Add(5 * time.Second)
		for range 6 {
			all.Go(func() {
				for time.Now().Before(stop) {
					h := acquire(t, mu)
					time.Sleep(3 * time.Millisecond)
					ok(t, h.Release(bg))
				}
			})
		}
		s.settle()
		for i := range 100 {
			ctx, cancel := context.WithTimeout(bg, time.Duration(3000+i*137)*time.Microsecond)
			if h, err := mu.Acquire(ctx); err == nil {
				ok(t, h.Release(bg))
			} else {
				heldByAnother(t, err)
			}
			cancel()
			time.Sleep(time.Duration(i*131%5000) * time.Microsecond)
		}
		all.Wait()
	})
}
