package queue_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom/queue"
)

// A waiter that enters again is before all that came after it, in whatever state it finds the queue.
func TestMutex_AgainInEachState(t *testing.T) {
	bothModes(t, func(x *fixture) {
		a := x.own(queue.Refusable, 1, 1)
		x.mustLose(1, a, queue.Restate)
		a.again("queued", queue.Restate) // Free
		x.s.Grant(2)
		a.wait().mustBeIn()
		if a.w.Grant != 2 || a.w.Goroutine != 1 || a.w.Kind != queue.Refusable || a.w.Note != uint64(1) {
			t.Fatalf("%+v", a.w)
		}

		b := x.park(queue.Refusable, 2)
		x.mustLose(2, a, queue.Restate)
		a.again("queued", queue.Nothing) // Acquiring
		x.lined(1, 2)
		x.s.Grant(3)
		a.wait().mustBeIn()

		x.mustLose(3, a, queue.Restate)
		x.s.Grant(4)
		b.mustBeIn()
		c := x.park(queue.Refusable, 3)
		a.again("queued", queue.Nothing) // Owned
		x.lined(1, 3)
		x.mustExit(b.w.Stay, queue.EndTurn, queue.Final, queue.GiveBack)
		b.again("queued", queue.Nothing) // Releasing
		x.lined(2, 1, 3)
		a.wait()
		b.wait()
		x.released()
		x.drain()
		c.mustBeIn()

		d := x.own(queue.NoNotify, 4, 5)
		x.mustLose(5, d, queue.Restate)
		x.mustExit(d.w.Stay, queue.EndTurn, queue.WasLost, queue.Nothing)
		e := x.own(queue.NoNotify, 5, 6)
		x.mustLose(6, e, queue.Restate)
		d.again("queued", queue.Nothing) // Lost
		x.mustExit(e.w.Stay, queue.HandOff, queue.WasLost, queue.Restate)
		d.wait()
		x.drain()
	})
}

// One that enters again while a grant has no owner takes it, as any newcomer does.
func TestMutex_AgainPassesAWokenHead(t *testing.T) {
	inBubble(t, false, func(x *fixture) {
		a := x.own(queue.Refusable, 1, 1)
		b := x.line(queue.Refusable, 2)
		x.mustExit(a.w.Stay, queue.HandOff, queue.HandedOff, queue.Nothing)
		a.again("in", queue.Nothing)
		must(x, "grant", a.w.Grant, 1)
		b.wait().mustWait()
		x.drain()
	})
}

// I6, also if newcomers take grants that are over and enter again as First: a waiter is passed for
// StarvationThreshold, and not for as long as newcomers arrive.
func TestMutex_I6_BehindFirstWaiters(t *testing.T) {
	s := newMutex(false)
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	in := make(chan uint64, 1000)
	wait := func(w *queue.Waiter) {
		wg.Go(func() {
			if _, err := s.Park(ctx, w); err == nil {
				in <- w.Goroutine
			}
		})
	}
	a := &queue.Waiter{Stay: &queue.Stay{Goroutine: 1, Need: 1, Kind: queue.Refusable}}
	s.Acquire(a)
	wait(a)
	time.Sleep(3 * queue.StarvationThreshold)
	grants, passed := uint64(0), 0
	for ; grants < 300; grants++ {
		time.Sleep(200 * time.Microsecond) // a round trip
		s.Grant(grants + 1)
		w := &queue.Waiter{Stay: &queue.Stay{Goroutine: grants + 2, Need: 1, Kind: queue.Refusable}}
		if in, _, _ := s.Acquire(w); in {
			s.Lose(grants + 1) // a new attempt begins
			w.Again()
			s.Acquire(w)
			wait(w)
			continue
		}
		wait(w)
		first := <-in
		if first == 1 {
			break
		}
		passed++
		if exit, _ := s.Release(s.Owner(), queue.EndTurn); exit != queue.Final {
			t.Fatal(exit)
		}
		s.Shrink(0)
	}
	cancel()
	wg.Wait()
	t.Logf("admitted after %d grants, %d newcomers before it", grants, passed)
	if grants > 20 {
		t.Errorf("the oldest waiter was passed at %d grants, and by %d newcomers", grants, passed)
	}
}
