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
