package lettucecompat_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/internal/faultnet"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// TestLaneIsNotHeldUpByAFewConnections: a firewall has forgotten four idle connections, and
// the round trips on them get no answer. Where round trips are short only four are under way
// at once, but these four do not keep all the others waiting.
func TestLaneIsNotHeldUpByAFewConnections(t *testing.T) {
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
					return c.State(ctx, asks(fmt.Sprintf("k%d", i), i)).Outcome
				}
				send := func(i int) {
					start := time.Now()
					call(i)
					took <- time.Since(start)
				}
				// As many connections as may be busy at once become idle, and then half open.
				const few = 4
				b.net.Delay(time.Millisecond)
				for i := range few {
					go send(100 + i)
					time.Sleep(100 * time.Microsecond)
				}
				for range few {
					<-took
				}
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
