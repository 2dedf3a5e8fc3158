package lettucecompat_test

import (
	"testing"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// Who listens by ReleasePatterns hears of releases and of forced ones, and learns the
// exact key and who freed it.
func TestAnnouncements(t *testing.T) {
	t.Parallel()
	b := onReal(t, nil)
	c := b.client(t)
	ps := b.raw.PSubscribe(ctx, lettucecompat.DesignDocument.ReleasePatterns("order:*")...)
	defer ps.Close()
	if _, err := ps.Receive(ctx); err != nil {
		t.Fatal(err)
	}
	const key = "order:\xff\x1b[2J{}"
	start := time.Now().Truncate(time.Millisecond)
	want(t, "acquire of another key", c.Do(ctx, asks("other", 1)).Outcome, ok)
	want(t, "its release", c.Do(ctx, gives("other", 1)).Outcome, ok)
	want(t, "acquire", c.Do(ctx, asks(key, 2)).Outcome, ok)
	want(t, "release", c.Do(ctx, gives(key, 2)).Outcome, ok)
	want(t, "acquire", c.Do(ctx, asks(key, 3)).Outcome, ok)
	if _, err := c.ForceRelease(ctx, key, false); err != nil {
		t.Fatal(err)
	}
	for _, holder := range []string{me(2), "me"} {
		m, err := ps.ReceiveMessage(ctx)
		if err != nil {
			t.Fatal(err)
		}
		want(t, "channel", m.Channel, "lock:release:"+key)
		a, valid := lettucecompat.DesignDocument.ParseRelease(m.Channel, m.Payload)
		if !valid || a.Key != key || a.Holder != holder || a.At.Before(start) || a.At.After(time.Now()) {
			t.Errorf("%q: %+v, %v", m.Payload, a, valid)
		}
	}
}

// A quoted pattern covers the name and no other, as a real server reads patterns.
func TestQuotePattern(t *testing.T) {
	t.Parallel()
	rdb := onReal(t, nil).raw
	names := []string{`a*[b]\?`, `ab`, `a*b`, `\`, `\\`, `[^a]`, `x`, `[a-z]`, `?`, `*`, "\xff\x00", `a*[b]\`, `]`}
	for _, name := range names {
		if err := rdb.Set(ctx, name, "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range names {
		got, err := rdb.Keys(ctx, lettucecompat.QuotePattern(name)).Result()
		if err != nil || len(got) != 1 || got[0] != name {
			t.Errorf("%q covers %q, %v", name, got, err)
		}
	}
}

func TestAnnouncementsThatAreNone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ channel, payload, key string }{
		{"lock:release:k", "", "k"},
		{"lock:release:k", `{"holder":"h"}`, "k"},
		{"lock:release:k", `{"lockKey":"k","releaseTime":"soon"}`, "k"},
		{"lock:release:", "[]", ""},
		{"news", `{"lockKey":"k","releaseTime":1,"holder":"h"}`, ""},
	} {
		a, valid := lettucecompat.DesignDocument.ParseRelease(c.channel, c.payload)
		if valid || a != (lettucecompat.Announcement{Key: c.key}) {
			t.Errorf("%q on %q: %+v, %v", c.payload, c.channel, a, valid)
		}
	}
}
