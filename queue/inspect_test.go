package queue_test

import (
	"context"
	"testing"
	"time"

	"github.com/anteroom/anteroom/queue"
)

// The layout is a promise to anyone who reads the word in a dump or a log: docs/internals/decisions.md §5.1.
func TestQueue_WordLayout(t *testing.T) {
	for _, c := range []struct {
		word     queue.Word
		state    queue.State
		count    int
		handOffs int
	}{
		{0, queue.Free, 0, 0},
		{0x01010000, queue.Owned, 1, 0},
		{0x01ffffff, queue.Owned, 255, 65535},
		{0x02000000, queue.Acquiring, 0, 0},
		{0x03000007, queue.Granted, 0, 7},
		{0x0400ffff, queue.Releasing, 0, 65535},
		{0x05020001, queue.Lost, 2, 1},
	} {
		if c.word.State() != c.state || c.word.Count() != c.count || c.word.HandOffs() != c.handOffs {
			t.Errorf("%#x reads %v %d %d", uint32(c.word), c.word.State(), c.word.Count(), c.word.HandOffs())
		}
		if packed := queue.Pack(c.state, c.count, c.handOffs); packed != c.word {
			t.Errorf("%v %d %d packs to %#x, want %#x", c.state, c.count, c.handOffs, uint32(packed), uint32(c.word))
		}
	}
}

func TestQueue_InspectionShowsWhoWaits(t *testing.T) {
	bothModes(t, func(x *fixture) {
		began := time.Now()
		must(x, "Len", x.s.Len(), 0)
		x.own(queue.NoNotify, 1, 1)
		time.Sleep(time.Second)
		x.park(queue.Refusable, 2)
		time.Sleep(time.Minute)
		x.park(queue.NoNotify, 3)
		waiting := x.s.Waiting()
		must(x, "how many", len(waiting), 2)
		want := []queue.WaiterInfo{
			{Owner: 2, Kind: queue.Refusable, Note: uint64(2), Since: began.Add(time.Second)},
			{Owner: 3, Kind: queue.NoNotify, Note: uint64(3), Since: began.Add(time.Second + time.Minute)},
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
		must(x, "who is first", first[0].Owner, 2)
		must(x, "and in the Front", front.First.Owner, 2)
		must(x, "how many there are", front.Waiting, 2)
		must(x, "whose it is", front.Current, x.s.Current())
		_, more := x.s.Peek(3)
		must(x, "Peek(3)", len(more), 2)
		must(x, "somebody waits", x.s.Len() > 0, true)
		found, is := x.s.Find(3)
		found.Since = want[1].Since
		must(x, "Find(3)", found, want[1])
		must(x, "found", is, true)
		ids := x.s.AppendWaiting([]uint64{9})
		must(x, "AppendWaiting", [3]uint64(ids), [3]uint64{9, 2, 3})
		x.drain()
	})
}

// The first waiter is the one that has waited longest; once that one has left the queue, another is first.
func TestQueue_LengthAndFirstWait(t *testing.T) {
	bothModes(t, func(x *fixture) {
		line := func(length int, first time.Duration) {
			x.t.Helper()
			f, listed := x.s.Peek(0)
			must(x, "listed", len(listed), 0)
			must(x, "length", f.Waiting, length)
			if length > 0 {
				must(x, "the first one's wait", time.Since(f.First.Since), first)
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
func TestQueue_SinceSurvivesAgain(t *testing.T) {
	bothModes(t, func(x *fixture) {
		time.Sleep(time.Second) // the Synchronizer was made before that
		began := time.Now()
		a := x.own(queue.Refusable, 1, 1)
		time.Sleep(time.Hour)
		x.mustExit(a.w.Number, false, queue.Final, queue.SendRelease)
		a.again("queued", queue.Nothing)
		if since := x.s.Waiting()[0].Since; !since.Equal(began) {
			t.Errorf("since %v, want %v", since, began)
		}
		a.wait()
		x.drain()
	})
}

// A caller that read the clock before Enter sets the beginning of its wait.
func TestQueue_SinceIsTheCallersMoment(t *testing.T) {
	bothModes(t, func(x *fixture) {
		time.Sleep(time.Hour) // the Synchronizer was made before that
		began := time.Now()
		w := &queue.Waiter{Kind: queue.Refusable, Began: time.Hour}
		time.Sleep(time.Minute)
		x.s.Enter(w)
		if since := x.s.Waiting()[0].Since; !since.Equal(began) {
			t.Errorf("since %v, want %v", since, began)
		}
		x.s.Granted(1)
		if _, err := x.s.Wait(context.Background(), w); err != nil {
			t.Fatal(err)
		}
		x.s.Exit(w.Number, false)
		x.s.Released()
	})
}

func TestQueue_FrontShowsOwnerAndFirstWaiter(t *testing.T) {
	bothModes(t, func(x *fixture) {
		_, waited := x.s.Front()
		must(x, "waited", waited, false)
		a := x.own(queue.NoNotify, 1, 1)
		_, waited = x.s.Front()
		must(x, "waited for an owner", waited, false)
		began := time.Now()
		b := x.park(queue.Refusable, 2)
		time.Sleep(time.Minute)
		own := x.park(queue.Refusable, 1)
		f, waited := x.s.Front()
		must(x, "waited", waited, true)
		must(x, "tenure", f.Current, x.s.Current())
		must(x, "how many", f.Waiting, 2)
		must(x, "who", f.First.Owner, 2)
		must(x, "since", f.First.Since.Equal(began), true)
		must(x, "the owner waits", f.OwnerWaits, true)
		own.giveUp()
		x.s.Exit(a.w.Number, false)
		f, _ = x.s.Front()
		must(x, "nobody owns", f.OwnerWaits, false)
		x.s.Released()
		x.s.Granted(2)
		b.mustBeIn()
		x.park(queue.Refusable, 3)
		f, _ = x.s.Front()
		must(x, "the owner before waited", f.OwnerWaits, false)
		x.drain()
	})
}

// Unknown goroutines, which owner 0 means, are not taken for the same one.
func TestQueue_FrontTakesUnknownGoroutinesForDifferentOnes(t *testing.T) {
	bothModes(t, func(x *fixture) {
		x.own(queue.Refusable, 0, 1)
		x.park(queue.Refusable, 0)
		f, _ := x.s.Front()
		must(x, "the owner waits", f.OwnerWaits, false)
		x.drain()
	})
}
