package anteroom_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
)

// A Manager that stands gets its turns beside one that leaves the line out, for want of the right to
// its key: a release of the latter calls nobody.
func TestLine_WhoStandsGetsItsTurnsBesideOneWithoutTheLine(t *testing.T) {
	s := testredis.Start(t)
	admin := s.Client(t)
	ok(t, admin.Do(bg, testredis.ACL[any](t, "acl", "setuser", "earlier", "on", ">p", "~k", "~anteroom:fence:*", "&*", "+@all")...).Err())
	a, _ := manager(t, s.Client(t, func(o *redis.Options) { o.Username, o.Password = "earlier", "p" }), anteroom.Config{})
	b, _ := manager(t, s.Client(t), anteroom.Config{})
	ctx, cancel := context.WithTimeout(bg, 6*time.Second)
	defer cancel()
	turns, last := make([]int, 2), -1 // guarded by the lock
	var ends []func()
	for i, m := range []*anteroom.Manager{a, b} {
		mu := mutex(t, m, anteroom.LockConfig{Key: "k", MaxHandoffs: 4})
		ends = append(ends, crew(ctx, mu, 4, func() {
			if last != i {
				last = i
				turns[i]++
			}
			time.Sleep(time.Millisecond)
		}))
	}
	for _, end := range ends {
		end()
	}
	t.Logf("turns: %v", turns)
	if turns[1] < 20 {
		t.Fatalf("turns of the one without the line, and of the one that stands: %v", turns)
	}
}
