package lettucecompat_test

import (
	"strconv"
	"testing"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// A repeat that finds its field accounts for one of the lost answers; one that sets it
// does not, because the lost sends may still arrive.
func TestWire_TheAnswerTellsWhatItFound(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		c := b.client(t)
		r := lockRequest("k", "me:1")
		want(t, "the first attempt", c.TryAcquire(ctx, r).Found, false)
		r.Repeat = true
		want(t, "a repeat", c.TryAcquire(ctx, r).Found, true)
		b.raw.Del(ctx, "k")
		want(t, "a repeat on a free key", c.TryAcquire(ctx, r).Found, false)
	})
}

// A hash of more than 64 fields is somebody's data: its names are not fetched, and a
// forced release leaves it alone.
func TestScript_ALargeHashIsNotRead(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		c := b.client(t)
		data := hash{}
		for i := range 65 {
			data["f"+strconv.Itoa(i)] = "1"
		}
		b.put(t, "data", data, 0)
		got := c.TryAcquire(ctx, lockRequest("data", "me:1"))
		want(t, "outcome", got.Outcome, refused)
		want(t, "holder", got.Holder, "")
		_, err := c.ForceRelease(ctx, "data")
		want(t, "forced: permanent", lettucecompat.Permanent(err), true)
		b.wantHash(t, "data", data)

		b.raw.HDel(ctx, "data", "f0")
		if got := c.TryAcquire(ctx, lockRequest("data", "me:1")); got.Holder == "" {
			t.Error("of 64 fields none is named")
		}
		released, err := c.ForceRelease(ctx, "data")
		if err != nil || len(released) != 64 {
			t.Errorf("forced: %d fields, %v", len(released), err)
		}
	})
}

// An attempt that removes a burnt field gives its unused tokens back, and only then
// reserves its own.
func TestScript_AcquireGivesBackForADroppedField(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		c := b.client(t)
		const many = 1 << 40 // some twelve days of the clock that tokens follow
		r := fenced("k", "me:1")
		r.Tokens = many
		first := c.TryAcquire(ctx, r)
		want(t, "first", first.Outcome, ok)
		next := fenced("k", "me:2")
		next.Drop = []string{"me:1"}
		next.GiveBack = lettucecompat.GiveBack{Field: "me:1", LastToken: first.Token + 1, ReservedUpTo: first.Token + many - 1}
		second := c.TryAcquire(ctx, next)
		want(t, "second", second.Outcome, ok)
		if second.Token <= first.Token+1 || second.Token >= first.Token+many {
			t.Errorf("the next token is %d above the first; those that nobody had were given back", second.Token-first.Token)
		}
	})
}

// A key that needs no longer TTL gets none, and still only a master's word confirms it: a
// replica may be behind a master that has given the lock away.
func TestWire_I3_ConfirmedOnlyByMaster(t *testing.T) {
	b := onReal(t, nil)
	c := b.client(t)
	b.put(t, "k", hash{"me:1": "1"}, time.Hour)
	r := lettucecompat.Renewal{Key: "k", Field: "me:1", Lease: 10 * time.Second}
	want(t, "of a master", c.Extend(ctx, r, 0).Outcome, ok)
	if err := b.raw.ReplicaOf(ctx, "127.0.0.1", "1").Err(); err != nil { // of a master that is away
		t.Fatal(err)
	}
	want(t, "of a replica", c.Extend(ctx, r, 0).Outcome, failed)
	b.wantTTL(t, "k", 59*time.Minute, time.Hour)
}

// The same for a turn that is kept.
func TestScript_AKeptTurnGivesBackFirst(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		c := b.client(t)
		const many = 1 << 40
		r := fenced("k", "me:1")
		r.Tokens = many
		first := c.TryAcquire(ctx, r)
		kept := c.EndTurn(ctx, lettucecompat.TurnRequest{
			Key: "k", Field: "me:1", Lease: 10 * time.Second, Fenced: true, Tokens: 3,
			LastToken: first.Token + 1, ReservedUpTo: first.Token + many - 1,
		})
		want(t, "kept", kept.Kept, true)
		if kept.Token <= first.Token+1 || kept.Token >= first.Token+many {
			t.Errorf("the next turn begins %d above the first; what that had not used was given back", kept.Token-first.Token)
		}
	})
}

// A release that comes after another has taken the lock leaves the other's record alone.
func TestScript_ALateReleaseLeavesTheNextGrantee(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		c := b.client(t)
		mine := c.TryAcquire(ctx, fenced("k", "me:1"))
		b.raw.Del(ctx, "k")
		next := c.TryAcquire(ctx, fenced("k", "me:2"))
		want(t, "next", next.Outcome, ok)
		before := b.hash(t, fenceOfK)
		got := c.Release(ctx, lettucecompat.ReleaseRequest{
			Key: "k", Field: "me:1", Fenced: true, LastToken: mine.Token, ReservedUpTo: next.Token + 4,
		})
		want(t, "late release", got.Outcome, gone)
		b.wantHash(t, fenceOfK, before)
	})
}

// Where it cannot be known who waits, the turn ends with a release.
func TestScript_ATurnWithoutTheRightToCount(t *testing.T) {
	b := onReal(t, nil)
	c := newClient(t, b.user(t, "~*", "&*", "+@all", "-pubsub"))
	want(t, "acquire", c.TryAcquire(ctx, lockRequest("k", "me:1")).Outcome, ok)
	got := c.EndTurn(ctx, lettucecompat.TurnRequest{Key: "k", Field: "me:1", Lease: 10 * time.Second})
	want(t, "outcome", got.Outcome, ok)
	want(t, "kept", got.Kept, false)
	b.wantHash(t, "k", hash{})
}

// A lock that is taken back by a user who may not set its TTL would stay for ever.
func TestScript_NoHolderWithoutAnEnd(t *testing.T) {
	b := onReal(t, nil)
	want(t, "acquire", b.client(t).TryAcquire(ctx, fenced("k", "me:1")).Outcome, ok)
	b.raw.Del(ctx, "k")
	c := newClient(t, b.user(t, "~*", "&*", "+@all", "-pexpire"))
	got := c.Extend(ctx, lettucecompat.Renewal{Key: "k", Field: "me:1", Lease: time.Minute, Reacquire: true}, 0)
	want(t, "taken back", got.Outcome, failed)
	b.wantHash(t, "k", hash{})
}
