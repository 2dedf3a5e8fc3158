package queue_test

import (
	"testing"

	"github.com/anteroom/anteroom/queue"
)

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
