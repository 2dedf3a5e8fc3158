package anteroom_test

import (
	"testing"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// A program that sets Config.ClientID is replaced by another with the same one, while the
// old process is cut off. The old one comes back after its lease and cleans up what it may
// have left: its own fields, and never those of the process that took its name.
func TestSync_I3_ARestartUnderTheSameClientID(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		cut := s.network()
		before, rec := manager(t, s.clientOver(cut), anteroom.Config{ClientID: "pod-0"})
		lost := acquire(t, before.Mutex("k"))
		time.Sleep(time.Second) // it is renewed for the first time
		cut.BlackHole()
		after, _ := manager(t, s.client(), anteroom.Config{ClientID: "pod-0"})
		began := time.Now()
		h := acquire(t, after.Mutex("k")) // waits for the lease, as behind any other dead process
		if took := time.Since(began); took < 25*time.Second || took > 45*time.Second {
			t.Errorf("acquired after %v, want what was left of the lease", took)
		}
		if lost.Held() || len(rec.of(observe.EventLost)) == 0 {
			t.Error("the old process was not notified")
		}
		cut.Heal()
		time.Sleep(40 * time.Second) // longer than any clean-up of the old one
		if err := h.Err(); err != nil || s.HGet("k", h.Holder()) != "1" {
			t.Errorf("the new process' lock: %v, in Redis %q", err, s.HGet("k", h.Holder()))
		}
		_ = lost.Release(bg)
		time.Sleep(time.Second)
		if s.HGet("k", h.Holder()) != "1" {
			t.Error("a late release of the old process has freed the lock of the new one")
		}
		ok(t, h.Release(bg))
	})
}

// Two Managers that are configured alike are two clients: no field and no channel is shared.
func TestClientIDIsTheBeginningOfAName(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{ClientID: "pod-0"})
		b, _ := manager(t, s.client(), anteroom.Config{ClientID: "pod-0"})
		if a.ClientID() == b.ClientID() {
			t.Fatalf("both are %q", a.ClientID())
		}
		for _, m := range []*anteroom.Manager{a, b} {
			if id := m.ClientID(); len(id) != len("pod-0.")+12 || id[:6] != "pod-0." {
				t.Errorf("client id %q, want pod-0. and 12 digits", id)
			}
		}
	})
}
