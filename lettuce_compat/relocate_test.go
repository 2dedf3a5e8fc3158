package lettucecompat_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// reloading is a client that counts the requests for the cluster's layout.
type reloading struct {
	*redis.Client
	requests atomic.Int64
}

func (r *reloading) ReloadState(context.Context) { r.requests.Add(1) }

// However many commands fail, the layout is asked for ten times a second at most: while
// no node answers, each request is a dial to every one that is known.
func TestWire_AStormOfFailuresIsFewRequestsForTheLayout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb := &reloading{Client: redis.NewClient(&redis.Options{})}
		defer func() { _ = rdb.Close() }()
		c := newClient(t, rdb)
		const seconds = 3
		for range seconds * 1000 {
			lettucecompat.Relocate(c)
			time.Sleep(time.Millisecond)
		}
		if n := rdb.requests.Load(); n < 9*seconds || n > 10*seconds {
			t.Errorf("%d requests in %d s, want ten a second", n, seconds)
		}
	})
}
