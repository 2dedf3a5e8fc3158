package lettucecompat_test

import (
	"testing"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// A command that the server does not have is missed only where locks need it.
func TestRehearse_RenamedCommands(t *testing.T) {
	for _, cmd := range []string{"script", "pubsub", "wait", "publish", "subscribe", "exists"} {
		t.Run(cmd, func(t *testing.T) {
			b := onReal(t, []string{"--rename-command", cmd, ""})
			c := b.client(t)
			got := c.TryAcquire(ctx, lockRequest("k", "me:1"))
			rel := c.Release(ctx, lettucecompat.ReleaseRequest{Key: "k", Field: "me:1"})
			without, err := c.Rehearse(ctx, lettucecompat.RehearseRequest{Key: "p"})
			t.Logf("acquire %v %v release %v; rehearse: %v %v", got.Outcome, got.Err, rel.Outcome, without, err)
			if got.Outcome == ok && err != nil {
				t.Errorf("locks work, and Ping says %v", err)
			}
		})
	}
}
