package conformance_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
)

// A slot moves to another master and back while two processes work on its keys and hold
// some of them all the time. A slot takes its keys with their times to live along, and a
// node that has not a key says so without executing anything. So no lock is lost and no
// two are inside at once, with fencing or without.
func TestASlotMovesUnderLoad(t *testing.T) {
	t.Parallel()
	c := testredis.StartCluster(t, 3, 0)
	const tag = "{moving}"
	slot := c.Slot(tag)
	var fenced, plain []string
	for i := range loadKeys / 2 {
		fenced, plain = append(fenced, fmt.Sprint(tag, "fenced:", i)), append(plain, fmt.Sprint(tag, "plain:", i))
	}
	parties := []*party{newParty(t, c.Client(t)), newParty(t, c.Client(t))}
	var held []*anteroom.Hold
	for i := range 10 {
		// Renewed once a second; half of them with a record beside the lock.
		mu := parties[i%2].lock(t, anteroom.LockConfig{Key: fmt.Sprint(tag, "held:", i), LeaseTime: 3 * time.Second, Fencing: i%4 < 2})
		h, err := mu.Acquire(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, h)
	}
	l, p := startLoad(t, parties, fenced, 2, true), startLoad(t, parties, plain, 2, false)
	l.moves(100)
	p.moves(100)
	home := c.Master(slot)
	for range 2 * rounds(t) {
		from := c.Master(slot)
		to := home
		if from == home {
			to = c.Nodes()[0]
			if to == home {
				to = c.Nodes()[1]
			}
		}
		begin := time.Now()
		m := c.BeginMove(slot, to)
		// While the slot is on both nodes a lock with one key is granted by the new one.
		// Redis refuses scripts with two keys of which one is there (TRYAGAIN), so one with a
		// record of tokens cannot be acquired before the move is over.
		p.moves(20)
		moved := m.MoveKeys()
		m.End()
		took := time.Since(begin)
		if moved < len(held) {
			t.Errorf("%d keys moved, and %d were held", moved, len(held))
		}
		l.moves(100)
		p.moves(100)
		t.Logf("slot %d with %d keys has moved in %v", slot, moved, took.Round(time.Millisecond))
		renewed(t, held)
	}
	l.end(true)
	p.end(true)
	for _, h := range held {
		if err := h.Release(context.Background()); err != nil {
			t.Errorf("%s, held through it all: %v", h.Key(), err)
		}
	}
	for _, p := range parties {
		eventually(t, stuck, "nothing is kept", func() bool { return len(p.Snapshot()) == 0 })
		for _, e := range p.lost() {
			t.Errorf("an event of a loss: %+v", e)
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
