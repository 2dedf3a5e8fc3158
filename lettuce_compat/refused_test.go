package lettucecompat_test

import (
	"strings"
	"testing"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// An acquire that fails must leave nothing: least of all a lock without an end.
func TestAFailedAcquireLeavesNothing(t *testing.T) {
	t.Parallel()
	b := onReal(t, nil)
	c := newClient(t, b.user(t, "~*", "&*", "+@all", "-pexpire"))
	got := c.Do(ctx, asks("k", 1))
	t.Log(got.Outcome, got.Err, b.raw.PTTL(ctx, "k").Val())
	if got.Outcome == lettucecompat.OutcomeFailed && b.raw.Exists(ctx, "k").Val() == 1 {
		t.Errorf("OutcomeFailed (\"certainly no effect\"), and the field stays for ever: %v", b.hash(t, "k"))
	}
}

// A user who may set a field and neither its end nor take it back would leave a lock without an end. Ping reports that before.
func TestRehearse_FindsWhoCouldLeaveALockWithoutAnEnd(t *testing.T) {
	t.Parallel()
	b := onReal(t, nil)
	c := newClient(t, b.user(t, "~*", "&*", "+@all", "-pexpire", "-hdel"))
	if err := c.Rehearse(ctx, lettucecompat.RehearseRequest{Key: "k"}); !lettucecompat.Permanent(err) || !strings.Contains(err.Error(), "hdel") {
		t.Errorf("rehearsal: %v", err)
	}
	want(t, "left by the rehearsal", b.raw.Exists(ctx, "k").Val(), int64(0))
}
