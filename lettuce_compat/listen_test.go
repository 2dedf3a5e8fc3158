package lettucecompat_test

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
)

func short(key string) string { return fmt.Sprintf("%.40q", key) }

// listen receives everything that is published on b's server, and returns what has come
// when f is through. The marker is the last message of the server, so none is missing.
func listen(t *testing.T, b *bed, f func()) []*redis.Message {
	t.Helper()
	ps := b.raw.PSubscribe(ctx, "*")
	defer ps.Close()
	if _, err := ps.Receive(ctx); err != nil {
		t.Fatal(err)
	}
	f()
	b.raw.Publish(ctx, "the end", "")
	var all []*redis.Message
	for {
		m, err := ps.ReceiveMessage(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if m.Channel == "the end" {
			return all
		}
		all = append(all, m)
	}
}
