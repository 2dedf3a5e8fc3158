package lettucecompat_test

import (
	"strconv"
	"testing"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

const fenceOfK = "anteroom:fence:{k}"

// fencedPeer makes a peer whose commands are fenced.
func (b *bed) fencedPeer(t testing.TB, id string) *peer {
	t.Helper()
	p := b.peer(t, id)
	p.terms = fencedTerms
	return p
}

// wantRecord fails unless token is the newest one in the record.
func (b *bed) wantRecord(t testing.TB, token int64) {
	t.Helper()
	want(t, "the record", b.raw.Get(ctx, fenceOfK).Val(), strconv.FormatInt(token, 10))
}

// TestWire_I11_P16_TokensGrow: across grants, calls, turns, FLUSHALL, and a record that was not used for long.
func TestWire_I11_P16_TokensGrow(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		a, x := b.fencedPeer(t, "a"), b.fencedPeer(t, "x")
		last := int64(0)
		grows := func(what string, token int64) {
			t.Helper()
			if token <= last {
				t.Fatalf("%s: token %d after %d", what, token, last)
			}
			last = token
			b.wantRecord(t, token)
		}
		got := a.takes()
		grows("granted", got.Token)
		if now := b.raw.Time(ctx).Val().UnixMicro(); got.Token < now-60_000_000 || got.Token > now {
			t.Fatalf("the first token %d is not near the server's clock %d", got.Token, now)
		}
		b.wantTTL(t, fenceOfK, lettucecompat.DefaultRecordTime-time.Minute, lettucecompat.DefaultRecordTime)
		grows("a turn alone", a.wantWord("yield", a.yield(), has).Token)
		x.waits(0)
		a.wantWord("yield", a.yield(), waits)
		grows("called", x.called().Token)
		want(t, "renewed", x.wantWord("renew", x.state(unit, 1, 1), has).Token, int64(0)) // it is known
		b.wantRecord(t, last)
		x.releases()
		m := a.called()
		grows("called again", m.Token)
		got = a.wantWord("confirm", a.confirm(), has)
		grows("a call that is confirmed", got.Token)
		want(t, "its unit", got.Unit, m.N)
		b.raw.FlushAll(ctx)
		grows("after FLUSHALL", a.takes().Token)
		b.raw.Del(ctx, "k", fenceOfK) // both have ended
		grows("after its time", a.takes().Token)
		a.releases()

		// A record ahead of the clock still grows, by exactly one, and prints exactly.
		b.raw.Set(ctx, fenceOfK, "8000000000000001", 0)
		want(t, "above the record", a.takes().Token, int64(8000000000000002))
		b.wantRecord(t, 8000000000000002)
	})
}

// TestState_P16_TheLastTokenRaisesTheRecord: a give-back names it. Who is late raises nothing.
func TestState_P16_TheLastTokenRaisesTheRecord(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		a := b.fencedPeer(t, "a")
		give := func(wants int64, last int64) lettucecompat.Answer {
			s := a.command(unit, 0, wants)
			s.LastToken = last
			return a.says(s)
		}
		b.raw.Set(ctx, fenceOfK, "8000000000000000", 0) // so that the clock plays no part
		token := a.takes().Token
		a.wantWord("release", give(0, token+4), hasNothing)
		b.wantRecord(t, 8000000000000005)
		token = a.takes().Token
		want(t, "the next", token, int64(8000000000000006))
		token = a.wantWord("yield", give(1, token+2), has).Token
		want(t, "a turn's", token, int64(8000000000000009))
		a.wantWord("lower", give(0, token-5), hasNothing)
		b.wantRecord(t, 8000000000000009)

		// With a mark, and with the line.
		x := b.peer(t, "x")
		a.takes()
		x.waits(0)
		s := a.command(unit, 0, 0)
		s.LastToken, s.Mark = 8000000000000020, time.Second
		a.wantWord("mark", a.says(s), hasNothing)
		b.wantRecord(t, 8000000000000020)
		b.raw.Del(ctx, "k", lineOfK)

		// Late: another was granted meanwhile.
		a.takes()
		b.raw.Del(ctx, "k")
		y := b.fencedPeer(t, "y")
		y.takes()
		a.wantWord("late", give(0, 8000000000000999), lost)
		b.wantRecord(t, 8000000000000022)
	})
}

