package queue_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom/queue"
)

// I6, also where newcomers take grants that they cannot use and give them back: a waiter is passed for
// StarvationThreshold, and not for as long as newcomers arrive.
func TestQueue_I6_BehindGivenBackWaiters(t *testing.T) {
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
			s.GiveBack(w) // w cannot use what it took: a new attempt begins
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
	if grants > 20 {
		t.Errorf("the oldest waiter was passed at %d grants, and by %d newcomers", grants, passed)
	}
}
