package lettucecompat_test

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestLine_WhereNobodyHearsTheFirstIsCalled: a lock does not stay free while subscriptions are
// down.
func TestLine_WhereNobodyHearsTheFirstIsCalled(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		a, x, y := b.peer(t, "a"), b.peer(t, "x"), b.peer(t, "y")
		a.takes()
		x.stands(0)
		y.stands(1)
		for _, p := range []*peer{x, y} {
			p.StopListening()
			eventually(t, "nobody listens for "+p.id, func() bool {
				return b.raw.PubSubNumSub(ctx, "anteroom:client:"+p.id).Val()["anteroom:client:"+p.id] == 0
			})
		}
		a.releases()
		b.holds(t, x)
	})
}

// TestLine_APlaceOfTheFutureLivesFromNowOn: a server's clock that was set back makes nobody live
// for as long as that.
func TestLine_APlaceOfTheFutureLivesFromNowOn(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		a, x, y := b.peer(t, "a"), b.peer(t, "x"), b.peer(t, "y")
		a.takes()
		x.stands(0)
		y.stands(1)
		x.StopListening() // so that it is passed over
		eventually(t, "nobody listens for x", func() bool {
			return b.raw.PubSubNumSub(ctx, "anteroom:client:x").Val()["anteroom:client:x"] == 0
		})
		b.age(t, x, -time.Hour)
		a.releases()
		y.called()
		place := b.raw.HGet(ctx, lineOfK, "p"+b.raw.HGet(ctx, lineOfK, "cx").Val()).Val()
		words := strings.Fields(place)
		confirmed, err := strconv.ParseInt(words[len(words)-1], 10, 64)
		if now := b.raw.Time(ctx).Val().UnixMilli(); err != nil || confirmed > now {
			t.Fatalf("%q is confirmed %d ms ahead", place, confirmed-now)
		}
	})
}
