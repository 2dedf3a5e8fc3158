package anteroom_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// A release that was never sent has released nothing: when its repeat finds the lock
// gone, somebody else removed it, and may have let another holder in.
func TestAReleaseThatWasNeverSentDoesNotCount(t *testing.T) {
	for name, fault := range map[string]struct {
		strike func(*embedded, *anteroom.Manager)
		heal   func(*embedded)
	}{
		"unreachable": {
			func(s *embedded, m *anteroom.Manager) {
				s.net.Refuse()
				s.net.CloseAll()
				for s.net.Dials() < 20 { // the client has no connection left that it takes for a good one
					m.Mutex("other").TryLock()
				}
			},
			func(s *embedded) { s.net.Heal() },
		},
		"refused": {
			func(s *embedded, _ *anteroom.Manager) {
				s.SetError("READONLY You can't write against a read only replica.")
			},
			func(s *embedded) { s.SetError("") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				m, rec := manager(t, s.client(), anteroom.Config{})
				h := acquire(t, m.Mutex("k"))
				time.Sleep(time.Second) // it is renewed: what finds nothing before the new deadline has not come too late
				s.Del("k")              // nobody knows yet
				fault.strike(s, m)
				time.AfterFunc(time.Second, func() { fault.heal(s) })
				if err := h.Release(bg); !errors.Is(err, anteroom.ErrLost) {
					t.Fatalf("%v", err)
				}
				s.settle()
				if lost := rec.of(observe.EventLost); len(lost) != 1 || lost[0].Reason != observe.LostGone || lost[0].Owners != 1 {
					t.Errorf("a loss that a repetition has found: %+v", lost)
				}
				if lost := rec.of(observe.EventReleaseGivenUp); len(lost) != 0 {
					t.Errorf("given up: %+v", lost)
				}
			})
		})
	}
}

// A lease that ends by itself, while no release arrives, is no loss: nobody can have had the lock before the
// owner let go of it.
func TestALeaseThatEndsDuringItsReleaseIsNoLoss(t *testing.T) {
	for _, by := range []string{"Release", "Unlock"} {
		t.Run(by, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				m, rec := manager(t, s.client(), anteroom.Config{})
				mu := mutex(t, m, anteroom.LockConfig{Key: "k", LeaseTime: time.Second})
				release := mu.Unlock
				if by == "Release" {
					h := acquire(t, mu, anteroom.Lease(time.Second))
					release = func() {
						if err := h.Release(bg); err == nil || errors.Is(err, anteroom.ErrLost) {
							t.Errorf("Release says %v of a lock that nobody else can have had", err)
						}
					}
				} else {
					mu.Lock()
				}
				s.SetError("READONLY You can't write against a read only replica.")
				release()
				time.Sleep(1050 * time.Millisecond) // the lease is over
				s.SetError("")
				time.Sleep(10 * time.Second)
				if lost := rec.of(observe.EventLost); len(lost) != 0 {
					t.Errorf("losses: %+v", lost)
				}
				if n := len(rec.of(observe.EventReleaseGivenUp)); n != 1 {
					t.Errorf("%d releases given up, want 1", n)
				}
			})
		})
	}
}

// One of the sends may have released it: then nobody else need have.
func TestARepeatedReleaseMayHaveTakenEffect(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		h := acquire(t, m.Mutex("k"))
		s.SetError("READONLY You can't write against a read only replica.")
		time.AfterFunc(50*time.Millisecond, func() {
			s.SetError("")
			s.net.CutReplies(1, 0) // a later one takes effect, and its answer is lost
		})
		if err := h.Release(bg); err != nil || s.Exists("k") {
			t.Fatalf("%v, there: %v", err, s.Exists("k"))
		}
	})
}

// The next ask of the same process takes back what a release that was refused has left,
// and races with the next release: whichever is first, the release is reported as what it was.
func TestAnAttemptThatRemovesAReleasedLock(t *testing.T) {
	for _, gone := range []bool{false, true} {
		for range 30 {
			bubble(t, func(t *testing.T, s *embedded) {
				m, _ := manager(t, s.client(), anteroom.Config{})
				mu := mutex(t, m, anteroom.LockConfig{Key: "k", Fair: true, MaxHandoffs: -1})
				h := acquire(t, mu)
				next := make(chan *anteroom.Hold, 1)
				go func() { next <- acquire(t, mu) }()
				synctest.Wait()
				if gone {
					s.Del("k")
				}
				s.SetError("READONLY You can't write against a read only replica.")
				time.AfterFunc(300*time.Millisecond, func() { s.SetError("") })
				if err := h.Release(bg); errors.Is(err, anteroom.ErrLost) != gone || !gone && err != nil {
					t.Fatalf("gone %v: %v", gone, err)
				}
				ok(t, (<-next).Release(bg))
			})
		}
	}
}
