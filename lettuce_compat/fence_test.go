package lettucecompat_test

import (
	"strconv"
	"testing"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

const fenceOfK = "anteroom:fence:{k}"

func fenced(key, field string) lettucecompat.AcquireRequest {
	return lettucecompat.AcquireRequest{Key: key, Field: field, Lease: 10 * time.Second, Tokens: 5}
}

func TestWire_I11_TokensGrow(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		c := b.client(t)
		first := c.TryAcquire(ctx, fenced("k", "me:1"))
		want(t, "outcome", first.Outcome, ok)
		if now := time.Now().UnixMicro(); first.Token < now-int64(time.Minute/time.Microsecond) || first.Token > now+int64(time.Minute/time.Microsecond) {
			t.Fatalf("the first token %d is not near the server's clock %d", first.Token, now)
		}
		want(t, "counter", b.hash(t, fenceOfK)["counter"], strconv.FormatInt(first.Token+4, 10))
		b.wantTTL(t, fenceOfK, lettucecompat.DefaultRecordTime-time.Minute, lettucecompat.DefaultRecordTime+time.Second)

		// Two of five were used: three go back.
		rel := c.Release(ctx, lettucecompat.ReleaseRequest{
			Key: "k", Field: "me:1", Fenced: true, LastToken: first.Token + 1, ReservedUpTo: first.Token + 4,
		})
		want(t, "release", rel.Outcome, ok)
		b.wantHash(t, fenceOfK, hash{"counter": strconv.FormatInt(first.Token+1, 10)})

		// A counter ahead of the clock still grows, by exactly one, and prints exactly.
		b.raw.HSet(ctx, fenceOfK, "counter", "8000000000000001")
		ahead := c.TryAcquire(ctx, fenced("k", "me:2"))
		want(t, "token above the counter", ahead.Token, int64(8000000000000002))
		want(t, "counter", b.hash(t, fenceOfK)["counter"], "8000000000000006")

		// Nobody gets back what another has passed.
		b.raw.HSet(ctx, fenceOfK, "counter", "8000000000000010", "grantee", "me:2")
		c.Release(ctx, lettucecompat.ReleaseRequest{Key: "k", Field: "me:2", Fenced: true, LastToken: ahead.Token, ReservedUpTo: ahead.Token + 4})
		b.wantHash(t, fenceOfK, hash{"counter": "8000000000000010"})
	})
}

func TestWire_I11_TokensGrowAcrossFlush(t *testing.T) {
	b := onReal(t, nil)
	c := b.client(t)
	before := c.TryAcquire(ctx, fenced("k", "me:1"))
	b.raw.FlushAll(ctx)
	after := c.TryAcquire(ctx, fenced("k", "me:2"))
	if after.Outcome != ok || after.Token <= before.Token {
		t.Fatalf("token %d before FLUSHALL, %d after (%v)", before.Token, after.Token, after.Err)
	}
}

func TestTurnReservesAndGivesBack(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		c := b.client(t)
		got := c.TryAcquire(ctx, fenced("k", "me:1"))
		kept := c.EndTurn(ctx, lettucecompat.TurnRequest{
			Key: "k", Field: "me:1", Lease: 10 * time.Second, Fenced: true, Tokens: 3,
			LastToken: got.Token, ReservedUpTo: got.Token + 4,
		})
		want(t, "kept", kept.Kept, true)
		if kept.Token <= got.Token+4 {
			t.Fatalf("kept token %d does not exceed %d", kept.Token, got.Token+4)
		}
		want(t, "counter", b.hash(t, fenceOfK)["counter"], strconv.FormatInt(kept.Token+2, 10))
		want(t, "grantee", b.hash(t, fenceOfK)["grantee"], "me:1")
	})
}

// TestReacquire: the lock is taken again only where nobody had it in between and we
// have not released it ourselves, however late the renewal comes.
func TestReacquire(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		c := b.client(t)
		again := lettucecompat.Renewal{Key: "k", Field: "me:1", Lease: 10 * time.Second, Reacquire: true}
		for _, tc := range []struct {
			name   string
			happen func()
			want   lettucecompat.Outcome
		}{
			{"deleted", func() { b.raw.Del(ctx, "k") }, ok},
			{"everything lost", func() { b.raw.FlushAll(ctx) }, gone},
			{"held by another", func() { b.raw.Del(ctx, "k"); b.put(t, "k", hash{"you:1": "1"}, time.Minute) }, gone},
			{"another came and went", func() {
				b.raw.Del(ctx, "k")
				c.TryAcquire(ctx, fenced("k", "you:1"))
				b.raw.Del(ctx, "k")
			}, gone},
			{"released", func() { c.Release(ctx, lettucecompat.ReleaseRequest{Key: "k", Field: "me:1", Fenced: true}) }, gone},
			{"released after it was gone", func() {
				b.raw.Del(ctx, "k")
				c.Release(ctx, lettucecompat.ReleaseRequest{Key: "k", Field: "me:1", Fenced: true})
			}, gone},
			{"released with MinHold, mark gone", func() {
				c.Release(ctx, lettucecompat.ReleaseRequest{Key: "k", Field: "me:1", Fenced: true, Keep: time.Second})
				b.raw.Del(ctx, "k")
			}, gone},
		} {
			t.Run(tc.name, func(t *testing.T) {
				b.raw.FlushAll(ctx)
				want(t, "acquire", c.TryAcquire(ctx, fenced("k", "me:1")).Outcome, ok)
				tc.happen()
				got := c.Renew(ctx, []lettucecompat.Renewal{again}, 0)[0]
				want(t, "outcome", got.Outcome, tc.want)
				want(t, "reacquired", got.Reacquired, tc.want == ok)
				if tc.want == ok {
					b.wantHash(t, "k", hash{"me:1": "1"})
					b.wantTTL(t, "k", 9*time.Second, 10*time.Second)
				}
			})
		}
	})
}

