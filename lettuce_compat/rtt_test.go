package lettucecompat_test

import (
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
	synctest.Test(t, func(t *testing.T) {
		b := onMini(t)
		c := b.client(t)
		b.net.Delay(time.Millisecond)
		for range 20 {
			warm(t, c)
		}
		before := lettucecompat.RTT(c)
		b.net.HoldReplies()
		time.AfterFunc(500*time.Millisecond, b.net.Heal)
		r := asks("k", 1)
		r.Timeout = 100 * time.Millisecond
		want(t, "outcome", c.Do(ctx, r).Outcome, unknown)
		time.Sleep(10 * time.Second)
		want(t, "RTT", lettucecompat.RTT(c), before)
	})
}

// TestRTT_IsKeptByAllCallers in parallel, and read meanwhile: the race detector watches.
func TestRTT_IsKeptByAllCallers(t *testing.T) {
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
