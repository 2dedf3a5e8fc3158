package anteroom_test

import (
	"testing"
	"time"

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
