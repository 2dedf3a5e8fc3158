package lettucecompat_test

import (
	"testing"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// TestLine_ReleaseCallsInTheOrderOfStanding: the release gives the lock to the first, who is told
// which attempt, for how long, and has it already.
func TestLine_ReleaseCallsInTheOrderOfStanding(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		a, x, y, z := b.peer(t, "a"), b.peer(t, "x"), b.peer(t, "y"), b.peer(t, "z")
		a.takes()
		for i, p := range []*peer{x, y, z} {
			got := p.stands(i)
			want(t, "holder", got.Holder, a.field())
			want(t, "found", got.Found, false)
		}
		holder := a
		for _, p := range []*peer{x, y, z} {
			holder.releases()
			call := p.called()
			want(t, "attempt", call.Attempt, p.send)
			want(t, "lease", call.Lease, 2*time.Second)
			want(t, "token", call.HasToken, false)
			b.holds(t, p)
			b.wantTTL(t, "k", time.Second, 2*time.Second)
			holder = p
		}
		z.releases()
		b.nothingLeft(t)
	})
}

// TestLine_TurnCallsAndStands: one command removes the field, calls the next and stands at the tail.
func TestLine_TurnCallsAndStands(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		a, x := b.peer(t, "a"), b.peer(t, "x")
		a.takes()
		turn := lettucecompat.TurnRequest{
			Key: "k", Field: a.field(), Lease: 10 * time.Second,
			Next: lettucecompat.NewField("a", a.n+1), Attempt: nonce + 1000,
		}
		want(t, "alone", a.EndTurn(ctx, turn).Kept, true)
		x.stands(0)
		got := a.EndTurn(ctx, turn)
		if got.Outcome != ok || got.Kept || !got.Standing || got.Ahead != 0 || got.Holder != x.field() || got.TTL != 2*time.Second {
			t.Fatalf("turn: %+v", got)
		}
		x.called()
		b.holds(t, x)
		want(t, "again", a.EndTurn(ctx, turn).Outcome, gone)
		x.releases()
		a.n++
		want(t, "attempt", a.called().Attempt, uint64(nonce+1000))
		a.releases()
		b.nothingLeft(t)
	})
}

// TestLine_ACallTellsHowManyWereDead: who is called learns how many places before it were removed
// because nobody had confirmed them, so that somebody counts them.
func TestLine_ACallTellsHowManyWereDead(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		a, x, y, z := b.peer(t, "a"), b.peer(t, "x"), b.peer(t, "y"), b.peer(t, "z")
		a.takes()
		x.stands(0)
		y.stands(1)
		z.stands(2)
		b.age(t, x, 11*time.Second)
		b.age(t, y, 11*time.Second)
		a.releases()
		want(t, "dead", z.called().Dead, 2)
		x.stands(0)
		z.releases()
		want(t, "dead", x.called().Dead, 0)
		x.releases()
		b.nothingLeft(t)
	})
}
