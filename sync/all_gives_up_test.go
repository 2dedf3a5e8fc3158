package anteroom_test

import (
	"context"
	"errors"
	"testing"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
)

// A caller that ends the process as soon as AcquireAll has failed leaves nothing behind: the locks that it had are given back
// when its context has ended, and not later.
func TestAcquireAll_NothingIsHeldWhenItsContextHasEnded(t *testing.T) {
	for name, gaveUp := range map[string]func(context.Context) (context.Context, context.CancelFunc){
		"cancelled": func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Second, cancel)
			return ctx, cancel
		},
		"its time is over": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				other, _ := manager(t, s.client(), anteroom.Config{})
				net := s.network()
				net.Latency(5*time.Millisecond, 0, 1)
				m, _ := manager(t, s.clientOver(net), anteroom.Config{})
				taken := acquire(t, other.Mutex("c"))
				ctx, cancel := gaveUp(bg)
				defer cancel()
				_, err := m.AcquireAll(ctx, "a", "b", "c")
				if !errors.Is(err, anteroom.ErrNotAcquired) {
					t.Errorf("%v", err)
				}
				for _, key := range []string{"a", "b"} {
					if holders := s.holders(key); len(holders) > 0 {
						t.Errorf("AcquireAll has returned, and %s is held by %v", key, holders)
					}
				}
				ok(t, taken.Release(bg))
			})
		})
	}
}
