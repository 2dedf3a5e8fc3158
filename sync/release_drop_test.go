package anteroom_test

import (
	"testing"
	"testing/synctest"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
)

// A release is refused and continues in the background, and the next command of the same
// process removes the field in its own script. That its answer comes after that of another
// release, which finds nothing, makes it no loss: the lock was the holder's.
func TestAReleaseThatTheNextAttemptCarriedOutIsNoLoss(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := &late{Client: s.client(), at: make(chan struct{}), let: make(chan struct{})}
		m, _ := manager(t, l, anteroom.Config{CommandTimeout: 10 * time.Second}) // Release waits for two
		mu := m.Mutex("k")
		h := acquire(t, mu)
		s.SetError("READONLY You can't write against a read only replica.")
		released := make(chan error, 1)
		go func() { released <- h.Release(bg) }()
		time.Sleep(5 * time.Second) // the pauses between its repeats are long by now
		synctest.Wait()
		s.SetError("")
		l.armed.Store(true)
		got := make(chan *anteroom.Hold)
		go func() { next, _ := mu.Acquire(bg); got <- next }()
		<-l.at // Redis has carried out the attempt, and its answer is on its way
		if err := <-released; err != nil {
			t.Errorf("the lock was never anybody else's: %v", err)
		}
		close(l.let)
		ok(t, (<-got).Release(bg))
	})
}
