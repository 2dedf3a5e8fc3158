package lettucecompat_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// TestRTT_LateAnswersDoNotCount: the window that is left open for foreign clients follows RTT. An
// answer that nobody waits for any more says how long an outage was, not how far Redis is.
func TestRTT_LateAnswersDoNotCount(t *testing.T) {
	t.Parallel()
	for _, own := range []bool{false, true} { // on the caller's goroutine, and on one of the sender
		t.Run(fmt.Sprintf("own=%v", own), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := onMini(t)
				c := b.client(t)
				b.net.Delay(time.Millisecond)
				for range 20 {
					warm(t, c)
				}
				before := lettucecompat.RTT(c)
				b.net.HoldReplies()
				time.AfterFunc(4*time.Second, b.net.Heal)
				r := asks("k", 1)
				r.MayBeHeld = own
				if o := c.Do(ctx, r).Outcome; own != (o == ok) { // its caller is held until it comes
					t.Errorf("the outcome is %v", o)
				}
				time.Sleep(10 * time.Second)
				_, total := lettucecompat.RoundTrips(c)
				want(t, "under way", total, 0)
				want(t, "RTT", lettucecompat.RTT(c), before)
			})
		})
	}
}

// TestRTT_IsKeptByAllSenders in parallel, and read meanwhile: the race detector watches.
func TestRTT_IsKeptByAllSenders(t *testing.T) {
	t.Parallel()
	c := onMini(t).client(t)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() { c.Do(ctx, asks("k", 1)) })
		wg.Go(func() { c.Renew(ctx, []lettucecompat.Renewal{{Key: "x", Field: me(1), Lease: time.Second}}, 0) })
		wg.Go(func() { _ = lettucecompat.RTT(c) })
	}
	wg.Wait()
}
