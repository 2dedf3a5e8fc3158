package testredis_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/testredis"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestSentinelFailsOver_Lab(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := testredis.StartSentinel(t)
	c := s.Client(t)
	must(t, c.Set(ctx, "kept", "v", 0).Err())
	if n, err := c.Wait(ctx, 2, 0).Result(); err != nil || n != 2 {
		t.Fatalf("WAIT: %d, %v", n, err)
	}
	old := s.Master()
	if old != s.Nodes()[0] || len(s.Replicas()) != 2 {
		t.Fatal("the first node is not the master")
	}
	// Writes made while the replicas are cut off are lost, confirmed ones are not.
	old.CutReplicas(t, s.Replicas()...)
	must(t, c.Set(ctx, "lost", "v", 0).Err())
	replicas := s.Replicas()
	old.Kill()
	for _, r := range replicas {
		r.Resume()
	}
	now := s.AwaitMaster(old)
	nc := now.Client(t)
	if n, err := nc.Exists(ctx, "kept").Result(); err != nil || n != 1 {
		t.Fatalf("a write that two replicas confirmed: %d, %v", n, err)
	}
	if n, err := nc.Exists(ctx, "lost").Result(); err != nil || n != 0 {
		t.Fatalf("a write that no replica can have seen: %d, %v", n, err)
	}
	s.Rejoin(old)
	if s.Master() == old { // a third one may have taken over: a busy machine looks like a dead master
		t.Fatal("the old master is master again")
	}
	must(t, c.Set(ctx, "after", "v", 0).Err())
	if n, err := c.Wait(ctx, 2, 0).Result(); err != nil || n != 2 {
		t.Fatalf("WAIT after the failover: %d, %v", n, err)
	}
}

func TestClusterFailsOver_Lab(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := testredis.StartCluster(t, 3, 3)
	c.FailOver()
	rdb := c.Client(t)
	slot := c.Slot("lost{a}")
	old := c.Master(slot)
	if len(c.Masters()) != 3 || len(c.Replicas(old)) != 1 {
		t.Fatalf("%d masters, %d replicas of one", len(c.Masters()), len(c.Replicas(old)))
	}
	must(t, rdb.Set(ctx, "kept{a}", "v", 0).Err())
	oc := old.Client(t)
	must(t, oc.Set(ctx, "kept{a}", "w", 0).Err())
	if n, err := oc.Wait(ctx, 1, 0).Result(); err != nil || n != 1 {
		t.Fatalf("WAIT: %d, %v", n, err)
	}
	replica := c.Replicas(old)[0]
	old.CutReplicas(t, replica)
	must(t, rdb.Set(ctx, "lost{a}", "v", 0).Err())
	old.Kill()
	replica.Resume()
	now := c.AwaitMaster(slot, old)
	if now != replica {
		t.Fatal("another node than its replica follows the master")
	}
	nc := now.Client(t)
	if n, err := nc.Exists(ctx, "kept{a}").Result(); err != nil || n != 1 {
		t.Fatalf("a confirmed write: %d, %v", n, err)
	}
	if n, err := nc.Exists(ctx, "lost{a}").Result(); err != nil || n != 0 {
		t.Fatalf("a write that no replica can have seen: %d, %v", n, err)
	}
	old.Restart()
	c.AwaitReady()
	if got := c.Replicas(now); len(got) != 1 || got[0] != old {
		t.Fatal("the old master has not become a replica")
	}
}

func TestSlotMoves(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := testredis.StartCluster(t, 2, 0)
	rdb := c.Client(t)
	low, high := c.Nodes()[0], c.Nodes()[1]
	if c.Master(0) != low || c.Master(16383) != high {
		t.Fatal("the first node does not have the lowest slots")
	}
	slot := c.Slot("{move}")
	from, to := low, high
	if c.Master(slot) == high {
		from, to = high, low
	}
	for _, k := range []string{"{move}1", "{move}2", "{move}3"} {
		must(t, rdb.Set(ctx, k, k, 0).Err())
	}
	m := c.BeginMove(slot, to)
	must(t, rdb.Get(ctx, "{move}1").Err())
	must(t, rdb.Set(ctx, "{move}4", "new", 0).Err()) // goes to the new owner, by ASK
	if n := m.MoveKeys(); n != 3 {
		t.Fatalf("%d keys moved, want 3", n)
	}
	m.End()
	if c.Master(slot) != to {
		t.Fatal("the slot has not moved")
	}
	for _, k := range []string{"{move}1", "{move}2", "{move}3", "{move}4"} {
		must(t, rdb.Get(ctx, k).Err())
	}
	var err error
	for _, n := range []*testredis.Server{from, to} {
		err = n.Client(t).Get(ctx, "{move}1").Err()
		if _, moved := redis.IsMovedError(err); moved != (n == from) {
			t.Fatalf("the node answers %v", err)
		}
	}
	c.MoveSlot(slot, from)
	must(t, rdb.Get(ctx, "{move}4").Err())
}
