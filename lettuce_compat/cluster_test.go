package lettucecompat_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// cluster starts a cluster of so many masters, and returns a bed on the first.
func cluster(t *testing.T, masters int) (*testredis.Cluster, *bed, *redis.ClusterClient) {
	t.Helper()
	c := testredis.StartCluster(t, masters, 0)
	return c, &bed{real: c.Nodes()[0], raw: c.Nodes()[0].Client(t)}, c.Client(t)
}

// oddKeys are names that a naive rule for hash tags gets wrong.
var oddKeys = []string{
	"plain", "a{b", "a}b", "x{}y", "}{", "{", "}", "{}", "{}{t}", "a{t}b", "{t}", "{{t}}", "a{b}{c}", "a}b{c}", "a{}b{c}",
	"\x00\xff{\xfe", "with space", "line\r\nbreak", `"quoted"`, "日本", strings.Repeat("k", 64<<10), strings.Repeat("{", 1000),
}

func TestCluster_Lab(t *testing.T) {
	t.Parallel()
	_, b, cc := cluster(t, 1)
	c := newClient(t, cc)
	want(t, "multi", c.Multi(), true)
	if got := c.Shard("k"); got != fmt.Sprintf("slot-%d", lettucecompat.KeySlot("k")) {
		t.Fatalf("shard before the layout is known: %s", got)
	}
	var batch []lettucecompat.Renewal
	var queries []lettucecompat.Query
	for i, key := range oddKeys {
		field := me(i)
		got := c.Do(ctx, fenced(key, i))
		if got.Outcome != ok {
			t.Fatalf("%.20q: %+v", key, got)
		}
		batch = append(batch, lettucecompat.Renewal{Key: key, Field: field, Lease: lease})
		queries = append(queries, lettucecompat.Query{Key: key, Field: field})
	}
	// A node that no other has joined does not know its own host.
	if _, port, _ := strings.Cut(b.real.Addr(), ":"); !strings.HasSuffix(c.Shard("k"), ":"+port) {
		t.Fatalf("shard is %s", c.Shard("k"))
	}
	b.raw.ScriptFlush(ctx)
	for i, got := range c.Renew(ctx, batch, 0) {
		if got.Outcome != ok {
			t.Fatalf("renew %.20q: %+v", oddKeys[i], got)
		}
		b.wantTTL(t, oddKeys[i], lease-margin, lease)
	}
	for i, got := range c.Status(ctx, queries, 0) {
		if got.Outcome != ok || got.Count != 1 {
			t.Fatalf("status %.20q: %+v", oddKeys[i], got)
		}
	}
	turn := givesFenced("plain", 0)
	turn.Want = 1
	want(t, "yield", c.Do(ctx, turn).Word, has)
	w := watchConfirmed(t, c, "a{t}b")
	want(t, "release", c.Do(ctx, givesFenced("a{t}b", 9)).Word, hasNothing)
	signal(t, "release", w.C())
	if err := c.Probe(ctx); err != nil {
		t.Fatal(err)
	}
	if err := c.Ping(ctx, 0); err != nil {
		t.Fatal(err)
	}
	if info, err := c.Inspect(ctx, "a{b", false); err != nil || info.Token == 0 {
		t.Fatalf("%+v, %v", info, err)
	}
	if released, err := c.ForceRelease(ctx, "a{b", false); err != nil || len(released) != 1 {
		t.Fatalf("%v, %v", released, err)
	}
	want(t, "acquire", c.Do(ctx, asks("replicated", 77)).Word, has)
	r := synced("replicated", 77)
	r.ReplicaTimeout = 20 * time.Millisecond
	want(t, "no replica", c.Extend(ctx, r, 0).Outcome, refused)
}

