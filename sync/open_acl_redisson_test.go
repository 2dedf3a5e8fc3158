package anteroom_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// TestACL_Redisson_Lab: the rules of docs/operations.md for Redisson's dialect are enough, and all of them
// are used: on a single server, and on a Cluster.
func TestACL_Redisson_Lab(t *testing.T) {
	t.Parallel()
	blocks := aclBlocks(t)
	try := func(t *testing.T, s *testredis.Server, rdb func() anteroom.Redis, rules [][]string, used int, dialect anteroom.Dialect, publish string) {
		admin := s.Client(t)
		var commands []string
		for i, rule := range rules {
			if list := applyACL(t, admin, rule); i >= used {
				commands = append(commands, list...)
			}
		}
		ok(t, admin.Do(bg, "config", "resetstat").Err())
		cfg := anteroom.Config{Dialect: dialect, CommandTimeout: 5 * time.Second, Defaults: anteroom.LockConfig{
			LeaseTime: time.Second, WatchdogPeriod: 50 * time.Millisecond, Fencing: true, MaxHandoffs: 1,
		}}
		counts := newCounter()
		cfg.Observer = hooks(counts)
		a, events := manager(t, rdb(), cfg)
		b, _ := manager(t, rdb(), cfg)
		ok(t, a.Ping(bg, "order:0"))
		holdAndWaitAcrossProcesses(t, a, b)
		endATurn(t, a, b, counts)
		forceRelease(t, a, b, counts)

		// Java holds two locks, and releases one after the other: one connection serves both.
		got := map[string]chan error{}
		for _, key := range []string{"order:6", "order:7"} {
			ok(t, admin.HSet(bg, key, "2d4f0d8e-5b64-4f6e-9d0a-9f3c2a1b00de:57", 1).Err())
			ok(t, admin.PExpire(bg, key, time.Minute).Err())
			done := make(chan error, 1)
			got[key] = done
			go func() {
				h, err := b.Mutex(key).Acquire(bg)
				if err == nil {
					err = h.Release(bg)
				}
				done <- err
			}()
			eventually(t, "the waiter listens", func() bool {
				return must[anteroom.Info](t)(b.Inspect(bg, key)).Subscribers == 1
			})
		}
		for _, key := range []string{"order:6", "order:7"} {
			ok(t, admin.Del(bg, key).Err())
			ok(t, admin.Do(bg, publish, "redisson_lock__channel:{"+key+"}", "0").Err())
			ok(t, <-got[key])
			eventually(t, "the key is idle", func() bool {
				for _, st := range b.Snapshot() {
					if st.Key == key {
						return false
					}
				}
				return true
			})
			ok(t, b.Destroy(key)) // gives the subscription back
			if key == "order:6" {
				wantUsed(t, s, commands)
			}
		}
		wantNoRefusals(t, admin)
		for _, ev := range events.of(observe.EventWarning) {
			t.Errorf("warning under the ACL of the document: %s %v", ev.Text, ev.Err)
		}
	}
	t.Run("single", func(t *testing.T) {
		t.Parallel()
		s := testredis.Start(t)
		try(t, s, func() anteroom.Redis {
			return s.Client(t, func(o *redis.Options) { o.Username, o.Password = "anteroom", "change-me" })
		}, [][]string{blocks[0], blocks[3]}, 1, anteroom.DialectRedisson, "publish")
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		s := testredis.Start(t, "--cluster-enabled", "yes")
		admin := s.Client(t)
		ok(t, admin.ClusterAddSlotsRange(bg, 0, 16383).Err())
		eventually(t, "the cluster is up", func() bool {
			return strings.Contains(admin.ClusterInfo(bg).Val(), "cluster_state:ok")
		})
		rules, dialect, publish := [][]string{blocks[0], blocks[2], blocks[3], blocks[4]}, anteroom.DialectRedisson, "spublish"
		if !testredis.AtLeast("7.0") { // there are no channels of shards
			rules, dialect, publish = rules[:3], anteroom.DialectRedissonUnsharded, "publish"
		}
		try(t, s, func() anteroom.Redis {
			cc := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{s.Addr()}, Username: "anteroom", Password: "change-me"})
			t.Cleanup(func() { _ = cc.Close() })
			return cc
		}, rules, 2, dialect, publish)
	})
}
