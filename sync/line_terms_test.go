package anteroom_test

import (
	"context"
	"testing"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
)

// Another lease at the head does not cost the process its position, be it that a turn ends for it or
// that who was before it has given up.
func TestLine_OtherTermsKeepThePosition(t *testing.T) {
	for name, turn := range map[string]bool{"a turn ends": true, "the head gives up": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				a, _ := manager(t, s.client(), anteroom.Config{})
				b, _ := manager(t, s.client(), anteroom.Config{})
				c, _ := manager(t, s.client(), anteroom.Config{})
				cfg := anteroom.LockConfig{Key: "k", MaxHandoffs: 1, MaxHandoffTime: time.Millisecond}
				other := func() <-chan *anteroom.Hold {
					got := make(chan *anteroom.Hold, 1)
					go func() { h, _ := mutex(t, a, cfg).Acquire(bg, anteroom.Lease(5*time.Second)); got <- h }()
					s.settle()
					return got
				}
				var fixed <-chan *anteroom.Hold
				var h *anteroom.Hold
				if turn {
					mine := acquire(t, mutex(t, a, cfg))
					fixed = other()
					first := s.waiting(t, bg, b.Mutex("k"))
					ok(t, mine.Release(bg))
					h = isIn(t, first)
				} else {
					h = acquire(t, b.Mutex("k"))
					ctx, cancel := context.WithCancel(bg)
					_ = s.waiting(t, ctx, mutex(t, a, cfg))
					fixed = other()
					time.Sleep(100 * time.Millisecond)
					cancel()
				}
				s.settle()
				last := s.waiting(t, bg, c.Mutex("k"))
				time.Sleep(100 * time.Millisecond)
				ok(t, h.Release(bg))
				time.Sleep(100 * time.Millisecond)
				isOut(t, last)
				ok(t, isIn(t, fixed).Release(bg))
				ok(t, isIn(t, last).Release(bg))
				time.Sleep(time.Second)
				s.nothing(t, "k")
			})
		})
	}
}
