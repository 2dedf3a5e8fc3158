package lettucecompat_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// sharded makes a client in Redisson's dialect on a Cluster. Its layout is known.
func sharded(t *testing.T, nodes *testredis.Cluster, id string, change ...func(*lettucecompat.Options)) *peer {
	t.Helper()
	p := newPeer(t, nodes.Client(t), id, append([]func(*lettucecompat.Options){func(o *lettucecompat.Options) {
		o.Dialect, o.CommandTimeout = lettucecompat.Redisson, pace.Scale(time.Second)
	}}, change...)...)
	eventually(t, "the layout", func() bool {
		p.Do(ctx, asks("warm", 1))
		return p.Shard("k") != fmt.Sprintf("slot-%d", lettucecompat.KeySlot("k"))
	})
	return p
}

// subscribers counts who listens on a channel of shards at the node.
func subscribers(t *testing.T, s *testredis.Server, channel string) int64 {
	t.Helper()
	return s.Client(t).PubSubShardNumSub(ctx, channel).Val()[channel]
}

// TestSharded_Lab: releases go through the channel of the lock's shard, of which the server knows all
// subscribers; and each key is listened to at its own master.
func TestSharded_Lab(t *testing.T) {
	t.Parallel()
	testredis.Needs(t, "7.0", "channels of shards")
	nodes := testredis.StartCluster(t, 3, 0)
	c := sharded(t, nodes, ourUUID)
	used := map[*testredis.Server]bool{}
	for i := range 12 {
		key := fmt.Sprint("k", i)
		channel := "redisson_lock__channel:{" + key + "}"
		node := nodes.Master(nodes.Slot(key))
		used[node] = true
		want(t, "acquire", c.Do(ctx, asks(key, i)).Word, has)
		w := watchConfirmed(t, c.Client, key)
		want(t, "subscribers", subscribers(t, node, channel), int64(1))
		ps := node.Client(t).SSubscribe(ctx, channel)
		if _, err := ps.Receive(ctx); err != nil {
			t.Fatal(err)
		}
		if info, err := c.Inspect(ctx, key, false); err != nil || info.Subscribers != 2 {
			t.Fatalf("%+v, %v", info, err)
		}
		want(t, "release", c.Do(ctx, gives(key, i)).Word, hasNothing)
		signal(t, "release", w.C())
		if m, err := ps.ReceiveMessage(ctx); err != nil || m.Payload != "0" || m.Channel != channel {
			t.Fatal(m, err)
		}
		_ = ps.Close()
		w.Close()
		eventually(t, "unsubscribed", func() bool { return subscribers(t, node, channel) == 0 })
	}
	want(t, "masters", len(used), 3)
	eventually(t, "connections to shards end", func() bool { return lettucecompat.ShardConnections(c.Client) == 0 })
}

// TestSharded_MovesWithItsKey_Lab: a subscription moves with its slot, and to the new master after a
// failover, whether the old one has died, hangs, or lives on as a replica. Each move signals.
func TestSharded_MovesWithItsKey_Lab(t *testing.T) {
	t.Parallel()
	testredis.Needs(t, "7.0", "channels of shards")
	const channel = "redisson_lock__channel:{k}"
	follows := func(t *testing.T, nodes *testredis.Cluster, move func(old *testredis.Server) *testredis.Server) {
		t.Helper()
		c := sharded(t, nodes, ourUUID)
		old := nodes.Master(nodes.Slot("k"))
		w := watchConfirmed(t, c.Client, "k")
		now := move(old)
		select {
		case <-w.C():
		case <-time.After(pace.Hang): // each question for the layout that meets a hung node takes ReadTimeout, 5 s
			t.Fatal("no signal of the move")
		}
		eventually(t, "listens to the new master", func() bool { return subscribers(t, now, channel) == 1 })
		eventually(t, "confirmed", w.Confirmed)
		for len(w.C()) > 0 {
			<-w.C()
		}
		want(t, "receivers", now.Client(t).Do(ctx, "spublish", channel, "0").Val(), any(int64(1)))
		signal(t, "a release there", w.C())
	}
	t.Run("slot", func(t *testing.T) {
		nodes := testredis.StartCluster(t, 2, 0)
		follows(t, nodes, func(old *testredis.Server) *testredis.Server {
			to := nodes.Nodes()[0]
			if to == old {
				to = nodes.Nodes()[1]
			}
			nodes.MoveSlot(nodes.Slot("k"), to)
			return to
		})
	})
	for name, fail := range map[string]func(*testredis.Cluster, *testredis.Server){
		"killed": func(_ *testredis.Cluster, old *testredis.Server) { old.Kill() },
		"hung":   func(_ *testredis.Cluster, old *testredis.Server) { old.Pause() },
		"demoted": func(nodes *testredis.Cluster, old *testredis.Server) {
			nodes.Failover(nodes.Slot("k"), nodes.Replicas(old)[0])
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodes := testredis.StartCluster(t, 3, 3)
			nodes.FailOver()
			follows(t, nodes, func(old *testredis.Server) *testredis.Server {
				fail(nodes, old)
				now := nodes.AwaitMaster(nodes.Slot("k"), old)
				if name == "hung" {
					t.Cleanup(old.Resume)
				}
				return now
			})
		})
	}
}

