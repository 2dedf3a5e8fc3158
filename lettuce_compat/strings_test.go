package lettucecompat_test

import (
	"testing"
	"time"
)

// TestStrings: with AcquireRequest.Strings a string refuses an attempt, with its time to live, and makes no place.
// Without it a string is an error, as it may be somebody's data.
func TestStrings(t *testing.T) {
	both(t, func(t *testing.T, b *bed) {
		c := b.client(t)
		r := lockRequest("k", "me:1")
		r.Attempt, r.Strings = 1<<40, true
		for _, ttl := range []time.Duration{10 * time.Second, 0} {
			if err := b.raw.Set(ctx, "k", "theirs", ttl).Err(); err != nil {
				t.Fatal(err)
			}
			got := c.TryAcquire(ctx, r)
			want(t, "outcome", got.Outcome, refused)
			want(t, "holder", got.Holder, "")
			want(t, "standing", got.Standing, false)
			if ttl > 0 {
				want(t, "time to live", got.TTL > 9*time.Second && got.TTL <= ttl, true)
			} else {
				want(t, "no end", got.TTL < 0, true)
			}
			want(t, "the string", b.raw.Get(ctx, "k").Val(), "theirs")
			want(t, "keys", b.raw.DBSize(ctx).Val(), int64(1))
		}
		r.Strings = false
		want(t, "without the option", c.TryAcquire(ctx, r).Outcome, failed)
		b.raw.Del(ctx, "k")
		r.Strings, r.Tokens = true, 1
		want(t, "free", c.TryAcquire(ctx, r).Outcome, ok)

		// Their ways to take a lock fail on ours, whatever the value.
		taken, err := b.raw.SetNX(ctx, "k", "theirs", time.Second).Result()
		want(t, "SET NX takes it", taken || err != nil, false)
	})
}
