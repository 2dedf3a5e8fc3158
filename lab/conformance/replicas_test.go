package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/testredis"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	anteroom "github.com/anteroom/anteroom/sync"
)

// confirmed is a lock that requires one replica, and is patient with it.
func confirmed(key string) anteroom.LockConfig {
	return anteroom.LockConfig{Key: key, Replicas: 1, ReplicaTimeout: 300 * time.Millisecond, Fencing: true}
}

// refusedForReplicas checks that the lock is refused because replicas are missing, and that nothing of it remains on
// its master.
func refusedForReplicas(t *testing.T, p *party, master *redis.Client, cfg anteroom.LockConfig) {
	t.Helper()
	h, err := p.lock(t, cfg).TryAcquire(context.Background())
	for begin := time.Now(); errors.Is(err, anteroom.ErrUnavailable) && time.Since(begin) < 30*time.Second; {
		// A busy machine did not answer in time, or go-redis asked the stopped node for the layout. What that try may
		// have left is removed before the key is forgotten.
		eventually(t, stuck, "the key is forgotten", func() bool { return len(p.Snapshot()) == 0 })
		h, err = p.lock(t, cfg).TryAcquire(context.Background())
	}
	if !errors.Is(err, anteroom.ErrNotAcquired) || !errors.Is(err, lettucecompat.ErrReplicas) {
		t.Fatalf("%s without its replica: %v, %v", cfg.Key, h, err)
	}
	if n, err := master.Exists(context.Background(), cfg.Key).Result(); err != nil || n != 0 {
		t.Fatalf("%s is left behind: %d, %v", cfg.Key, n, err)
	}
	eventually(t, stuck, "the key is forgotten", func() bool { return len(p.Snapshot()) == 0 })
}

// granted checks that the lock is granted. (A grant that is refused for its replicas, or without an answer, is
// retried until the end of the context.)
func granted(t *testing.T, p *party, cfg anteroom.LockConfig) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	h, err := p.lock(t, cfg).Acquire(ctx)
	if err != nil {
		t.Fatalf("%s: %v", cfg.Key, err)
	}
	if err := h.Release(ctx); err != nil {
		t.Fatal(err)
	}
}

// usableAgain makes a caller wait for the lock, brings the replicas back, and returns how long after that the lock
// was granted.
func usableAgain(t *testing.T, p *party, cfg anteroom.LockConfig, back func()) time.Duration {
	t.Helper()
	got := make(chan error, 1)
	mu := p.lock(t, cfg)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), stuck)
		defer cancel()
		h, err := mu.Acquire(ctx)
		if err == nil {
			err = h.Release(ctx)
		}
		got <- err
	}()
	begin := time.Now()
	back()
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	return time.Since(begin)
}

// stops are the ways in which a replica stops, and comes back.
var stops = map[string]struct{ stop, back func(*testredis.Server) }{
	"stopped": {(*testredis.Server).Pause, (*testredis.Server).Resume},
	"killed":  {(*testredis.Server).Kill, (*testredis.Server).Restart},
}

func TestReplicasBehindSentinel(t *testing.T) {
	t.Parallel()
	s := testredis.StartSentinel(t)
	p := newParty(t, s.Client(t))
	master, replicas := s.Master().Client(t), s.Replicas()
	for name, how := range stops {
		cfg := confirmed("order:" + name)
		granted(t, p, cfg)
		how.stop(replicas[0])
		granted(t, p, cfg) // the other one confirms
		how.stop(replicas[1])
		refusedForReplicas(t, p, master, cfg)
		cfg0 := cfg
		cfg0.Replicas = 0
		granted(t, p, cfg0) // a lock without Replicas is granted
		eventually(t, stuck, "the key is forgotten", func() bool { return len(p.Snapshot()) == 0 })
		t.Logf("%s: granted %v after the first replica came back", name, usableAgain(t, p, cfg, func() {
			how.back(replicas[0])
			how.back(replicas[1])
		}).Round(time.Millisecond))
		s.AwaitReady()
	}
	if s.Master() != s.Nodes()[0] {
		t.Fatal("the replicas' absence has moved the master")
	}
}

// On a Cluster each shard has replicas of its own, and WAIT is about those of the node that gets it. While one
// shard's replica is stopped, locks of its slots are refused and all others are granted, even if a slot has moved and
// the client does not know it.
func TestReplicasOfACluster(t *testing.T) {
	t.Parallel()
	testredis.Needs(t, "7.0", "a node's learning that two slots were swapped while it was away")
	c := testredis.StartCluster(t, 3, 3)
	p := newParty(t, c.Client(t, func(o *redis.ClusterOptions) { o.ReadTimeout = readTimeout }))
	keys := map[*testredis.Server]string{} // by master
	raw := map[*testredis.Server]*redis.Client{}
	for i := 0; len(keys) < 3; i++ {
		key := fmt.Sprintf("order:{%d}", i)
		m := c.Master(c.Slot(key))
		keys[m], raw[m] = key, m.Client(t)
	}
	a, b := c.Masters()[0], c.Masters()[1]
	for _, how := range stops {
		for m := range keys {
			granted(t, p, confirmed(keys[m]))
		}
		replica := c.Replicas(a)[0]
		how.stop(replica)
		for m := range keys {
			if m == a {
				refusedForReplicas(t, p, raw[m], confirmed(keys[m]))
			} else {
				granted(t, p, confirmed(keys[m]))
			}
		}
		// A slot that moves to the master without a replica is refused, one that leaves it is granted; the client
		// learns of both by MOVED, in answer to the command with WAIT.
		slotA, slotB := c.Slot(keys[a]), c.Slot(keys[b])
		c.MoveSlot(slotB, a)
		refusedForReplicas(t, p, raw[a], confirmed(keys[b]))
		c.MoveSlot(slotA, b)
		granted(t, p, confirmed(keys[a]))
		t.Logf("granted %v after the replica came back", usableAgain(t, p, confirmed(keys[b]), func() { how.back(replica) }).Round(time.Millisecond))
		c.AwaitReady()
		c.MoveSlot(slotA, a)
		c.MoveSlot(slotB, b)
	}
}