// A record that was not used for long ends. The server's clock has passed every token in it by
// then, so that they go on growing.
func TestWire_I11_TokensGrowAfterTheRecordHasEnded(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		c := b.client(t)
		var last int64
		for n := range uint64(5) {
			r := fenced("k", lettucecompat.NewField("me", n))
			r.RecordTime = 5 * time.Millisecond
			got := c.TryAcquire(ctx, r)
			if got.Outcome != ok || got.Token <= last {
				t.Fatalf("token %d after %d (%v, %v)", got.Token, last, got.Outcome, got.Err)
			}
			last = got.Token + 4 // nothing is given back
			c.Release(ctx, lettucecompat.ReleaseRequest{Key: "k", Field: r.Field, Fenced: true, RecordTime: r.RecordTime})
			eventually(t, "the record has ended", func() bool { return b.raw.Exists(ctx, fenceOfK).Val() == 0 })
		}
	})
}

// How long a record lives: never shorter than anybody asked for, and beyond the moment at which
// the clock has passed its tokens.
func TestWire_I11_TheLifeOfARecord(t *testing.T) {
	const hour = time.Hour
	both(t, func(t *testing.T, b *bed) {
		c := b.client(t)
		n := uint64(0)
		turn := func(life time.Duration) {
			n++
			r := fenced("k", lettucecompat.NewField("me", n))
			r.RecordTime = life
			want(t, "acquire", c.TryAcquire(ctx, r).Outcome, ok)
			want(t, "release", c.Release(ctx, lettucecompat.ReleaseRequest{Key: "k", Field: r.Field, Fenced: true, RecordTime: life}).Outcome, ok)
		}
		turn(hour)
		b.wantTTL(t, fenceOfK, hour-time.Minute, hour+time.Second)
		turn(time.Minute) // another client's setting shortens nothing
		b.wantTTL(t, fenceOfK, hour-time.Minute, hour+time.Second)
		b.raw.Persist(ctx, fenceOfK) // as an older client left it
		turn(hour)
		b.wantTTL(t, fenceOfK, hour-time.Minute, hour+time.Second)
		turn(0)
		b.wantTTL(t, fenceOfK, 7*24*hour-time.Minute, 7*24*hour+time.Second)

		if b.mini != nil && strconv.IntSize == 32 {
			t.Skip("on 32 bit miniredis refuses a PEXPIRE of more than 24 days")
		}
		// The clock was set back by 30 days: the tokens are that far ahead of it.
		b.raw.HSet(ctx, fenceOfK, "counter", strconv.FormatInt(time.Now().Add(30*24*hour).UnixMicro(), 10))
		turn(hour)
		b.wantTTL(t, fenceOfK, 30*24*hour+hour-time.Minute, 30*24*hour+hour+time.Minute)

		// A renewal that may need it renews it, and not each time.
		want(t, "acquire", c.TryAcquire(ctx, fenced("k", "me:99")).Outcome, ok)
		again := lettucecompat.Renewal{Key: "k", Field: "me:99", Lease: 10 * time.Second, Reacquire: true, RecordTime: hour}
		for left, becomes := range map[time.Duration]time.Duration{40 * time.Minute: 40 * time.Minute, 20 * time.Minute: hour} {
			b.raw.PExpire(ctx, fenceOfK, left)
			want(t, "renew", c.Extend(ctx, again, 0).Outcome, ok)
			b.wantTTL(t, fenceOfK, becomes-time.Minute, becomes)
		}
		b.raw.PExpire(ctx, fenceOfK, time.Minute)
		kept := c.EndTurn(ctx, lettucecompat.TurnRequest{Key: "k", Field: "me:99", Lease: 10 * time.Second, Fenced: true, Tokens: 1, RecordTime: hour})
		want(t, "kept", kept.Kept, true)
		b.wantTTL(t, fenceOfK, hour-time.Minute, hour+30*24*hour+time.Minute)
	})
}
