package queue_test

import (
	"context"
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

// An admitted waiter can be used again. It parks on the channel that it has, and is woken by its own wake-up only,
// never by one meant for its previous use.
func TestMutex_ResetWaiterParksAgain(t *testing.T) {
	bothModes(t, func(x *fixture) {
		a := x.own(queue.NoNotify, 1, 5)
		b := x.park(queue.NoNotify, 2)
		x.mustExit(a.w.Stay, queue.HandOff, queue.HandedOff, queue.Nothing)
		b.mustBeIn()
		a.w.Reset()
		if a.w.Grant != 0 || a.w.HandOffs != 0 || a.w.First {
			x.t.Fatalf("something is left: %+v", a.w)
		}
		a.w.Stay = &queue.Stay{Need: 1, Kind: queue.NoNotify, Goroutine: 3}
		again := x.enterAs(a.w).wait()
		again.mustWait()
		x.mustExit(b.w.Stay, queue.HandOff, queue.HandedOff, queue.Nothing)
		again.mustBeIn()
		must(x, "hand-offs", again.w.HandOffs, 2)
		x.drain()
	})
}

// Only an admitted waiter is known to have read every wake-up.
func TestMutex_ResetOfAWaiterThatDidNotComeInPanics(t *testing.T) {
	bothModes(t, func(x *fixture) {
		mustPanic(x, "new", func() { new(queue.Waiter).Reset() })
		a := x.own(queue.NoNotify, 1, 5)
		b := x.park(queue.Refusable, 2)
		mustPanic(x, "queued", b.w.Reset)
		b.giveUp()
		mustPanic(x, "left", b.w.Reset)
		x.mustExit(a.w.Stay, queue.HandOff, queue.Final, queue.GiveBack)
	})
}

// A goroutine learns without a lock whether it is the owner, and whether it owns by a NoNotify kind.
func TestMutex_OwnedBy(t *testing.T) {
	for kind, byLock := range map[queue.Kind]bool{queue.NoNotify: true, queue.Try | queue.Refusable | queue.NoNotify: true, queue.Refusable: false, queue.Try | queue.Refusable: false} {
		bothModes(t, func(x *fixture) {
			a := x.own(kind, 7, 5)
			check := func(owner uint64, wantOwned, wantByLock bool) {
				x.t.Helper()
				if owned, by := x.s.OwnedBy(owner); owned != wantOwned || by != wantByLock {
					x.t.Fatalf("%v: OwnedBy(%d) = %v, %v", kind, owner, owned, by)
				}
			}
			check(7, true, byLock)
			check(8, false, false)
			check(0, false, false)
			x.mustExit(a.w.Stay, queue.HandOff, queue.Final, queue.GiveBack)
			check(7, false, false)
			check(0, false, false)
		})
	}
}

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
