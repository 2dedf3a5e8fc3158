package anteroom_test

import (
	"context"
	"errors"
	"testing"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// An inner Release has begun and not ended: there are two Holds still, and a ticket would be worth nothing before it ends.
func TestTicket_DetachBesideAnInnerRelease(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		begins, goesOn := make(chan struct{}), make(chan struct{})
		first := true
		tracer := &observe.Tracer{StartRelease: func(_ context.Context, r observe.ReleaseStart) func(observe.ReleaseEnd) {
			if r.Op == "release" && first {
				first = false
				close(begins)
				<-goesOn
			}
			return nil
		}}
		m, _ := manager(t, s.client(), anteroom.Config{Tracer: tracer})
		other, _ := manager(t, s.client(), anteroom.Config{})
		h := acquire(t, m.Mutex("k"))
		inner := must[*anteroom.Hold](t)(m.Mutex("k").Acquire(h.Context()))
		released := make(chan error, 1)
		go func() { released <- inner.Release(bg) }()
		<-begins
		ticket, err := h.Detach(bg, time.Minute)
		if !errors.Is(err, anteroom.ErrInUse) || ticket != "" {
			t.Errorf("beside an inner Release: ticket %v, %v", ticket != "", err)
		}
		ok(t, h.Err())
		close(goesOn)
		ok(t, <-released)
		ok(t, resume(t, other, must[anteroom.Ticket](t)(h.Detach(bg, time.Minute))).Release(bg))
	})
}
