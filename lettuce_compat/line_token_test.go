package lettucecompat_test

import (
	"strconv"
	"testing"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// fencedPeers are a holder of k with five tokens, and one that stands for five.
func fencedPeers(t *testing.T, b *bed) (a, x *peer, granted lettucecompat.AcquireReply) {
	t.Helper()
	a, x = b.peer(t, "a"), b.peer(t, "x")
	ask := func(p *peer) lettucecompat.AcquireReply {
		p.n++
		r := p.request()
		r.Tokens = 5
		return p.TryAcquire(ctx, r)
	}
	granted = ask(a)
	want(t, "acquire", granted.Outcome, ok)
	want(t, "stand", ask(x).Standing, true)
	want(t, "reserved while standing", b.hash(t, fenceOfK)["counter"], strconv.FormatInt(granted.Token+4, 10))
	return a, x, granted
}

// TestLine_ACallReservesTokens: after those of the grant that ends have gone back, and the record
// names who was called.
func TestLine_ACallReservesTokens(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		a, x, granted := fencedPeers(t, b)
		got := a.Release(ctx, lettucecompat.ReleaseRequest{
			Key: "k", Field: a.field(), Fenced: true, LastToken: granted.Token, ReservedUpTo: granted.Token + 4,
		})
		want(t, "release", got.Outcome, ok)
		call := x.called()
		want(t, "told", call.HasToken, true)
		if call.Token <= granted.Token {
			t.Fatalf("token %d after %d", call.Token, granted.Token)
		}
		b.wantHash(t, fenceOfK, hash{"counter": strconv.FormatInt(call.Token+4, 10), "grantee": x.field()})

		// An accept gives these back and reserves anew.
		r := x.request()
		r.Repeat, r.Tokens = true, 5
		r.GiveBack = lettucecompat.GiveBack{Field: x.field(), LastToken: call.Token - 1, ReservedUpTo: call.Token + 4}
		accepted := x.TryAcquire(ctx, r)
		if accepted.Outcome != ok || !accepted.Found || accepted.Token < call.Token {
			t.Fatalf("accepted with %+v after %d", accepted, call.Token)
		}
	})
}

// TestLine_ATurnReservesTokens: with the next field's wish for them in its place.
func TestLine_ATurnReservesTokens(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		a, x, granted := fencedPeers(t, b)
		turn := a.EndTurn(ctx, lettucecompat.TurnRequest{
			Key: "k", Field: a.field(), Lease: 10 * time.Second, Next: lettucecompat.NewField("a", a.n+1), Attempt: nonce + 99,
			Fenced: true, Tokens: 5, LastToken: granted.Token + 4, ReservedUpTo: granted.Token + 4,
		})
		want(t, "standing", turn.Standing, true)
		call := x.called()
		if call.Token <= granted.Token+4 {
			t.Fatalf("token %d after %d", call.Token, granted.Token+4)
		}
		want(t, "release", x.Release(ctx, lettucecompat.ReleaseRequest{Key: "k", Field: x.field(), Fenced: true}).Outcome, ok)
		a.n++
		if again := a.called(); again.Token <= call.Token+4 {
			t.Fatalf("token %d after %d", again.Token, call.Token+4)
		}
	})
}

// TestLine_ACallWithoutTheRecord: who does not fence, and a confirmation, cannot reserve tokens;
// the message says so, and the accept reserves them.
func TestLine_ACallWithoutTheRecord(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		for name, call := range map[string]func(a, x *peer){
			"release": func(a, _ *peer) { a.releases() },
			"confirm": func(_, x *peer) { b.raw.Del(ctx, "k"); want(t, "called", x.confirm().Called, true) },
		} {
			b.raw.FlushAll(ctx)
			a, x, granted := fencedPeers(t, b)
			call(a, x)
			want(t, name+": token", x.called().HasToken, false)
			r := x.request()
			r.Repeat, r.Tokens = true, 5
			accepted := x.TryAcquire(ctx, r)
			if accepted.Outcome != ok || !accepted.Found || accepted.Token <= granted.Token+4 {
				t.Fatalf("%s: accepted with %+v after %d", name, accepted, granted.Token+4)
			}
			want(t, "grantee", b.hash(t, fenceOfK)["grantee"], x.field())
		}
	})
}

// TestLine_ACallOfOneWithoutTokensForgetsTheGrantee: a holder that vanished before must not take
// the lock back from who was called.
func TestLine_ACallOfOneWithoutTokensForgetsTheGrantee(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		a, x, y := b.peer(t, "a"), b.peer(t, "x"), b.peer(t, "y")
		a.n++
		r := a.request()
		r.Tokens = 5
		want(t, "acquire", a.TryAcquire(ctx, r).Outcome, ok)
		x.stands(0)
		b.raw.Del(ctx, "k")
		y.n++
		r = y.request()
		r.Tokens = 5
		want(t, "holder", y.TryAcquire(ctx, r).Holder, x.field())
		x.releases()
		y.called()
		b.raw.Del(ctx, "k")
		again := lettucecompat.Renewal{Key: "k", Field: a.field(), Lease: time.Second, Reacquire: true}
		want(t, "taken back", a.Extend(ctx, again, 0).Outcome, gone)
	})
}
