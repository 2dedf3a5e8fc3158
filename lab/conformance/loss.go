package conformance

import (
	"context"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
)

// deletionIsTold: after DEL the holder is notified within W + C, by the watchdog, since no renewal is due for long.
func deletionIsTold(s *stage) {
	m, _ := s.manager()
	rdb := s.client()
	mu := s.mutex(m, anteroom.LockConfig{Key: s.key("k"), WatchdogPeriod: watch})
	h := s.acquire(mu)
	s.removed(h, func() { s.ok(rdb.Del(s.Context(), s.key("k")).Err()) })
}

// flushIsTold: the same when everything is gone, including the scripts.
func flushIsTold(s *stage) {
	m, _ := s.manager()
	mu := s.mutex(m, anteroom.LockConfig{Key: s.key("k"), WatchdogPeriod: watch, Fencing: true})
	h := s.acquire(mu)
	token := tokenOf(h)
	s.removed(h, func() {
		for _, c := range s.d.Masters() {
			s.ok(c.FlushAll(s.Context()).Err())
			s.ok(c.ScriptFlush(s.Context()).Err())
		}
	})
	next := s.acquire(mu)
	if tokenOf(next) <= token {
		s.Fatalf("token %d after %d", tokenOf(next), token)
	}
	s.release(next)
}

// removed removes the key of a hold and checks that its holder is notified in time.
func (s *stage) removed(h *anteroom.Hold, remove func()) {
	s.Helper()
	begin := time.Now()
	remove()
	<-h.Context().Done()
	s.atMost("telling of a removal", time.Since(begin), watch+commandTimeout, time.Second)
	s.is(context.Cause(h.Context()), anteroom.ErrLost)
	s.is(h.Err(), anteroom.ErrLost)
	s.is(h.Release(s.Context()), anteroom.ErrLost)
}

// forcedReleaseIsToldAtOnce: neither a renewal nor the watchdog is due, so only the message can notify the holder.
func forcedReleaseIsToldAtOnce(s *stage) {
	a, _ := s.manager()
	b, _ := s.manager()
	mu := s.mutex(a, anteroom.LockConfig{Key: s.key("k"), WatchdogPeriod: time.Hour})
	// The own channel is subscribed to in the background, from the first acquire on.
	s.release(s.acquire(mu))
	s.until("the Manager listens", func() bool { return s.hears(a.ClientID()) })
	h := s.acquire(mu)
	begin := time.Now()
	broken, err := b.ForceRelease(s.Context(), mu.Key())
	s.ok(err)
	if len(broken) == 0 {
		s.Fatal("nobody held it")
	}
	<-h.Context().Done()
	s.atMost("telling of a forced release", time.Since(begin), time.Millisecond, 4*time.Second)
	s.is(h.Err(), anteroom.ErrLost)
	s.is(h.Release(s.Context()), anteroom.ErrLost)
	s.release(s.acquire(s.mutex(b, mu.Config())))
}
