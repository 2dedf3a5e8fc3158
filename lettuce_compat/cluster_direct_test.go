package lettucecompat_test

import (
	"context"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// dialingCluster is a client of cl that counts what it dials.
func dialingCluster(t *testing.T, cl *testredis.Cluster) (rdb *redis.ClusterClient, dials *atomic.Int64) {
	dials = new(atomic.Int64)
	opt := *cl.Client(t).Options()
	opt.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		dials.Add(1)
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	rdb = redis.NewClusterClient(&opt)
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb, dials
}

// TestCluster_OneConnectionToEachNode serves many callers.
func TestCluster_OneConnectionToEachNode_Lab(t *testing.T) {
	t.Parallel()
	cl := testredis.StartCluster(t, 3, 0)
	rdb, dials := dialingCluster(t, cl)
	c := newClient(t, rdb)
	for i := range 30 { // each node has its script, and what is found out by the first command is known
		want(t, "warm", c.Do(ctx, asks("warm"+strconv.Itoa(i), 1)).Outcome, ok)
	}
	want(t, "nodes", lettucecompat.Directs(c), 3)
	before := dials.Load()
	together(t, c, 300)
	if n := dials.Load() - before; n > 3 { // the second to a node that was slow for a moment
		t.Errorf("%d more connections", n)
	}
}

// TestCluster_HooksSeeEachCommand: those of the ClusterClient, by which go-redis sends then, and those of the nodes' clients.
func TestCluster_HooksSeeEachCommand_Lab(t *testing.T) {
	t.Parallel()
	cl := testredis.StartCluster(t, 2, 0)
	for _, test := range []struct {
		name    string
		hook    func(rdb *redis.ClusterClient, h redis.Hook)
		directs int
	}{
		{"of the ClusterClient", func(rdb *redis.ClusterClient, h redis.Hook) { rdb.AddHook(h) }, 0},
		{"of the nodes", func(rdb *redis.ClusterClient, h redis.Hook) {
			rdb.OnNewNode(func(node *redis.Client) { node.AddHook(h) })
		}, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			rdb, _ := dialingCluster(t, cl)
			h := &seen{}
			test.hook(rdb, h)
			c := newClient(t, rdb)
			for i := range 20 {
				want(t, "warm", c.Do(ctx, asks(test.name+strconv.Itoa(i), 1)).Outcome, ok)
			}
			h.mu.Lock()
			h.names = nil
			h.mu.Unlock()
			for i := range 20 {
				want(t, "acquire", c.Do(ctx, asks(test.name+"k"+strconv.Itoa(i), 1)).Outcome, ok)
			}
			h.mu.Lock()
			defer h.mu.Unlock()
			want(t, "seen", len(h.names), 20)
			want(t, "nodes with connections of ours", lettucecompat.Directs(c), test.directs)
		})
	}
}

// rerouting is a hook that sends every command to another cluster.
type rerouting struct {
	plainHook
	to *redis.ClusterClient
}

func (h rerouting) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { return h.to.Process(ctx, cmd) }
}

// TestCluster_AHookThatSendsElsewhere is no ClusterClient without hooks, though that to which it sends is one.
func TestCluster_AHookThatSendsElsewhere_Lab(t *testing.T) {
	t.Parallel()
	cl, other := testredis.StartCluster(t, 1, 0), testredis.StartCluster(t, 1, 0)
	rdb := cl.Client(t)
	rdb.AddHook(rerouting{to: other.Client(t)})
	c := newClient(t, rdb)
	for i := range 10 {
		key := "k" + strconv.Itoa(i)
		want(t, "acquire", c.Do(ctx, asks(key, 1)).Outcome, ok)
		want(t, "in the other", other.Masters()[0].Client(t).Exists(ctx, key).Val(), int64(1))
	}
	want(t, "nodes with connections of ours", lettucecompat.Directs(c), 0)
}

// TestCluster_AWrapperIsNotPassed: what a type around a ClusterClient does, it does for each command.
func TestCluster_AWrapperIsNotPassed_Lab(t *testing.T) {
	t.Parallel()
	cl := testredis.StartCluster(t, 1, 0)
	w := &processing{ClusterClient: cl.Client(t)}
	c := newClient(t, w)
	for i := range 10 {
		want(t, "acquire", c.Do(ctx, asks("k"+strconv.Itoa(i), 1)).Outcome, ok)
	}
	if n := w.n.Load(); n < 10 {
		t.Errorf("%d commands of 10", n)
	}
}

// processing is a ClusterClient that counts commands.
type processing struct {
	*redis.ClusterClient
	n atomic.Int64
}

func (p *processing) Process(ctx context.Context, cmd redis.Cmder) error {
	p.n.Add(1)
	return p.ClusterClient.Process(ctx, cmd)
}

// TestCluster_AHungMaster: who has waited for it in vain asks for the layout, since the master may have been replaced.
func TestCluster_AHungMaster_Lab(t *testing.T) {
	t.Parallel()
	cl := testredis.StartCluster(t, 2, 0)
	c := newClient(t, cl.Client(t), func(o *lettucecompat.Options) { o.CommandTimeout = pace.Scale(300 * time.Millisecond) })
	for i := range 20 {
		want(t, "warm", c.Do(ctx, asks("warm"+strconv.Itoa(i), 1)).Outcome, ok)
	}
	want(t, "asked for the layout before", lettucecompat.Relocated(c), false)
	hung := cl.Master(cl.Slot("k"))
	hung.Pause()
	want(t, "acquire", c.Do(ctx, asks("k", 1)).Outcome, unknown)
	hung.Resume()
	want(t, "asked for the layout", lettucecompat.Relocated(c), true)
}

// TestCluster_WhatIsElsewhere: a node that is not the owner has executed nothing, and go-redis finds who is.
func TestCluster_WhatIsElsewhere_Lab(t *testing.T) {
	t.Parallel()
	cl := testredis.StartCluster(t, 2, 0)
	c := newClient(t, cl.Client(t))
	for i := range 20 {
		want(t, "warm", c.Do(ctx, asks("warm"+strconv.Itoa(i), 1)).Outcome, ok)
	}
	const key = "k"
	slot := cl.Slot(key)
	to := cl.Masters()[0]
	if to == cl.Master(slot) {
		to = cl.Masters()[1]
	}
	want(t, "acquire", c.Do(ctx, asks(key, 1)).Word, has)
	move := cl.BeginMove(slot, to)
	move.MoveKeys()
	want(t, "ASK", c.Status(ctx, []lettucecompat.Query{{Key: key, Field: me(1)}}, 0)[0].Outcome, ok)
	move.End()
	want(t, "MOVED", c.Status(ctx, []lettucecompat.Query{{Key: key, Field: me(1)}}, 0)[0].Outcome, ok)
	want(t, "the lock is where its slot is", to.Client(t).HLen(ctx, key).Val(), int64(1))
	want(t, "nodes with connections of ours", lettucecompat.Directs(c), 2)
}
