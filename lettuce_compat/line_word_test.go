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

// TestLine_WhoLeavesDoesNotTakeTheWordAboutTheHolderAlong: it cannot tell whom it calls, so whoever
// stands next asks soon, too.
func TestLine_WhoLeavesDoesNotTakeTheWordAboutTheHolderAlong(t *testing.T) {
	b := onReal(t, nil)
	a, x, y := newPeer(t, b.user(t, "~*", "+@all", "resetchannels"), "a"), b.peer(t, "x"), b.peer(t, "y")
	a.takes()
	x.stands(0)
	a.releases() // and learns that it cannot tell
	x.confirm()
	x.releases()
	b.nothingLeft(t)

	a.takes()
	if got := x.stands(0); got.TTL > 25*time.Millisecond {
		t.Fatalf("is to ask after %v", got.TTL)
	}
	want(t, "left", x.release().Left, true)
	x.stands(0)
	r := x.request()
	x.n++
	r.Drop, r.Field, r.Attempt = []string{r.Field}, x.field(), 0
	want(t, "try", x.TryAcquire(ctx, r).Outcome, refused)
	if got := y.stands(0); got.TTL > 25*time.Millisecond {
		t.Fatalf("who comes later is to ask after %v", got.TTL)
	}
	a.releases()
	want(t, "called", y.confirm().Called, true)
	y.releases()
	b.nothingLeft(t)
}

// TestLine_AReleaseThatCallsNobodyProvesNothing: who may publish releases and not calls stays mute.
func TestLine_AReleaseThatCallsNobodyProvesNothing(t *testing.T) {
	b := onReal(t, nil)
	a := newPeer(t, b.user(t, "~*", "+@all", "resetchannels", "&lock:release:*", "&anteroom:client:a"), "a")
	x := b.peer(t, "x")
	a.Subscribe()
	eventually(t, "a listens", a.Listening)
	a.takes()
	x.stands(0)
	a.releases()
	x.confirm()
	x.releases()
	want(t, "it knows that it cannot tell", a.Listening(), false)
	a.takes()
	a.releases() // nobody stands
	a.takes()
	if got := x.stands(0); got.TTL > 25*time.Millisecond {
		t.Fatalf("is to ask after %v", got.TTL)
	}
}
