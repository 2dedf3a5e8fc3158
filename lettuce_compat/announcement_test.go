package lettucecompat_test

import (
	"errors"
	"testing"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// Who listens by ReleasePattern hears of releases and of forced ones, and learns the
// exact key and who freed it.
func TestAnnouncements(t *testing.T) {
	b := onReal(t, nil)
	c := b.client(t)
	d := lettucecompat.DesignDocument
	ps := b.raw.PSubscribe(ctx, d.ReleasePattern("order:*"))
	defer ps.Close()
	if _, err := ps.Receive(ctx); err != nil {
		t.Fatal(err)
	}
	const key = "order:\xff\x1b[2J{}"
	lease := 10 * time.Second
	start := time.Now().Truncate(time.Millisecond)
	want(t, "acquire of another key", c.TryAcquire(ctx, lettucecompat.AcquireRequest{Key: "other", Field: "me:1", Lease: lease}).Outcome, ok)
	want(t, "its release", c.Release(ctx, lettucecompat.ReleaseRequest{Key: "other", Field: "me:1"}).Outcome, ok)
	want(t, "acquire", c.TryAcquire(ctx, lettucecompat.AcquireRequest{Key: key, Field: "me:2", Lease: lease}).Outcome, ok)
	want(t, "release", c.Release(ctx, lettucecompat.ReleaseRequest{Key: key, Field: "me:2"}).Outcome, ok)
	want(t, "acquire", c.TryAcquire(ctx, lettucecompat.AcquireRequest{Key: key, Field: "me:3", Lease: lease}).Outcome, ok)
	if _, err := c.ForceRelease(ctx, key); err != nil {
		t.Fatal(err)
	}
	for _, holder := range []string{"me:2", "me"} {
		m, err := ps.ReceiveMessage(ctx)
		if err != nil {
			t.Fatal(err)
		}
		want(t, "channel", m.Channel, d.ReleaseChannel(key))
		a, err := lettucecompat.Dialect{}.ParseRelease(m.Channel, m.Payload)
		if err != nil || a.Key != key || a.Holder != holder || a.At.Before(start) || a.At.After(time.Now()) {
			t.Errorf("%q: %+v, %v", m.Payload, a, err)
		}
	}
}

// A quoted pattern covers the name and no other, as a real server reads patterns.
func TestQuotePattern(t *testing.T) {
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
	d := lettucecompat.DesignDocument
	for _, c := range []struct{ channel, payload, key string }{
		{d.ReleaseChannel("k"), "", "k"},
		{d.ReleaseChannel("k"), `{"holder":"h"}`, "k"},
		{d.ReleaseChannel("k"), `{"lockKey":"k","releaseTime":"soon"}`, "k"},
		{d.ReleaseChannel(""), "[]", ""},
		{"news", `{"lockKey":"k","releaseTime":1,"holder":"h"}`, ""},
	} {
		a, err := d.ParseRelease(c.channel, c.payload)
		if !errors.Is(err, lettucecompat.ErrNoAnnouncement) || a != (lettucecompat.Announcement{Key: c.key}) {
			t.Errorf("%q on %q: %+v, %v", c.payload, c.channel, a, err)
		}
	}
}
