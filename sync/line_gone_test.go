package anteroom_test

import (
	"testing"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
)

// A lock is deleted by hand after Redis has granted it, and another process gets it. A confirmation
// tells that the grant is gone before the message of the call is here, while an attempt without an
// answer keeps the driver busy: the message is not believed.
func TestLine_ACallThatAGoneHasOvertakenLetsNobodyIn(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		other, _ := manager(t, s.client(), anteroom.Config{})
		a := &slowAttempt{Client: s.client(), at: make(chan struct{}), let: make(chan struct{})}
		sent := &traffic{}
		a.AddHook(sent)
		m, _ := manager(t, a, anteroom.Config{})
		cfg := anteroom.LockConfig{Key: "k", LeaseTime: 3 * time.Second} // confirmed, and given up, after half a second
		confirmation := func() {
			sent.take()
			for sent.take() == 0 {
				time.Sleep(10 * time.Millisecond)
			}
			s.settle()
		}
		s.HSet("k", "other:1700000000000000", "1")
		s.SetTTL("k", time.Hour)
		got := s.waiting(t, bg, mutex(t, m, cfg))
		time.Sleep(100 * time.Millisecond) // it has looked once, because it did not hear anything yet
		confirmation()
		time.Sleep(100 * time.Millisecond)
		at := s.spots("k")[0]
		s.give(at, 2*time.Second) // the call, whose message is late
		a.armed.Store(true)
		s.sayCalled(m, at.field, at.attempt-1, 2*time.Second, "") // an old one: it asks
		<-a.at
		s.Del("k")
		h := acquire(t, mutex(t, other, cfg))
		confirmation() // finds nothing
		s.sayCalled(m, at.field, at.attempt, 2*time.Second, "")
		time.Sleep(200 * time.Millisecond) // the attempt is given up
		close(a.let)
		isOut(t, got)
		ok(t, h.Release(bg))
		time.Sleep(2 * time.Second)
		ok(t, isIn(t, got).Release(bg))
		time.Sleep(10 * time.Second)
		s.nothing(t, "k")
		anteroom.NothingWanted(t, m)
	})
}
