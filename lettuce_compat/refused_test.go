package lettucecompat_test

import (
	"testing"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// An acquire that fails must leave nothing: least of all a lock without an end.
func TestAFailedAcquireLeavesNothing(t *testing.T) {
	b := onReal(t, nil)
	c := newClient(t, b.user(t, "~*", "&*", "+@all", "-pexpire", "-hdel"))
	got := c.TryAcquire(ctx, lockRequest("k", "me:1"))
	t.Log(got.Outcome, got.Err, b.raw.PTTL(ctx, "k").Val())
	if got.Outcome == lettucecompat.OutcomeFailed && b.raw.Exists(ctx, "k").Val() == 1 {
		t.Errorf("OutcomeFailed (\"certainly no effect\"), and the field stays for ever: %v", b.hash(t, "k"))
	}
}

// A failed fenced acquire must not make the holder's renewal lose its claim.
func TestAFailedAcquireLeavesTheGrantee(t *testing.T) {
	b := onReal(t, nil)
	mine := b.client(t)
	got := mine.TryAcquire(ctx, fenced("k", "me:1"))
	want(t, "acquire", got.Outcome, ok)
	b.raw.Del(ctx, "k") // it vanishes: me:1 may take it again
	you := newClient(t, b.user(t, "~*", "&*", "+@all", "-pexpire"), func(o *lettucecompat.Options) { o.ClientID = "you" })
	want(t, "their acquire", you.TryAcquire(ctx, fenced("k", "you:1")).Outcome, failed)
	r := mine.Extend(ctx, lettucecompat.Renewal{Key: "k", Field: "me:1", Lease: 60e9, Reacquire: true}, 0)
	if r.Outcome != ok {
		t.Errorf("renewal with Reacquire: %v, though nobody had the lock in between", r.Outcome)
	}
}