// TestSharded_ASilentConnectionIsGivenUp_Lab: one over which nothing comes, not even the answer to a ping, is
// made anew, and its channels are confirmed again.
func TestSharded_ASilentConnectionIsGivenUp_Lab(t *testing.T) {
	t.Parallel()
	testredis.Needs(t, "7.0", "channels of shards")
	nodes := testredis.StartCluster(t, 1, 0)
	c := sharded(t, nodes, ourUUID)
	w := watchConfirmed(t, c.Client, "k")
	nodes.Nodes()[0].Pause()
	eventually(t, "given up", func() bool { return !w.Confirmed() })
	nodes.Nodes()[0].Resume()
	signal(t, "confirmed again", w.C())
}

// TestSharded_AnOldCluster_Lab: one that knows no channels of shards is reached through ordinary ones, as
// Redisson does it there.
func TestSharded_AnOldCluster_Lab(t *testing.T) {
	t.Parallel()
	var without []string
	if testredis.AtLeast("7.0") {
		without = []string{"--rename-command", "SPUBLISH", "", "--rename-command", "SSUBSCRIBE", ""}
	}
	nodes := testredis.StartCluster(t, 1, 0, without...)
	a := sharded(t, nodes, ourUUID)
	ps := nodes.Nodes()[0].Client(t).Subscribe(ctx, "redisson_lock__channel:{k}")
	defer ps.Close()
	if _, err := ps.Receive(ctx); err != nil {
		t.Fatal(err)
	}
	heard := ps.Channel()
	a.takes()
	a.releases() // before anybody of ours has subscribed
	hears(t, heard, "0")
	w := watchConfirmed(t, a.Client, "k")
	eventually(t, "no connection to a shard", func() bool { return lettucecompat.ShardConnections(a.Client) == 0 })
	nodes.Nodes()[0].Client(t).Publish(ctx, "redisson_lock__channel:{k}", "0")
	signal(t, "release", w.C())
}

// A name that Redisson would expect in another slot is refused on a Cluster, and only there.
func TestSharded_NamesThatRedissonCannotUse_Lab(t *testing.T) {
	t.Parallel()
	nodes := testredis.StartCluster(t, 1, 0)
	single := onReal(t, nil).redisson(t, ourUUID)
	for _, d := range []lettucecompat.Dialect{lettucecompat.DesignDocument, lettucecompat.Redisson, lettucecompat.RedissonUnsharded} {
		c := newClient(t, nodes.Client(t), func(o *lettucecompat.Options) { o.ClientID, o.Dialect = ourUUID, d })
		for _, key := range oddKeys {
			tagged := slices.Contains([]string{"a{t}b", "{t}", "{{t}}", "a{b}{c}"}, key)
			err := c.CheckKey(key)
			if allowed := d == lettucecompat.DesignDocument || tagged || !strings.ContainsAny(key, "{}"); allowed != (err == nil) {
				t.Errorf("%v: %.20q: %v", d, key, err)
			}
			got := c.Do(ctx, asks(key, 0))
			if err == nil && got.Outcome != ok || err != nil && (got.Outcome != failed || !lettucecompat.Permanent(got.Err)) {
				t.Errorf("%v: %.20q: %+v", d, key, got)
			}
			if err == nil {
				want(t, "release", c.Do(ctx, gives(key, 0)).Word, hasNothing)
			}
			want(t, "on a single server", single.CheckKey(key), nil)
		}
	}
}

// gated is a client of a Cluster that is stopped where a connection to a shard is about to be made.
type gated struct {
	*redis.ClusterClient
	asked, goOn chan struct{}
}

func (g gated) MasterForKey(ctx context.Context, key string) (*redis.Client, error) {
	if ctx.Done() != nil && key == "gone" { // no question of Watch, which does no I/O
		g.asked <- struct{}{}
		<-g.goOn
	}
	return g.ClusterClient.MasterForKey(ctx, key)
}

// TestSharded_AWatchThatIsClosedImmediately_Lab: one that goes while its connection is being made takes nothing
// along, and the next one is served.
func TestSharded_AWatchThatIsClosedImmediately_Lab(t *testing.T) {
	t.Parallel()
	nodes := testredis.StartCluster(t, 1, 0)
	g := gated{nodes.Client(t), make(chan struct{}), make(chan struct{})}
	c := newClient(t, g, func(o *lettucecompat.Options) { o.ClientID, o.Dialect = ourUUID, lettucecompat.Redisson })
	want(t, "acquire", c.Do(ctx, asks("warm", 1)).Outcome, ok) // the layout is known
	w := c.Watch("gone")
	<-g.asked
	w.Close()
	g.goOn <- struct{}{}
	watchConfirmed(t, c, "k")
	want(t, "channels that are asked for and not known", lettucecompat.Unknown(c), 0)
}

// Close ends the connections to all shards, and what is listened to is signalled.
func TestSharded_Close_Lab(t *testing.T) {
	t.Parallel()
	testredis.Needs(t, "7.0", "channels of shards")
	nodes := testredis.StartCluster(t, 3, 0)
	var ups atomic.Int32
	c := sharded(t, nodes, ourUUID, func(o *lettucecompat.Options) { o.OnSubscription = func(bool, error) { ups.Add(1) } })
	var all []*lettucecompat.Watch
	for i := range 6 {
		all = append(all, watchConfirmed(t, c.Client, fmt.Sprint("k", i)))
	}
	c.Reconnect()
	for _, w := range all {
		signal(t, "reconnected", w.C())
		eventually(t, "confirmed", w.Confirmed)
	}
	c.Close()
	for _, w := range all {
		signal(t, "closed", w.C())
		w.Close()
	}
	want(t, "connections", lettucecompat.ShardConnections(c.Client), 0)
	want(t, "notified of the own connection only", ups.Load(), int32(0))
}
