package lettucecompat_test

import (
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/testredis"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// An acquire that fails must leave nothing: least of all a lock without an end.
func TestAFailedAcquireLeavesNothing(t *testing.T) {
	testredis.Needs(t, "7.0", "the script function redis.acl_check_cmd")
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
	testredis.Needs(t, "7.0", "the script function redis.acl_check_cmd")
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

// Before 7.0 a script cannot ask for a right, and a full memory is told to the first write only, so the lock is written
// before its end is set. A user who may do neither that nor take it back leaves a lock without an end. Ping tells before.
func TestAFailedAcquireBefore7(t *testing.T) {
	if testredis.AtLeast("7.0") {
		t.Skip("this is about servers before Redis 7.0")
	}
	b := onReal(t, nil)
	c := newClient(t, b.user(t, "~*", "&*", "+@all", "-pexpire", "-hdel"))
	if _, err := c.Rehearse(ctx, lettucecompat.RehearseRequest{Key: "k"}); !lettucecompat.Permanent(err) || !strings.Contains(err.Error(), "hdel") {
		t.Errorf("rehearsal: %v", err)
	}
	want(t, "left by the rehearsal", b.raw.Exists(ctx, "k").Val(), int64(0))
	want(t, "outcome", c.TryAcquire(ctx, lockRequest("k", "me:1")).Outcome, failed)
	b.wantHash(t, "k", hash{"me:1": "1"})
	want(t, "its end", b.raw.PTTL(ctx, "k").Val(), time.Duration(-1)) // none
	// With the right to HDEL it takes the lock back.
	b.raw.Del(ctx, "k")
	c = newClient(t, b.user(t, "~*", "&*", "+@all", "-pexpire"))
	want(t, "outcome", c.TryAcquire(ctx, lockRequest("k", "me:1")).Outcome, failed)
	b.wantHash(t, "k", hash{})
}
