package lettucecompat_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/testredis"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// TestWire_I10_DerivedKeys: a real server says that each fencing record and each line lies in
// its lock's slot, and no two names share one.
func TestWire_I10_DerivedKeys(t *testing.T) {
	t.Parallel()
	raw := testredis.Start(t, "--cluster-enabled", "yes").Client(t)
	c := newClient(t, raw)
	names := append([]string{""}, oddKeys...)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 { // short words over the letters that matter
		word := make([]byte, rng.IntN(7))
		for i := range word {
			word[i] = "{}:at7"[rng.IntN(6)]
		}
		names = append(names, string(word))
	}
	owner := map[string]string{}
	for _, name := range names {
		slot := raw.ClusterKeySlot(ctx, name).Val()
		want(t, "slot of "+name[:min(len(name), 20)], int64(lettucecompat.KeySlot(name)), slot)
		for _, derived := range []string{lettucecompat.FenceKey(c, name), lettucecompat.LineKey(c, name)} {
			if other, taken := owner[derived]; taken && other != name {
				t.Fatalf("%q and %q share %q", name, other, derived)
			}
			owner[derived] = name
			want(t, "slot of "+derived[:min(len(derived), 40)], raw.ClusterKeySlot(ctx, derived).Val(), slot)
		}
	}
	want(t, "plain", lettucecompat.LineKey(c, "order:42"), "anteroom:line:{order:42}")
	want(t, "tagged", lettucecompat.LineKey(c, "a{t}b"), "anteroom:line:tag:a{t}b")
	want(t, "plain", lettucecompat.FenceKey(c, "order:42"), "anteroom:fence:{order:42}")
	want(t, "tagged", lettucecompat.FenceKey(c, "a{t}b"), "anteroom:fence:tag:a{t}b")
}

func TestKeySlotVectors(t *testing.T) {
	t.Parallel()
	for key, slot := range map[string]uint16{
		"123456789": 0x31C3, "foo": 12182, "": 0, "{user1000}.following": lettucecompat.KeySlot("user1000"),
		"foo{}{bar}": 8363, "foo{{bar}}zap": lettucecompat.KeySlot("{bar"), "foo{bar}{zap}": lettucecompat.KeySlot("bar"),
	} {
		want(t, key, lettucecompat.KeySlot(key), slot)
	}
	for slot, n := range lettucecompat.SlotNumbers() {
		digits := strings.TrimSpace(string(appendUint(nil, uint64(n))))
		want(t, digits, int(lettucecompat.KeySlot(digits)), slot)
	}
}

func appendUint(b []byte, n uint64) []byte {
	if n >= 10 {
		b = appendUint(b, n/10)
	}
	return append(b, byte('0'+n%10))
}

// TestNamesOfAnyBytes: on both servers, with messages that wake the right waiter.
func TestNamesOfAnyBytes(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		c := b.client(t)
		for i, key := range oddKeys {
			want(t, "acquire", c.Do(ctx, fenced(key, i)).Word, has)
			b.wantHash(t, key, hash{me(i): "1"})
			w := c.Watch(key)
			signal(t, "confirmation", w.C())
			want(t, "release", c.Do(ctx, givesFenced(key, i)).Word, hasNothing)
			signal(t, "release", w.C())
			w.Close()
		}
	})
}

func TestReservedPrefix(t *testing.T) {
	t.Parallel()
	b := onMini(t)
	for _, key := range []string{"anteroom:fence:{k}", "anteroom:line:{k}", "anteroom:line:"} {
		got := b.client(t).Do(ctx, asks(key, 1))
		want(t, "outcome", got.Outcome, failed)
		want(t, "permanent", lettucecompat.Permanent(got.Err), true)
	}
}

func TestReleaseMessage(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1640995200000)
	want(t, "message", lettucecompat.ReleaseMessage("user:profile:1001", "server1-thread-123", at),
		`{"lockKey":"user:profile:1001","releaseTime":1640995200000,"holder":"server1-thread-123"}`)
	want(t, "escaped", lettucecompat.ReleaseMessage("a\"\\\n<é", "h", at),
		`{"lockKey":"a\"\\\n<é","releaseTime":1640995200000,"holder":"h"}`)
	for _, key := range oddKeys {
		_, valid := lettucecompat.DesignDocument.ParseRelease("lock:release:"+key, lettucecompat.ReleaseMessage(key, "h", at))
		want(t, "valid", valid, true)
	}
}
