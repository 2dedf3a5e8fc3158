package anteroom_test

import (
	"errors"
	"testing"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	anteroom "github.com/anteroom/anteroom/sync"
)

// A renewal of a lock that may be taken back is on its way while the lock is found gone.
// When it arrives the lock must not come back: its owner has been told, and nobody would
// ever release it.
func TestSync_I4_ALateRenewalReacquiresNoLostLock(t *testing.T) {
	for _, released := range []bool{true, false} {
		bubble(t, func(t *testing.T, s *embedded) {
			rdb := s.client()
			m, _ := manager(t, rdb, anteroom.Config{})
			mu := mutex(t, m, anteroom.LockConfig{Key: "k", Fencing: true, Recovery: anteroom.RecoverReacquire})
			h := acquire(t, mu)
			s.Del("k")
			if err := h.Extend(bg, time.Minute); !errors.Is(err, anteroom.ErrLost) {
				t.Fatalf("Extend: %v", err)
			}
			if released {
				if err := h.Release(bg); !errors.Is(err, anteroom.ErrLost) {
					t.Fatalf("Release: %v", err)
				}
			}
			time.Sleep(time.Second)
			wire, err := lettucecompat.New(rdb, lettucecompat.Options{ClientID: m.ClientID()})
			ok(t, err)
			defer wire.Close()
			late := wire.Renew(bg, []lettucecompat.Renewal{{Key: "k", Field: h.Holder(), Lease: 30 * time.Second, Reacquire: true}}, 0)
			if late[0].Outcome != lettucecompat.OutcomeGone || s.Exists("k") {
				t.Errorf("released %v: the late renewal answers %v, and the key is there: %v", released, late[0].Outcome, s.Exists("k"))
			}
			began := time.Now()
			next := acquire(t, mu)
			if took := time.Since(began); took > time.Second {
				t.Errorf("the next acquire waited for %v", took)
			}
			ok(t, next.Release(bg))
			_ = h.Release(bg)
		})
	}
}
