package queue_test

import (
	"testing"

	"github.com/anteroom/anteroom/queue"
)

// of is asks for one that counts with that capacity of a Semaphore.
func (x *fixture) of(capacity int64, need int32, kind queue.Kind) *party {
	x.ids++
	return x.enterAs(&queue.Waiter{Stay: &queue.Stay{Need: need, Kind: kind, Goroutine: x.ids}, Of: capacity})
}

// mustCount checks the capacities that are to be stated.
func (x *fixture) mustCount(keepOf, wantOf int64) {
	x.t.Helper()
	if d := x.s.Demand(); d.KeepOf != keepOf || d.WantOf != wantOf {
		x.t.Fatalf("keep of %d, want of %d: must be %d and %d; %+v", d.KeepOf, d.WantOf, keepOf, wantOf, d)
	}
}

// giveOf is give of units that count with that capacity.
func (x *fixture) giveOf(capacity, units int64) {
	x.t.Helper()
	must(x, "CountsWith", x.s.CountsWith(capacity), true)
	x.give(units)
}

// Permits that are released by another Weighted than has acquired them are never those of a Hold.
func TestCapacity_ReleasedPermitsAreNobodyElses(t *testing.T) {
	inGate(t, 0, true, func(x *fixture) {
		x.of(3, 1, hold).mustBe("queued").wait()
		x.giveOf(3, 3)
		x.of(5, 2, lock).mustBe("in")
		x.s.ReleaseShared(0, 1, 3) // one of the two, of which none counts with 3
		x.mustCount(3, 3)
	})
	inGate(t, 0, true, func(x *fixture) {
		x.of(5, 2, hold).mustBe("queued").wait()
		x.giveOf(3, 3)
		x.of(3, 1, lock).mustBe("in")
		x.mustCount(3, 3)
		x.s.ReleaseShared(0, 1, 5)
		x.mustCount(5, 5)
	})
}

// A loss ends what those count who can be notified of it, and nothing else.
func TestCapacity_ALossEndsWhatHoldsCount(t *testing.T) {
	inGate(t, 0, true, func(x *fixture) {
		x.of(5, 1, hold).mustBe("queued").wait()
		x.giveOf(3, 3)
		x.of(3, 1, hold).mustBe("in")
		x.of(5, 1, lock).mustBe("in")
		x.mustCount(3, 3)
		x.s.LoseAll()
		x.s.ReleaseShared(0, 1, 5)
		w := x.of(5, 5, hold).mustBe("queued").wait()
		x.mustCount(5, 5)
		x.giveOf(5, 5)
		w.mustBeIn()
		x.mustCount(5, 5)
	})
}

// What an earlier grant counted with says nothing of units that have gone back.
func TestCapacity_WhatHasGoneBackCountsWithNothing(t *testing.T) {
	for name, goes := range map[string]func(x *fixture, w *party){
		"given back": func(x *fixture, w *party) { x.s.Exit(w.w); x.s.Shrink(0) },
		"lost":       func(x *fixture, _ *party) { x.s.LoseAll() },
	} {
		t.Run(name, func(t *testing.T) {
			inGate(t, 0, true, func(x *fixture) {
				w := x.of(5, 2, hold).mustBe("queued").wait()
				x.giveOf(5, 2)
				w.mustBeIn()
				goes(x, w)
				x.of(3, 1, hold).mustBe("queued")
				x.mustCount(3, 3)
			})
		})
	}
}

// Who counts with less needs units anew. What nobody uses does not wait in line with it: others may use that.
func TestCapacity_UnusedUnitsAreNotKeptForLess(t *testing.T) {
	inGate(t, 0, true, func(x *fixture) {
		w := x.of(5, 1, hold).mustBe("queued").wait()
		x.giveOf(5, 4)
		w.mustBeIn()
		v := x.of(3, 1, hold).mustBe("queued").wait()
		x.mustCount(5, 3)
		x.mustState(1, 2)
		must(x, "Shrink", x.s.Shrink(1), true)
		x.giveOf(3, 2)
		v.mustBeIn()
		x.mustCount(3, 3)
	})
}

// Nobody comes in by units that count with more than it does, and none of those inside are too many for it.
func TestCapacity_WhoFitsComesIn(t *testing.T) {
	inGate(t, 0, true, func(x *fixture) {
		w := x.of(5, 2, hold).mustBe("queued").wait()
		x.giveOf(5, 5)
		w.mustBeIn()
		small := x.of(3, 2, hold).mustBe("queued")
		must(x, "beside two", x.s.Demand().Barred, true)
		x.mustCount(5, 5)
		small.wait().giveUp()
		must(x, "barred", x.s.Demand().Barred, false)
		small = x.of(3, 1, hold).mustBe("queued").wait()
		behind := x.of(5, 1, hold).mustBe("queued").wait()
		must(x, "more than somebody inside counts with", x.s.CountsWith(6), false)
		x.giveOf(3, 3)
		small.mustBeIn()
		behind.mustWait()
		must(x, "barred", x.s.Demand().Barred, true)
		must(x, "more than somebody inside counts with", x.s.CountsWith(5), false)
		must(x, "order", x.s.Exit(small.w), queue.Restate)
		behind.mustBeIn()
		x.mustCount(5, 5)
	})
}
