package lettucecompat_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/testredis"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// A Cluster that New cannot see: behind a plain client, which one node is enough for, and
// behind a type that hides the methods of a ClusterClient.
func TestHiddenCluster_Lab(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(t *testing.T) lettucecompat.Redis{
		"plain client": func(t *testing.T) lettucecompat.Redis {
			rdb := redis.NewClient(options(testredis.StartCluster(t, 1, 0).Nodes()[0].Addr(), nil, func(o *redis.Options) { o.Dialer = nil }))
			t.Cleanup(func() { _ = rdb.Close() })
			return rdb
		},
		"wrapped cluster client": func(t *testing.T) lettucecompat.Redis {
			return struct{ redis.UniversalClient }{testredis.StartCluster(t, 2, 0).Client(t)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			warnings := &gathered{}
			rdb := make(t)
			c := newClient(t, rdb, func(o *lettucecompat.Options) { o.OnWarning = warnings.add })
			var batch []lettucecompat.Renewal
			var queries []lettucecompat.Query
			for i, key := range []string{"a", "b", "c", "d"} { // two of each node's slots
				field := me(i + 1)
				want(t, "acquire", c.Do(ctx, fenced(key, i+1)).Word, has)
				batch = append(batch, lettucecompat.Renewal{Key: key, Field: field, Lease: time.Minute})
				queries = append(queries, lettucecompat.Query{Key: key, Field: field})
			}
			want(t, "multi", c.Multi(), false)
			for range 2 { // the batch that finds out gets its answer, too
				for i, got := range c.Status(ctx, queries, 0) {
					if got.Outcome != ok || got.Count != 1 {
						t.Fatalf("status of %s: %+v", queries[i].Key, got)
					}
				}
				for i, got := range c.Renew(ctx, batch, 0) {
					if got.Outcome != ok || got.SentAt.IsZero() {
						t.Fatalf("renewal of %s: %+v", batch[i].Key, got)
					}
				}
				want(t, "multi", c.Multi(), true)
			}
			got := warnings.all()
			if len(got) != 1 || got[0].Kind != lettucecompat.WarnHiddenCluster || !errors.Is(got[0].Err, lettucecompat.ErrHiddenCluster) {
				t.Errorf("warnings: %+v", got)
			}
			want(t, "acquire", c.Do(ctx, asks("e", 9)).Word, has)
			r := synced("e", 9)
			r.ReplicaTimeout = 20 * time.Millisecond
			want(t, "no replica", c.Extend(ctx, r, 0).Outcome, refused)
		})
	}
}

// The first batch of renewals finds out as well as one of questions.
func TestHiddenCluster_ByARenewal_Lab(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(options(testredis.StartCluster(t, 1, 0).Nodes()[0].Addr(), nil, func(o *redis.Options) { o.Dialer = nil }))
	defer rdb.Close()
	c := newClient(t, rdb)
	var batch []lettucecompat.Renewal
	for _, key := range []string{"a", "b"} {
		want(t, "acquire", c.Do(ctx, asks(key, 1)).Outcome, ok)
		batch = append(batch, lettucecompat.Renewal{Key: key, Field: me(1), Lease: time.Minute})
	}
	for i, got := range c.Renew(ctx, batch, 0) {
		if got.Outcome != ok {
			t.Errorf("%s: %+v", batch[i].Key, got)
		}
	}
}

// gathered keeps the warnings of a client.
type gathered struct {
	mu   sync.Mutex
	list []lettucecompat.Warning
}

func (g *gathered) add(w lettucecompat.Warning) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.list = append(g.list, w)
}

func (g *gathered) all() []lettucecompat.Warning {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.list)
}

// Replicas, where WAIT would go to any node.
func TestHiddenCluster_ConfirmsNothingFalsely_Lab(t *testing.T) {
	t.Parallel()
	for _, disable := range []bool{false, true} {
		t.Run(fmt.Sprint(disable), func(t *testing.T) {
			cl := testredis.StartCluster(t, 2, 1) // the second master has no replica
			rdb := struct{ redis.UniversalClient }{cl.Client(t, func(o *redis.ClusterOptions) { o.DisableRoutingPolicies = disable })}
			c := newClient(t, rdb)
			second := cl.Masters()[1]
			n := 0
			for i := 0; n < 12; i++ {
				key := fmt.Sprint("k", i)
				if cl.Master(cl.Slot(key)) != second {
					continue
				}
				n++
				c.Do(ctx, asks(key, 1))
				r := synced(key, 1)
				r.ReplicaTimeout = 20 * time.Millisecond
				got := c.Extend(ctx, r, 0)
				t.Logf("%s: %v multi %v %v", key, got.Outcome, c.Multi(), got.Err)
				if got.Outcome == ok {
					t.Errorf("%s: confirmed, and its master has no replica", key)
				}
			}
		})
	}
}
