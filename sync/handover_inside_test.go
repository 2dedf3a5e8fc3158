package anteroom

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/renewal"
)

// I6: a batch that was handed over a while ago, by a goroutine that had to wait for its
// processor since, has what is left of its time limit, and is not sent where that is over.
func TestSync_I6_TheTimeLimitCountsFromTheHandOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := insideServer(t, Config{})
		defer func() { _ = m.Close(context.Background()) }()
		h, err := m.Mutex("k").Acquire(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		limit := m.cfg.commandTimeout(30 * time.Second)
		item := []renewal.Item{{Key: "k", Field: h.Holder(), Lease: 30 * time.Second}}
		renew := func(ago time.Duration) renewal.Result {
			return (&services{m: m}).RenewBatch(context.Background(), "", item, time.Now().Add(-ago))[0]
		}
		s.SetTTL("k", 5*time.Second)
		if r := renew(limit - time.Millisecond); !r.Renewed || s.TTL("k") != 30*time.Second {
			t.Errorf("in time: %+v, TTL %v", r, s.TTL("k"))
		}
		s.SetTTL("k", 5*time.Second)
		r := renew(limit)
		if r.Renewed || r.Gone || !r.SentAt.IsZero() || !errors.Is(r.Err, lettucecompat.ErrTimeout) || s.TTL("k") != 5*time.Second {
			t.Errorf("too late: %+v, TTL %v", r, s.TTL("k"))
		}
		if err := h.Release(context.Background()); err != nil {
			t.Fatal(err)
		}
	})
}

// A field outlives the longest command that may keep it: the renewal of a long lease has
// more time than a command about the lock otherwise.
func TestField_F1_TheLimitOfItsRenewals(t *testing.T) {
	m := insideManager(t, Config{})
	defer func() { _ = m.Close(context.Background()) }()
	mu, err := m.NewMutex(LockConfig{Key: "k", LeaseTime: 600 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	h, err := mu.Acquire(context.Background(), Lease(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	g := h.t.g
	g.e.mu.Lock()
	got := g.fieldLocked().timeout
	g.e.mu.Unlock()
	if want := m.cfg.commandTimeout(time.Minute); got != want {
		t.Errorf("counted with a time limit of %v, its renewals have %v", got, want)
	}
	if err := h.Release(context.Background()); err != nil {
		t.Fatal(err)
	}
}
