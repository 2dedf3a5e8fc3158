package queue_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/queue"
)

// A waiter that enters again is before all that came after it, in whatever state it finds the queue.
func TestQueue_AgainInEachState(t *testing.T) {
	bothModes(t, func(x *fixture) {
		a := x.own(queue.Refusable, 1, 1)
		x.mustLose(1, queue.Owned, queue.Nothing)
		a.again("queued", queue.StartAttempt) // Free
		old := a.w.Number
		x.s.Granted(2)
		a.wait().mustBeIn()
		if a.w.Grant != 2 || a.w.Number <= old || a.w.Owner != 1 || a.w.Kind != queue.Refusable || a.w.Note != uint64(1) {
			t.Fatalf("%+v", a.w)
		}

		b := x.park(queue.Refusable, 2)
		x.mustLose(2, queue.Owned, queue.StartAttempt)
		a.again("queued", queue.Nothing) // Acquiring
		x.lined(1, 2)
		x.s.Granted(3)
		a.wait().mustBeIn()

		x.mustLose(3, queue.Owned, queue.StartAttempt)
		x.s.Granted(4)
		b.mustBeIn()
		c := x.park(queue.Refusable, 3)
		a.again("queued", queue.Nothing) // Owned
		x.lined(1, 3)
		x.mustExit(b.w.Number, false, queue.Final, queue.SendRelease)
		b.again("queued", queue.Nothing) // Releasing
		x.lined(2, 1, 3)
		a.wait()
		b.wait()
		must(x, "Released", x.s.Released(), queue.StartAttempt)
		x.drain()
		c.mustBeIn()

		d := x.own(queue.NoNotify, 4, 5)
		x.mustLose(5, queue.Lost, queue.Nothing)
		x.mustExit(d.w.Number, false, queue.WasLost, queue.Nothing)
		e := x.own(queue.NoNotify, 5, 6)
		x.mustLose(6, queue.Lost, queue.Nothing)
		d.again("queued", queue.Nothing) // Lost
		x.mustExit(e.w.Number, true, queue.WasLost, queue.StartAttempt)
		d.wait()
		x.drain()
	})
}

// One that enters again while a grant has no owner takes it, as any newcomer does.
func TestQueue_AgainPassesAWokenHead(t *testing.T) {
	inBubble(t, false, func(x *fixture) {
		a := x.own(queue.Refusable, 1, 1)
		b := x.line(queue.Refusable, 2)
		x.mustLose(1, queue.Owned, queue.StartAttempt)
		x.s.Granted(2)
		a.again("in", queue.Nothing)
		must(x, "grant", a.w.Grant, 2)
		b.wait().mustWait()
		x.drain()
	})
}

// I6, also if newcomers take grants that are over and enter again as First: a waiter is passed for
// StarvationThreshold, and not for as long as newcomers arrive.
func TestQueue_I6_BehindFirstWaiters(t *testing.T) {
	s := queue.New(false)
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	in := make(chan uint64, 1000)
	wait := func(w *queue.Waiter) {
		wg.Go(func() {
			if _, err := s.Wait(ctx, w); err == nil {
				in <- w.Owner
			}
		})
	}
	a := &queue.Waiter{Owner: 1, Kind: queue.Refusable}
	s.Enter(a)
	wait(a)
	time.Sleep(3 * queue.StarvationThreshold)
	grants, passed := uint64(0), 0
	for ; grants < 300; grants++ {
		time.Sleep(200 * time.Microsecond) // a round trip
		s.Granted(grants + 1)
		w := &queue.Waiter{Owner: grants + 2, Kind: queue.Refusable}
		if in, _, _ := s.Enter(w); in {
			s.Lose(grants + 1) // a new attempt begins
			w.Again()
			s.Enter(w)
			wait(w)
			continue
		}
		wait(w)
		first := <-in
		if first == 1 {
			break
		}
		passed++
		if exit, _ := s.Exit(s.Current().Number, false); exit != queue.Final {
			t.Fatal(exit)
		}
		s.Released()
	}
	cancel()
	wg.Wait()
	t.Logf("admitted after %d grants, %d newcomers before it", grants, passed)
	if float64(grants) > min(20*pace.Factor(), 250) { // its goroutine, and each newcomer's, must get a processor
		t.Errorf("the oldest waiter was passed at %d grants, and by %d newcomers", grants, passed)
	}
}
