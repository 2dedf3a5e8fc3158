package queue_test

import (
	"testing"

	"github.com/anteroom/anteroom/queue"
)

// Two waiters have been woken: the heir of a grant, and one that was given back and is now before it. Whichever looks
// first, only the head takes (I5).
func TestQueue_I5_OnlyTheHeadTakes(t *testing.T) {
	bothModes(t, func(x *fixture) {
		a := x.own(queue.Refusable, 1, 1)
		b := x.line(queue.Refusable, 2)
		x.mustLose(1, queue.Owned, queue.StartAttempt)
		x.s.Granted(2)
		must(x, "GiveBack", x.s.GiveBack(a.w), queue.Nothing)
		b.wait().mustWait()
		x.mustBe(queue.Granted, 0, 0, 2)
		a.wait().mustBeIn()
		b.mustWait()
		x.drain()
		b.mustBeIn()
	})
}

// A driver that was recalled finds a new waiter and continues.
func TestQueue_I2_AbandonOnlyWhenNobodyWaits(t *testing.T) {
	bothModes(t, func(x *fixture) {
		a := x.park(queue.Refusable, 1)
		must(x, "Abandon", x.s.Abandon(), false)
		x.mustBe(queue.Acquiring, 0, 0, 1)
		a.giveUp()
		a.mustHaveLeft(errGiveUp, queue.RecallAttempt)
		b := x.park(queue.Refusable, 2)
		must(x, "Abandon after the recall", x.s.Abandon(), false)
		must(x, "Granted", x.s.Granted(1), queue.Nothing)
		b.mustBeIn()
		x.drain()
	})
}
