package lettucecompat_test

import (
	"testing"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// TestLine_ConfirmMakesNothing: no place and no holder, for a field that does not stand.
func TestLine_ConfirmMakesNothing(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		a, x := b.peer(t, "a"), b.peer(t, "x")
		x.n++
		want(t, "on nothing", x.confirm().Outcome, gone)
		b.nothingLeft(t)
		a.takes()
		want(t, "on a lock", x.confirm().Outcome, gone)
		b.holds(t, a)
		x.stands(0)
		x.n++
		want(t, "another field", x.confirm().Outcome, gone)
		b.raw.Set(ctx, "string", "x", 0)
		got := x.Confirm(ctx, []lettucecompat.Place{{Key: "string", Field: x.field()}, {Key: "k", Field: lettucecompat.NewField("x", x.n-1), Attempt: nonce}}, 0)
		want(t, "another type", got[0].Outcome, failed)
		want(t, "permanent", lettucecompat.Permanent(got[0].Err), true)
		want(t, "fails no other", got[1].Outcome, ok)
	})
}

// TestLine_ConfirmKeepsAPlaceAlive: and its number is the newest, never lowered.
func TestLine_ConfirmKeepsAPlaceAlive(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		a, x, y := b.peer(t, "a"), b.peer(t, "x"), b.peer(t, "y")
		a.takes()
		x.stands(0)
		y.stands(1)
		b.age(t, x, 9*time.Second)
		b.raw.PExpire(ctx, lineOfK, time.Second)
		got := x.confirm()
		if got.Outcome != ok || got.Called || got.Ahead != 0 || got.Holder != a.field() || got.TTL < 9*time.Second || got.SentAt.IsZero() {
			t.Fatalf("%+v", got)
		}
		highest := x.send
		b.wantTTL(t, lineOfK, 9*time.Second, 10*time.Second) // the longest life of a place
		b.age(t, x, 9*time.Second)
		want(t, "ahead", y.confirm().Ahead, 1)
		want(t, "late", x.Confirm(ctx, []lettucecompat.Place{{Key: "k", Field: x.field(), Attempt: nonce + 1}}, 0)[0].Outcome, ok)
		a.releases()
		want(t, "attempt", x.called().Attempt, highest)
	})
}

// TestLine_ConfirmFindsTheCall: whose message was lost. That it was found raises no TTL, an
// accepting acquire does.
func TestLine_ConfirmFindsTheCall(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		a, x := b.peer(t, "a"), b.peer(t, "x")
		a.takes()
		x.stands(0)
		a.releases()
		got := x.confirm()
		if got.Outcome != ok || !got.Called || got.TTL <= 0 || got.TTL > 2*time.Second {
			t.Fatalf("%+v", got)
		}
		b.wantTTL(t, "k", time.Second, 2*time.Second)
		accept := x.request()
		accept.Repeat = true
		if got := x.TryAcquire(ctx, accept); got.Outcome != ok || !got.Found {
			t.Fatalf("accept: %+v", got)
		}
		b.wantTTL(t, "k", 9*time.Second, 10*time.Second)
	})
}

// TestLine_ConfirmCallsOnAFreeLock: the first one, be it itself or another.
func TestLine_ConfirmCallsOnAFreeLock(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		a, x, y := b.peer(t, "a"), b.peer(t, "x"), b.peer(t, "y")
		a.takes()
		x.stands(0)
		y.stands(1)
		b.raw.Del(ctx, "k")
		if got := y.confirm(); got.Called || got.Holder != x.field() || got.TTL != 2*time.Second || got.Ahead != 0 {
			t.Fatalf("%+v", got)
		}
		x.called()
		b.holds(t, x)
		b.raw.Del(ctx, "k") // its call lease is over
		if got := y.confirm(); !got.Called || got.TTL != 2*time.Second {
			t.Fatalf("%+v", got)
		}
		b.holds(t, y)
		y.releases()
		b.nothingLeft(t)
	})
}

