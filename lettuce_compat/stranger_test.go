package lettucecompat_test

import (
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/stranger"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// run runs one of the stranger's scripts.
func run(t testing.TB, s stranger.Client, script, key string, lease time.Duration) bool {
	t.Helper()
	yes, err := s.Run(ctx, script, key, lease)
	if err != nil {
		t.Fatal(err)
	}
	return yes
}

func TestStranger(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		var warned atomic.Bool
		c := b.client(t, func(o *lettucecompat.Options) { o.OnWarning = func(lettucecompat.Warning) { warned.Store(true) } })
		s := stranger.Client{RDB: b.raw, Holder: "server1-thread-123"}
		const lease = 10 * time.Second

		// Exclusion, seen from both sides; the state is the same byte for byte.
		want(t, "stranger locks", run(t, s, stranger.Lock, "theirs", lease), true)
		got := c.TryAcquire(ctx, lockRequest("theirs", "me:1"))
		want(t, "we are refused", got.Outcome, refused)
		want(t, "by the stranger", got.Holder, s.Holder)
		want(t, "we lock", c.TryAcquire(ctx, lockRequest("ours", "me:1")).Outcome, ok)
		want(t, "the stranger is refused", run(t, s, stranger.Lock, "ours", lease), false)
		ours, theirs := b.raw.Dump(ctx, "ours"), b.raw.Dump(ctx, "theirs")
		if ours.Err() == nil && b.mini == nil {
			same := stranger.Client{RDB: b.raw, Holder: "me:1"}
			run(t, same, stranger.Lock, "twin", lease)
			want(t, "state", ours.Val(), b.raw.Dump(ctx, "twin").Val())
			want(t, "a stranger's state", theirs.Val() != ours.Val(), true)
		}

		// Renewal and its end: ours as the stranger sees it, theirs as we see it.
		want(t, "the stranger's check of our lock", run(t, stranger.Client{RDB: b.raw, Holder: "me:1"}, stranger.Check, "ours", 0), true)
		want(t, "the stranger renews", run(t, s, stranger.Renew, "theirs", time.Minute), true)
		want(t, "we see it", c.TryAcquire(ctx, lockRequest("theirs", "me:2")).TTL > 50*time.Second, true)
		want(t, "we cannot release it", c.Release(ctx, lettucecompat.ReleaseRequest{Key: "theirs", Field: "me:1"}).Outcome, gone)
		want(t, "the stranger cannot release ours", run(t, s, stranger.Unlock, "ours", lease), false)

		// Wake-up, both ways.
		w := watchConfirmed(t, c, "theirs")
		want(t, "the stranger unlocks", run(t, s, stranger.Unlock, "theirs", lease), true)
		b.raw.Publish(ctx, "lock:release:theirs", `{"lockKey":"theirs","releaseTime":1640995200000,"holder":"server1-thread-123"}`)
		signal(t, "the stranger's message", w.C())
		want(t, "warned of it", warned.Load(), false)
		want(t, "we get it", c.TryAcquire(ctx, lockRequest("theirs", "me:3")).Outcome, ok)

		ps := b.raw.Subscribe(ctx, "lock:release:ours")
		defer ps.Close()
		if _, err := ps.Receive(ctx); err != nil {
			t.Fatal(err)
		}
		want(t, "we release", c.Release(ctx, lettucecompat.ReleaseRequest{Key: "ours", Field: "me:1"}).Outcome, ok)
		msg, err := ps.ReceiveMessage(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, valid := lettucecompat.DesignDocument.ParseRelease(msg.Channel, msg.Payload); !valid {
			t.Fatalf("%v is no release", msg)
		}
		want(t, "the stranger gets it", run(t, s, stranger.Lock, "ours", lease), true)
	})
}

// TestStrangerExpiry: a lease that ends frees the lock for the other side.
func TestStrangerExpiry(t *testing.T) {
	b := onReal(t, nil)
	c := b.client(t)
	s := stranger.Client{RDB: b.raw, Holder: "server1-thread-123"}
	short := lockRequest("k", "me:1")
	short.Lease = 30 * time.Millisecond
	want(t, "we lock", c.TryAcquire(ctx, short).Outcome, ok)
	eventually(t, "the stranger after our lease", func() bool { return run(t, s, stranger.Lock, "k", 30*time.Millisecond) })
	want(t, "our renewal", c.Extend(ctx, lettucecompat.Renewal{Key: "k", Field: "me:1", Lease: time.Second}, 0).Outcome, gone)
	eventually(t, "we after the stranger's lease", func() bool { return c.TryAcquire(ctx, lockRequest("k", "me:2")).Outcome == ok })
}

// TestStranger_TheDocumentHasItsScripts: who writes a client from docs/internals/protocol.md writes these.
func TestStranger_TheDocumentHasItsScripts(t *testing.T) {
	page, err := os.ReadFile("../docs/internals/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, script := range map[string]string{
		"lock": stranger.Lock, "unlock": stranger.Unlock, "renew": stranger.Renew, "check": stranger.Check,
	} {
		if !strings.Contains(string(page), "```lua\n"+script+"\n```") {
			t.Errorf("docs/internals/protocol.md lacks %s as it is run here:\n%s", name, script)
		}
	}
}