// TestClusterMoves_Lab: while a slot moves, commands are refused unexecuted and find
// the new owner, alone, in a batch and with WAIT.
func TestClusterMoves_Lab(t *testing.T) {
	t.Parallel()
	nodes, b, cc := cluster(t, 2)
	c := newClient(t, cc)
	second := nodes.Nodes()[1]
	raw2 := second.Client(t)
	slot := lettucecompat.KeySlot("{a}1")
	if nodes.Master(int(slot)) == second {
		nodes.MoveSlot(int(slot), nodes.Nodes()[0])
	}
	want(t, "acquire", c.Do(ctx, asks("{a}1", 1)).Outcome, ok)
	want(t, "acquire", c.Do(ctx, asks("{b}1", 1)).Outcome, ok)
	want(t, "{b} on the first node", b.raw.Exists(ctx, "{b}1").Val(), int64(1))
	b.raw.Del(ctx, "{a}1")
	nodes.MoveSlot(int(slot), second)
	b.raw.HSet(ctx, "{b}2", me(3), "1")
	raw2.HSet(ctx, "{a}2", me(3), "1")
	// The client's layout is of before: both items go to the first node, in one batch.
	for i, got := range c.Renew(ctx, []lettucecompat.Renewal{{Key: "{b}2", Field: me(3), Lease: lease}, {Key: "{a}2", Field: me(3), Lease: lease}}, 0) {
		if got.Outcome != ok {
			t.Fatalf("item %d: %+v", i, got)
		}
	}
	want(t, "single", c.Do(ctx, asks("{a}1", 4)).Outcome, ok)
	want(t, "on the new owner", raw2.HGet(ctx, "{a}1", me(4)).Val(), "1")
	raw2.HSet(ctx, "{a}3", me(5), "1")
	r := synced("{a}3", 5)
	r.ReplicaTimeout = 20 * time.Millisecond
	want(t, "with WAIT", c.Extend(ctx, r, 0).Outcome, refused)
}

// A forced release asks waiters to retry, wherever in the cluster it listens: no node knows the subscribers of
// another.
func TestCluster_AForcedReleaseNotifiesWhoListensElsewhere_Lab(t *testing.T) {
	t.Parallel()
	nodes, _, cc := cluster(t, 2)
	holder := newClient(t, cc)
	retries := make(chan lettucecompat.Message, 10)
	waiter := newClient(t, cc, func(o *lettucecompat.Options) {
		o.ClientID = "you"
		o.OnMessage = func(m lettucecompat.Message) {
			if m.Kind == lettucecompat.MessageRetry {
				retries <- m
			}
		}
	})
	watchConfirmed(t, waiter, "anything")
	keys := map[*testredis.Server]string{}
	for i := 0; len(keys) < 2; i++ {
		key := fmt.Sprint("k", i)
		keys[nodes.Master(int(lettucecompat.KeySlot(key)))] = key
	}
	for _, key := range keys {
		want(t, "acquire", holder.Do(ctx, asks(key, 1)).Word, has)
		want(t, "acquire", waiter.Do(ctx, asks(key, 2)).Word, waits)
		must2(holder.ForceRelease(ctx, key, false))
		select {
		case m := <-retries:
			want(t, "retry", m.Key, key)
		case <-time.After(pace.Hang):
			t.Errorf("nobody notified the waiter behind %s to retry", key)
		}
	}
}

// A Ring moves keys between servers within a lease, and has no one server on which a client could
// listen for its calls.
func TestNew_RefusesARing(t *testing.T) {
	t.Parallel()
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"1": "127.0.0.1:1"}})
	defer ring.Close()
	if _, err := lettucecompat.New(ring, lettucecompat.Options{ClientID: "me"}); err == nil || !strings.Contains(err.Error(), "redis.Ring") {
		t.Fatalf("a Ring was accepted: %v", err)
	}
}

// Servers that are no Cluster have other channels, and their releases another way.
func TestNew_RefusesACluster_ThatIsNone(t *testing.T) {
	t.Parallel()
	rdb := redis.NewFailoverClusterClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{"127.0.0.1:1"}})
	defer rdb.Close()
	if _, err := lettucecompat.New(rdb, lettucecompat.Options{ClientID: "me"}); err == nil || !strings.Contains(err.Error(), "NewFailoverClient") {
		t.Errorf("%v", err)
	}
}
