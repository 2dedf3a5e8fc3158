package anteroom

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/anteroom/anteroom/renewal"
)

// A loss is concluded and not told yet when the owner releases. The release can't be sent
// as one, and the field must not stay: with an Extend without an answer for up to a day.
func TestALossConcludedBesideTheReleaseLeavesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		reason renewal.Reason
		opts   []AcquireOption
	}{
		"cancelled by the watchdog":       {renewal.ReasonWatchdog, nil},
		"a fixed lease, which has passed": {renewal.ReasonDeadline, []AcquireOption{Lease(time.Hour)}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			m := insideManager(t, Config{})
			defer func() { _ = m.Close(ctx) }()
			h, err := m.Mutex("k").Acquire(ctx, c.opts...)
			if err != nil {
				t.Fatal(err)
			}
			other, err := m.Mutex("other").Acquire(ctx)
			if err != nil {
				t.Fatal(err)
			}
			other.t.g.e.mu.Lock() // one loss is told after the other, and this one waits
			other.t.g.lease.Load().Lose(renewal.Cause{Reason: renewal.ReasonForced})
			if !h.t.g.lease.Load().Lose(renewal.Cause{Reason: c.reason}) {
				t.Fatal("not lost")
			}
			if err := h.Release(ctx); !errors.Is(err, ErrLost) {
				t.Errorf("release: %v", err)
			}
			other.t.g.e.mu.Unlock()
			_ = other.Release(ctx)
			for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
				info, err := m.Inspect(ctx, "k")
				if err != nil {
					t.Fatal(err)
				}
				if len(info.Holders) == 0 {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("left in Redis: %+v", info)
				}
			}
		})
	}
}
