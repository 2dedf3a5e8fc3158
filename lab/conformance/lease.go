package conformance

import (
	"context"
	"time"

	"github.com/anteroom/anteroom/internal/pace"
	anteroom "github.com/anteroom/anteroom/sync"
)

// A waiter of another process gets the lock because of the message. Without it, it would find the call no sooner than
// at its next confirmation, seconds later; so one of several releases must take clearly less, on a machine that is slow
// now and then.
func wokenByTheRelease(s *stage) {
	a, _ := s.manager()
	b, _ := s.manager()
	cfg := anteroom.LockConfig{Key: s.key("k")}
	mine, theirs := s.mutex(a, cfg), s.mutex(b, cfg)
	const rounds, bound = 5, 400 * time.Millisecond
	quickest := time.Hour
	for range rounds {
		h := s.acquire(mine)
		waiter := s.acquired(theirs)
		s.until("the waiter stands", func() bool { return s.stands(cfg.Key) })
		begin := time.Now()
		s.release(h)
		g := s.take(waiter)
		quickest = min(quickest, g.at.Sub(begin))
		s.release(g.hold)
	}
	if !pace.Within(quickest, bound) {
		s.Fatalf("the quickest of %d waiters came %v after the release", rounds, quickest)
	}
}

// A dead holder releases nothing: a waiter gets the lock when the TTL ends.
func aDeadHoldersLeaseEnds(s *stage) {
	m, _ := s.manager()
	mu := s.mutex(m, anteroom.LockConfig{Key: s.key("k")})
	rdb := s.client()
	const left = 1500 * time.Millisecond
	// The number is one of ours: a line remembers for a while that it has seen another kind of holder.
	_, err := rdb.TxPipelined(s.Context(), func(p pipeliner) error {
		p.HSet(s.Context(), s.key("k"), "died-1-0123456789ab:1795000000000000", "1")
		p.PExpire(s.Context(), s.key("k"), left)
		return nil
	})
	answered := time.Now()
	s.ok(err)
	h := s.acquire(mu)
	took := time.Since(answered)
	s.atMost("waiting for the end of a lease", took, left+10*time.Millisecond, 3*time.Second)
	s.release(h)
}

// A lock is held over several leases, and refused to others all the time.
func renewedOverSeveralLeases(s *stage) {
	a, renewals := s.manager()
	b, _ := s.manager()
	cfg := anteroom.LockConfig{Key: s.key("k"), LeaseTime: lease}
	mine, theirs := s.mutex(a, cfg), s.mutex(b, cfg)
	begin := time.Now()
	h := s.acquire(mine)
	for range 8 { // three in a lease
		deadline := h.Deadline()
		s.until("a renewal has moved the deadline", func() bool { return h.Deadline().After(deadline) || h.Err() != nil })
		s.ok(h.Err())
		s.refused(theirs)
	}
	if n := renewals.Load(); n < 7 { // the last one may be still to be reported
		s.Errorf("%d renewals", n)
	}
	if held := time.Since(begin); held < 2*lease {
		s.Fatalf("held for %v only", held)
	}
	s.release(h)
	s.release(s.acquire(theirs))
}

// A fixed lease is not renewed. Its holder is notified before another can have the lock.
func aFixedLeaseEnds(s *stage) {
	a, renewals := s.manager()
	b, _ := s.manager()
	cfg := anteroom.LockConfig{Key: s.key("k"), LeaseTime: lease}
	mine, theirs := s.mutex(a, cfg), s.mutex(b, cfg)
	begin := time.Now()
	h := s.acquire(mine, anteroom.Lease(lease))
	before := renewals.Load() // a slow machine may renew the grant once before it has its fixed lease
	end := make(chan time.Time, 1)
	go func() {
		<-h.Context().Done()
		end <- time.Now()
	}()
	waiter := s.acquired(theirs)
	told := <-end
	s.is(context.Cause(h.Context()), anteroom.ErrLost)
	g := s.take(waiter)
	if !told.Before(g.at) {
		s.Fatalf("told %v after another had the lock", told.Sub(g.at))
	}
	s.atMost("the end of a fixed lease", g.at.Sub(begin), lease+10*time.Millisecond, 3*time.Second)
	if n := renewals.Load() - before; n != 0 {
		s.Fatalf("%d renewals", n)
	}
	s.is(h.Release(s.Context()), anteroom.ErrLost)
	s.release(g.hold)
}
