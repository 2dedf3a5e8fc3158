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

// TestLine_OnePlaceAClient: a newer field keeps the position, an older one that comes late changes
// nothing, a lower attempt lowers nothing, and what a place asks for stays what it was.
func TestLine_OnePlaceAClient(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		a, x, y := b.peer(t, "a"), b.peer(t, "x"), b.peer(t, "y")
		a.takes()
		x.stands(0)
		late := x.request() // of the field that x gives up now
		y.stands(1)
		x.stands(0)
		if got := x.TryAcquire(ctx, late); got.Outcome != refused || got.Standing || got.Holder != a.field() {
			t.Fatalf("late stand of an older field: %+v", got)
		}
		highest := x.send
		for _, attempt := range []uint64{highest, nonce + 1} {
			again := x.request()
			again.Attempt, again.Lease, again.Tokens, again.Repeat = attempt, time.Second, 7, true
			if got := x.TryAcquire(ctx, again); !got.Standing || !got.Found || got.Ahead != 0 {
				t.Fatalf("confirmed by an attempt: %+v", got)
			}
		}
		want(t, "places", b.raw.HGet(ctx, lineOfK, "cx").Val(), "1")
		a.releases()
		call := x.called()
		want(t, "attempt", call.Attempt, highest)
		want(t, "lease", call.Lease, 2*time.Second)
		b.holds(t, x)
	})
}

// TestLine_AFreeLockIsTheFirstOnes: an attempt that finds the lock free while another lives in the
// line gives it to the first, whether it stands or not.
func TestLine_AFreeLockIsTheFirstOnes(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		for _, stands := range []bool{false, true} {
			b.raw.FlushAll(ctx)
			a, x, y := b.peer(t, "a"), b.peer(t, "x"), b.peer(t, "y")
			a.takes()
			x.stands(0)
			b.raw.Del(ctx, "k")
			got := y.try
			if stands {
				got = y.acquire
			}
			if r := got(); r.Outcome != refused || r.Standing != stands || r.Holder != x.field() || r.TTL != 2*time.Second {
				t.Fatalf("stands %v: %+v", stands, r)
			}
			x.called()
			b.holds(t, x)
		}
	})
}

// TestLine_TryNeverStands: and takes what nobody stands for.
func TestLine_TryNeverStands(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		a, x := b.peer(t, "a"), b.peer(t, "x")
		a.takes()
		if got := x.try(); got.Outcome != refused || got.Standing || got.Holder != a.field() {
			t.Fatalf("%+v", got)
		}
		a.releases()
		b.nothingLeft(t)
		want(t, "free", x.try().Outcome, ok)
	})
}

// TestLine_AGrantRemovesTheOwnPlace: of the same or an older field, never of a newer one.
func TestLine_AGrantRemovesTheOwnPlace(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		a, x := b.peer(t, "a"), b.peer(t, "x")
		a.takes()
		x.stands(0)
		older := x.request()
		x.stands(0)
		b.raw.Del(ctx, "k")
		older.Attempt = 0
		want(t, "late attempt", x.TryAcquire(ctx, older).Outcome, ok)
		want(t, "place of the newer field", b.raw.HExists(ctx, lineOfK, "cx").Val(), true)
		b.raw.Del(ctx, "k")
		r := x.request()
		r.Repeat = true
		want(t, "the same field", x.TryAcquire(ctx, r).Outcome, ok)
		want(t, "line", b.raw.Exists(ctx, lineOfK).Val(), int64(0))
	})
}

// TestLine_DroppingABurntFieldCallsFirst: an attempt that frees the key by dropping a burnt field
// lets those in who came before it.
func TestLine_DroppingABurntFieldCallsFirst(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		a, x := b.peer(t, "a"), b.peer(t, "x")
		a.takes()
		burnt := a.field()
		x.stands(0)
		a.n++
		r := a.request()
		r.Drop = []string{burnt}
		if got := a.TryAcquire(ctx, r); got.Outcome != refused || !got.Standing || got.Ahead != 0 || got.Holder != x.field() {
			t.Fatalf("%+v", got)
		}
		x.called()
		b.holds(t, x)
		// A try drops the place of a burnt field as well.
		burnt = a.field()
		a.n++
		r = a.request()
		r.Attempt, r.Drop = 0, []string{burnt}
		want(t, "try", a.TryAcquire(ctx, r).Outcome, refused)
		x.releases()
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