// TestState_P16_WithoutTheRecord: the confirmation of a unit that nobody has entered makes a record that was deleted anew;
// the renewal of one that is in use leaves it alone.
func TestState_P16_WithoutTheRecord(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		a, x := b.fencedPeer(t, "a"), b.fencedPeer(t, "x")
		a.takes()
		x.waits(0)
		a.releases()
		called := x.called()
		b.raw.Del(ctx, fenceOfK)
		got := x.wantWord("confirm", x.confirm(), has)
		want(t, "a newer token", got.Token > called.Token, true)
		b.raw.Del(ctx, fenceOfK)
		want(t, "in use", x.wantWord("renew", x.state(unit, 1, 1), has).Token, int64(0))
	})
}

// TestState_P16_CalledByWhoDoesNotFence: the call has no token, and its confirmation makes one.
func TestState_P16_CalledByWhoDoesNotFence(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		a, x := b.peer(t, "a"), b.fencedPeer(t, "x")
		last := x.takes().Token
		x.releases()
		a.takes()
		x.waits(0)
		a.releases()
		want(t, "called", x.called().Token, int64(0))
		got := x.wantWord("confirm", x.confirm(), has)
		want(t, "grows", got.Token > last, true)
	})
}

// TestState_P16_CalledWhereTheRecordCannotBeWritten: nobody who fences has the unit without a token, and who leaves gives
// it back.
func TestState_P16_CalledWhereTheRecordCannotBeWritten(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		a, x := b.peer(t, "a"), b.fencedPeer(t, "x")
		a.takes()
		x.waits(0)
		b.raw.Set(ctx, fenceOfK, "mine", 0)
		a.releases()
		x.called()
		if got := x.confirm(); got.Outcome != failed || !lettucecompat.Permanent(got.Err) {
			t.Fatalf("confirm: %+v", got)
		}
		leaves := x.command(nothing, 0, 0)
		leaves.Since = x.unit
		x.wantWord("cancel", x.says(leaves), hasNothing)
		want(t, "lock", b.raw.Exists(ctx, "k").Val(), int64(0))
		want(t, "record", b.raw.Get(ctx, fenceOfK).Val(), "mine")
	})
}

// TestState_P16_ARecordOfAnotherType: is an error as long as nothing was given back; a turn is refused then, and has
// nothing. Nobody is called without a token.
func TestState_P16_ARecordOfAnotherType(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		a, x := b.fencedPeer(t, "a"), b.fencedPeer(t, "x")
		a.takes()
		b.raw.Del(ctx, fenceOfK)
		b.raw.Set(ctx, fenceOfK, "mine", 0)
		x.waits(0)
		got := a.wantWord("yield", a.yield(), waits)
		want(t, "holder", got.Holder, "")
		want(t, "lock", b.raw.Exists(ctx, "k").Val(), int64(0))
		if got := x.confirm(); got.Outcome != failed || !lettucecompat.Permanent(got.Err) {
			t.Fatalf("confirm: %+v", got)
		}
		x.cancel()
		a.cancel()
		if got := a.acquire(); got.Outcome != failed || !lettucecompat.Permanent(got.Err) {
			t.Fatalf("ask: %+v", got)
		}
		want(t, "lock", b.raw.Exists(ctx, "k").Val(), int64(0))
		want(t, "record", b.raw.Get(ctx, fenceOfK).Val(), "mine")
	})
}

