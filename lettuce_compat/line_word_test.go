package lettucecompat_test

import (
	"testing"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// TestLine_ItLivesAsLongAsItsPlaces: also behind a stranger, who counts for 10 s.
func TestLine_ItLivesAsLongAsItsPlaces(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		b.put(t, "k", hash{"stranger": "1"}, time.Minute)
		x := b.peer(t, "x")
		for _, lease := range []time.Duration{time.Second, time.Minute} {
			x.n++
			r := x.request()
			r.Lease = lease
			want(t, "stands", x.TryAcquire(ctx, r).Standing, true)
			least := max(10*time.Second, lettucecompat.PlaceLife(lease))
			b.wantTTL(t, lineOfK, least-5*time.Second, least)
			x.release()
			b.raw.Del(ctx, lineOfK)
		}
	})
}
