package conformance_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
)

// A slot moves to another master and back while two processes work on its keys and hold some of them all the time. A
// slot moves with its keys and their times to live, and a node without a key says so without executing anything. So
// no lock is lost and no two are inside at once, with fencing or without. While the slot is on both nodes Redis refuses
// scripts with two keys of which only one is there (TRYAGAIN): what is held is renewed and released, and a lock, which
// needs its line, is acquired after the move.
func TestASlotMovesUnderLoad(t *testing.T) {
	t.Parallel()
	c := testredis.StartCluster(t, 3, 0)
	b := startBusySlot(t, c)
	home := c.Master(b.slot)
	for range 2 * rounds(t) {
		from := c.Master(b.slot)
		to := home
		if from == home {
			to = c.Nodes()[0]
			if to == home {
				to = c.Nodes()[1]
			}
		}
		begin := time.Now()
		m := c.BeginMove(b.slot, to)
		renewed(t, b.held)
		moved := m.MoveKeys()
		m.End()
		took := time.Since(begin)
		if moved < len(b.held) {
			t.Errorf("%d keys moved, and %d were held", moved, len(b.held))
		}
		t.Logf("slot %d with %d keys has moved in %v", b.slot, moved, took.Round(time.Millisecond))
		b.goesOn()
	}
	b.end()
}

// A replica takes its master's place by agreement, and gives it back. The master serves nobody during the handover,
// and then redirects everybody: no lock is lost.
func TestAPlannedFailoverLosesNothing(t *testing.T) {
	t.Parallel()
	c := testredis.StartCluster(t, 3, 1)
	b := startBusySlot(t, c)
	for range 2 * rounds(t) {
		begin := time.Now()
		c.Failover(b.slot, c.Replicas(c.Master(b.slot))[0])
		t.Logf("handed over in %v", time.Since(begin).Round(time.Millisecond))
		b.goesOn()
		c.AwaitReady()
	}
	b.end()
}

// busySlot is a slot on which two processes work and hold locks all the time, and no lock can be lost.
type busySlot struct {
	t             *testing.T
	slot          int
	parties       []*party
	fenced, plain *load
	held          []*anteroom.Hold
}

// startBusySlot starts the work, in a slot of the first node.
func startBusySlot(t *testing.T, c *testredis.Cluster) *busySlot {
	t.Helper()
	tag := ""
	for i := 0; tag == "" || c.Master(c.Slot(tag)) != c.Nodes()[0]; i++ {
		tag = fmt.Sprintf("{%d}", i)
	}
	b := &busySlot{t: t, slot: c.Slot(tag), parties: []*party{newParty(t, c.Client(t)), newParty(t, c.Client(t))}}
	for i := range 10 {
		// Renewed once a second, with a lease that outlasts a busy machine's pauses; half of them with a fencing
		// record.
		cfg := anteroom.LockConfig{Key: fmt.Sprint(tag, "held:", i), LeaseTime: 20 * time.Second, RenewalTime: time.Second, Fencing: i%4 < 2}
		h, err := b.parties[i%2].lock(t, cfg).Acquire(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		b.held = append(b.held, h)
	}
	var fenced, plain []string
	for i := range loadKeys / 2 {
		fenced, plain = append(fenced, fmt.Sprint(tag, "fenced:", i)), append(plain, fmt.Sprint(tag, "plain:", i))
	}
	b.fenced, b.plain = startLoad(t, b.parties, fenced, 2, true), startLoad(t, b.parties, plain, 2, false)
	b.goesOn()
	return b
}

// goesOn waits until all parties work and every hold is renewed, where its key is now.
func (b *busySlot) goesOn() {
	b.t.Helper()
	b.fenced.moves(100)
	b.plain.moves(100)
	renewed(b.t, b.held)
}

// end checks that nothing was lost and nothing remains.
func (b *busySlot) end() {
	b.t.Helper()
	b.fenced.end(true)
	b.plain.end(true)
	for _, h := range b.held {
		if err := h.Release(context.Background()); err != nil {
			b.t.Errorf("%s, held through it all: %v", h.Key(), err)
		}
	}
	for _, p := range b.parties {
		eventually(b.t, stuck, "nothing is kept", func() bool { return len(p.Snapshot()) == 0 })
		for _, e := range p.lost() {
			b.t.Errorf("an event of a loss: %+v", e)
		}
	}
}

// renewed waits until every hold has been renewed, where its key is now.
func renewed(t *testing.T, held []*anteroom.Hold) {
	t.Helper()
	var before []time.Time
	for _, h := range held {
		before = append(before, h.Deadline())
	}
	for i, h := range held {
		eventually(t, stuck, "a renewal", func() bool { return h.Deadline().After(before[i]) || h.Err() != nil })
		if err := h.Err(); err != nil {
			t.Errorf("%s, while its slot moved: %v", h.Key(), err)
		}
	}
}