// TestState_P16_RedissonsCounter: the tokens are RFencedLock's: one counter for both, without a time to live, which a grant
// of ours raises to the clock.
func TestState_P16_RedissonsCounter(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		const counter = "redisson_lock_token:{k}"
		a := b.redisson(t, ourUUID)
		a.terms = fencedTerms
		last := int64(0)
		grows := func(what string, token int64) {
			t.Helper()
			if token <= last {
				t.Fatalf("%s: token %d after %d", what, token, last)
			}
			last = token
			want(t, what+": the counter", b.raw.Get(ctx, counter).Val(), strconv.FormatInt(token, 10))
		}
		incr := func() int64 { return b.raw.Incr(ctx, counter).Val() }
		grows("Java's", incr())
		grows("ours", a.takes().Token)
		if now := b.raw.Time(ctx).Val().UnixMicro(); last < now-60_000_000 || last > now {
			t.Fatalf("token %d is not near the server's clock %d", last, now)
		}
		want(t, "TTL", b.raw.PTTL(ctx, counter).Val(), time.Duration(-1))
		want(t, "newest", must2(a.Inspect(ctx, "k", false)).Token, last)
		s := a.command(unit, 0, 1)
		s.LastToken = last
		grows("a turn's", a.wantWord("yield", a.says(s), has).Token)
		want(t, "renewed", a.wantWord("renew", a.state(unit, 1, 1), has).Token, int64(0)) // it is known
		b.raw.Del(ctx, "k")
		grows("after a loss", a.takes().Token)
		want(t, "forced", len(must2(a.ForceRelease(ctx, "k", false))), 1)
		grows("Java's, which follows ours", incr())

		// A counter ahead of the clock still grows, by exactly one, and prints exactly.
		b.raw.Set(ctx, counter, "8000000000000001", 0)
		want(t, "above the counter", a.takes().Token, int64(8000000000000002))
		a.releases()
		for _, fenced := range []bool{true, false} {
			if err := a.Rehearse(ctx, lettucecompat.RehearseRequest{Key: "k", Fenced: fenced}); err != nil {
				t.Fatal(err)
			}
		}
		want(t, "a rehearsal leaves it", b.raw.Get(ctx, counter).Val(), "8000000000000002")
		b.raw.FlushAll(ctx)
		if err := a.Rehearse(ctx, lettucecompat.RehearseRequest{Key: "k", Fenced: true}); err != nil {
			t.Fatal(err)
		}
		b.nothingLeft(t)
		grows("after FLUSHALL", a.takes().Token)
		a.releases()
		for what, set := range map[string]func(){
			"another type": func() { b.raw.HSet(ctx, counter, "counter", "1") },
			"no number":    func() { b.raw.Set(ctx, counter, "mine", 0) },
		} {
			b.raw.Del(ctx, counter)
			set()
			if got := a.acquire(); got.Outcome != failed {
				t.Fatalf("on a counter of %s: %+v", what, got)
			}
			want(t, "left", b.raw.Exists(ctx, "k").Val(), int64(0))
		}
	})
}

// TestState_P16_TokensOfTwoDialectsGrow: each has a counter of its own, and both follow the clock. Until a hold is given
// back, fewer tokens were handed out than the half of its microseconds.
func TestState_P16_TokensOfTwoDialectsGrow(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		d, r := b.fencedPeer(t, "d"), b.redisson(t, ourUUID)
		r.terms = fencedTerms
		last := int64(0)
		grows := func(what string, token int64) {
			t.Helper()
			if token <= last {
				t.Fatalf("%s: token %d after %d", what, token, last)
			}
			last = token
		}
		for range 3 {
			grows("Redisson's dialect", r.takes().Token)
			r.releases()
			grows("the document's", d.takes().Token)
			granted := time.Now()
			time.Sleep(time.Millisecond)
			s := d.command(unit, 0, 0)
			s.LastToken = last + time.Since(granted).Microseconds()/2 // handed off within the process
			last = s.LastToken
			d.wantWord("release", d.says(s), hasNothing)
		}
	})
}