// TestLine_TheCallLease: 2 s, or the lease if that is shorter; a renewal makes it whole.
func TestLine_TheCallLease(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		for lease, call := range map[time.Duration]time.Duration{500 * time.Millisecond: 500 * time.Millisecond, time.Hour: 2 * time.Second} {
			b.raw.FlushAll(ctx)
			want(t, "call lease", lettucecompat.CallLease(lease), call)
			a, x := b.peer(t, "a"), b.peer(t, "x")
			a.takes()
			x.n++
			r := x.request()
			r.Lease = lease
			want(t, "stands", x.TryAcquire(ctx, r).Standing, true)
			a.releases()
			want(t, "lease", x.called().Lease, call)
			b.wantTTL(t, "k", call-400*time.Millisecond, call)
			renewed := x.Renew(ctx, []lettucecompat.Renewal{{Key: "k", Field: x.field(), Lease: lease}}, 0)[0]
			want(t, "renewal", renewed.Outcome, ok)
			b.wantTTL(t, "k", lease-400*time.Millisecond, lease)
		}
	})
}

// TestLine_ManyKeysInOneConfirmation: a batch is one command.
func TestLine_ManyKeysInOneConfirmation(t *testing.T) {
	b := onReal(t, nil)
	a, x := b.peer(t, "a"), b.peer(t, "x")
	var batch []lettucecompat.Place
	for i, key := range oddKeys {
		r := a.request()
		r.Key, r.Field = key, lettucecompat.NewField("a", first+uint64(i))
		want(t, "acquire", a.TryAcquire(ctx, r).Outcome, ok)
		r.Field = lettucecompat.NewField("x", first+uint64(i))
		want(t, "stand", x.TryAcquire(ctx, r).Standing, true)
		batch = append(batch, lettucecompat.Place{Key: key, Field: r.Field, Attempt: r.Attempt + 1})
	}
	before := b.real.Stats(t)["evalsha"]
	for i, got := range x.Confirm(ctx, batch, 0) {
		if got.Outcome != ok || got.Called || got.Holder == "" {
			t.Fatalf("%q: %+v", oddKeys[i], got)
		}
	}
	if sent := b.real.Stats(t)["evalsha"] - before; sent > 2 { // the server does not know the script at first
		t.Fatalf("%d commands", sent)
	}
}

// TestLine_ForeignMessagesAreIgnored: a call or an advice for a field that is not the client's own is
// none, and neither is one that says two things.
func TestLine_ForeignMessagesAreIgnored(t *testing.T) {
	b := onReal(t, nil)
	x := b.peer(t, "x")
	for _, message := range []string{
		`{"called":{"field":"y:1700000000000001","attempt":1,"lease":2000,"token":""}}`,
		`{"called":{"field":"x:1:kept","attempt":1,"lease":2000,"token":""}}`,
		`{"called":{"field":"x:1","attempt":-1,"lease":2000,"token":""}}`,
		`{"look":{"field":"","in":5}}`,
		`{"called":{"field":"x:1","attempt":1,"lease":2000,"token":""},"look":{"field":"x:1","in":5}}`,
	} {
		b.raw.Publish(ctx, "anteroom:client:x", message)
	}
	b.raw.Publish(ctx, "anteroom:client:x", `{"called":{"field":"x:1700000000000000","attempt":5,"lease":2000,"token":"7"}}`)
	want(t, "call", x.called(), lettucecompat.Call{N: first, Attempt: 5, Lease: 2 * time.Second, Token: 7, HasToken: true})
	want(t, "others", len(x.calls)+len(x.looks), 0)
	want(t, "warning", (<-x.warns).Kind, lettucecompat.WarnMalformedMessage)
	want(t, "not reported again", lettucecompat.Unreported(x.Client, lettucecompat.WarnMalformedMessage), 4)
}
