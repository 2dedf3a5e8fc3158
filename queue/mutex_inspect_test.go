package queue_test

import (
	"context"
	"testing"
	"time"

	"github.com/anteroom/anteroom/queue"
)

func TestMutex_InspectionShowsWhoWaits(t *testing.T) {
	bothModes(t, func(x *fixture) {
		began := time.Now()
		must(x, "Len", x.s.Len(), 0)
		x.own(queue.NoNotify, 1, 1)
		time.Sleep(time.Second)
		x.park(queue.Refusable, 2)
		time.Sleep(time.Minute)
		x.park(queue.NoNotify, 3)
		waiting := x.s.Waiting(-1)
		must(x, "how many", len(waiting), 2)
		want := []queue.WaiterInfo{
			{Goroutine: 2, Kind: queue.Refusable, Note: uint64(2), Need: 1, Since: began.Add(time.Second)},
			{Goroutine: 3, Kind: queue.NoNotify, Note: uint64(3), Need: 1, Since: began.Add(time.Second + time.Minute)},
		}
		for i := range want {
			if !waiting[i].Since.Equal(want[i].Since) {
				t.Errorf("since %v, want %v", waiting[i].Since, want[i].Since)
			}
			waiting[i].Since = want[i].Since
			must(x, "waiter", waiting[i], want[i])
		}
		front, first := x.s.Peek(1)
		must(x, "Peek(1)", len(first), 1)
		must(x, "who is first", first[0].Goroutine, 2)
		must(x, "and by First", x.s.Front().First.Note, any(uint64(2)))
		must(x, "how many there are", front.Waiting, 2)
		must(x, "whose it is", front.Demand, x.s.Demand())
		_, more := x.s.Peek(3)
		must(x, "Peek(3)", len(more), 2)
		ids := x.s.AppendWaiting([]uint64{9})
		must(x, "AppendWaiting", [3]uint64(ids), [3]uint64{9, 2, 3})
		x.drain()
	})
}

// The first waiter is the one that has waited longest; once that one has left the queue, another is first.
func TestMutex_LengthAndFirstWait(t *testing.T) {
	bothModes(t, func(x *fixture) {
		line := func(length int, first time.Duration) {
			x.t.Helper()
			f, listed := x.s.Peek(1)
			must(x, "length", f.Waiting, length)
			if length > 0 {
				must(x, "the first one's wait", time.Since(listed[0].Since), first)
			}
		}
		line(0, 0)
		x.own(queue.NoNotify, 1, 1)
		line(0, 0)
		first := x.park(queue.Refusable, 2)
		time.Sleep(time.Minute)
		x.park(queue.NoNotify, 3)
		time.Sleep(time.Second)
		line(2, time.Minute+time.Second)
		first.giveUp()
		line(1, time.Second)
		x.drain()
		line(0, 0)
	})
}

// A waiter's Since survives Again: it says since when the goroutine has waited, not since when it entered again.
func TestMutex_SinceSurvivesAgain(t *testing.T) {
	bothModes(t, func(x *fixture) {
		time.Sleep(time.Second) // the Synchronizer was made before that
		began := time.Now()
		a := x.own(queue.Refusable, 1, 1)
		time.Sleep(time.Hour)
		x.mustExit(a.w.Stay, queue.EndTurn, queue.Final, queue.GiveBack)
		a.again("queued", queue.Nothing)
		if since := x.s.Waiting(-1)[0].Since; !since.Equal(began) {
			t.Errorf("since %v, want %v", since, began)
		}
		a.wait()
		x.drain()
	})
}

// A caller that read the clock before Enter sets the beginning of its wait.
func TestMutex_SinceIsTheCallersMoment(t *testing.T) {
	bothModes(t, func(x *fixture) {
		time.Sleep(time.Hour) // the Synchronizer was made before that
		began := time.Now()
		w := &queue.Waiter{Stay: &queue.Stay{Need: 1, Kind: queue.Refusable}, Began: time.Hour + time.Nanosecond}
		time.Sleep(time.Minute)
		x.s.Acquire(w)
		if since := x.s.Waiting(-1)[0].Since; !since.Equal(began) {
			t.Errorf("since %v, want %v", since, began)
		}
		x.s.Grant(1)
		if _, err := x.s.Park(context.Background(), w); err != nil {
			t.Fatal(err)
		}
		x.s.Release(w.Stay, queue.EndTurn)
		x.released()
	})
}

func TestMutex_DemandShowsOwnerAndFirstWaiter(t *testing.T) {
	bothModes(t, func(x *fixture) {
		x.own(queue.NoNotify, 0, 7)
		x.park(queue.NoNotify, 0)
		must(x, "an unknown goroutine waits for itself", x.s.Demand().OwnerWaits, false)
		x.drain()
		a := x.own(queue.NoNotify, 1, 1)
		must(x, "nobody waits", x.s.Front().First.Note, nil)
		b := x.park(queue.Refusable, 2)
		own := x.park(queue.Refusable, 1)
		d := x.s.Demand()
		must(x, "owner", d.Owner, queue.OwnerInfo{Number: d.Owner.Number, Goroutine: 1, Kind: queue.NoNotify, Count: 1})
		must(x, "by itself", x.s.Owner(), a.w.Stay)
		must(x, "how many", d.Waiting, 2)
		must(x, "who", x.s.Front().First.Note, any(uint64(2)))
		must(x, "the owner waits", d.OwnerWaits, true)
		own.giveUp()
		x.s.Release(a.w.Stay, queue.EndTurn)
		must(x, "nobody owns", x.s.Demand().OwnerWaits, false)
		x.released()
		x.s.Grant(2)
		b.mustBeIn()
		x.park(queue.Refusable, 3)
		must(x, "the owner before waited", x.s.Demand().OwnerWaits, false)
		x.drain()
		x.own(queue.Refusable, 0, 3) // unknown goroutines are not taken for the same one
		x.park(queue.Refusable, 0)
		must(x, "the owner waits", x.s.Demand().OwnerWaits, false)
		x.drain()
	})
}
