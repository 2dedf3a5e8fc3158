package lettucecompat_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/internal/faultnet"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// TestSender_IsNotHeldUpByAFewConnections: a firewall has forgotten four idle connections, and the
// round trips on them get no answer. They do not keep all the others waiting.
func TestSender_IsNotHeldUpByAFewConnections(t *testing.T) {
	t.Parallel()
	for _, keep := range []bool{false, true} {
		t.Run(fmt.Sprintf("keep=%v", keep), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := onMini(t)
				c := b.client(t)
				warm(t, c)
				took := make(chan time.Duration, 100)
				call := func(i int) lettucecompat.Outcome {
					if keep {
						return c.Extend(ctx, lettucecompat.Renewal{Key: "warm", Field: me(99), Lease: time.Minute}, 0).Outcome
					}
					return c.Do(ctx, asks(fmt.Sprintf("k%d", i), i)).Outcome
				}
				send := func(i int) {
					start := time.Now()
					call(i)
					took <- time.Since(start)
				}
				const few = 4
				b.net.Delay(time.Millisecond)
				var busy sync.WaitGroup
				for range few {
					busy.Go(func() { b.rdb.Ping(ctx) })
				}
				busy.Wait()
				want(t, "idle connections", b.net.Open(), few)
				b.net.Delay(0)
				b.net.HalfOpen(faultnet.Commands)
				const calls = 50
				for i := range calls {
					go send(i)
					time.Sleep(10 * time.Millisecond)
				}
				late := 0
				for range calls {
					if <-took > 100*time.Millisecond {
						late++
					}
				}
				if late > few {
					t.Errorf("%d of %d calls waited for %d connections", late, calls, few)
				}
			})
		})
	}
}
