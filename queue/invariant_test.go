package queue_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/queue"
)

func TestQueue_I1_FreeMeansNobodyAndNothing(t *testing.T) {
	bothModes(t, func(x *fixture) {
		mustBeNothing := func(way string) {
			t.Helper()
			must(x, way, x.s.Current(), queue.Tenure{})
			must(x, way+": queued", x.s.Len(), 0)
			must(x, way+": word", x.s.Word(), queue.Word(0))
		}
		mustBeNothing("new")
		a := x.own(queue.Deaf, 1, 1)
		x.s.Exit(a.w.Number, true)
		x.s.Released()
		mustBeNothing("released")
		x.own(queue.Refusable, 1, 2)
		x.s.Lose(2)
		mustBeNothing("lost by a hold")
		a = x.own(queue.Deaf, 1, 3)
		x.s.Lose(3)
		x.s.Exit(a.w.Number, true)
		mustBeNothing("lost by a lock")
		a = x.park(queue.Refusable, 1)
		a.giveUp()
		x.s.Abandon()
		mustBeNothing("abandoned")
	})
}

// Of waiters that enter in any state, only the one that makes the state Acquiring is ordered to start an attempt.
func TestQueue_I2_OneOrderPerNeed(t *testing.T) {
	bothModes(t, func(x *fixture) {
		must(x, "first", x.park(queue.Deaf, 1).order, queue.StartAttempt)
		must(x, "while Acquiring", x.park(queue.Deaf, 2).order, queue.Nothing)
		x.s.Granted(1)
		synctest.Wait()
		must(x, "while Owned", x.park(queue.Deaf, 3).order, queue.Nothing)
		x.mustExit(x.s.Current().Number, false, queue.Final, queue.SendRelease)
		must(x, "while Releasing", x.park(queue.Deaf, 4).order, queue.Nothing)
		x.mustLose(1, queue.Free, queue.Nothing)
		must(x, "Released", x.s.Released(), queue.StartAttempt)
		must(x, "Abandon", x.s.Abandon(), false)
		x.s.Granted(2)
		synctest.Wait()
		x.mustLose(2, queue.Lost, queue.Nothing)
		must(x, "while Lost", x.park(queue.Deaf, 5).order, queue.Nothing)
		x.mustExit(x.s.Current().Number, true, queue.WasLost, queue.StartAttempt)
		x.drain()
	})
}

func TestQueue_I3_LeavesTheQueueOnce(t *testing.T) {
	bothModes(t, func(x *fixture) {
		x.own(queue.Refusable, 1, 1)
		var parties []*party
		for owner := range uint64(5) {
			parties = append(parties, x.park(queue.Refusable, owner+2))
		}
		// Head, tail and middle are cancelled; a second end of the context and a failure after it change nothing.
		for i, leaver := range []int{0, 4, 2} {
			parties[leaver].giveUp()
			parties[leaver].mustHaveLeft(errGiveUp, queue.Nothing)
			parties[leaver].giveUp()
			must(x, "waiting", x.s.Len(), 4-i)
		}
		var order []uint64
		for _, info := range x.s.Waiting() {
			order = append(order, info.Owner)
		}
		if len(order) != 2 || order[0] != 3 || order[1] != 5 {
			t.Fatalf("who is left: %v, want 3 and 5", order)
		}
		x.s.Exit(x.s.Current().Number, true)
		parties[1].mustBeIn()
		must(x, "Fail", x.s.Fail(errClosed), queue.Nothing)
		parties[3].mustHaveLeft(errClosed, queue.Nothing)
		parties[1].mustBeIn()
		must(x, "waiting", x.s.Len(), 0)
		x.drain()
	})
}

// A woken heir that is cancelled passes its wake-up on: to the next waiter, or back to Redis.
func TestQueue_I4_AnHeirThatLeavesPassesTheGrantOn(t *testing.T) {
	bothModes(t, func(x *fixture) {
		a := x.own(queue.Deaf, 1, 1)
		heir, next := x.line(queue.Refusable, 2), x.park(queue.Refusable, 3)
		x.mustExit(a.w.Number, true, queue.HandedOff, queue.Nothing)
		heir.cancel(errGiveUp)
		heir.wait().mustHaveLeft(errGiveUp, queue.Nothing)
		next.mustBeIn()
		must(x, "hand-offs", next.w.HandOffs, 1)

		last := x.line(queue.Refusable, 4)
		x.mustExit(next.w.Number, true, queue.HandedOff, queue.Nothing)
		last.cancel(errGiveUp)
		last.wait().mustHaveLeft(errGiveUp, queue.SendRelease)
		x.mustBe(queue.Releasing, 0, 2, 0)
		must(x, "Released", x.s.Released(), queue.Nothing)
	})
}

// A waiter behind the heir that is cancelled while the grant waits does not disturb it.
func TestQueue_I4_AnotherThanTheHeirLeaves(t *testing.T) {
	bothModes(t, func(x *fixture) {
		a := x.own(queue.Deaf, 1, 1)
		heir, middle, tail := x.line(queue.Refusable, 2), x.park(queue.Refusable, 3), x.park(queue.Refusable, 4)
		x.s.Exit(a.w.Number, true)
		middle.giveUp()
		middle.mustHaveLeft(errGiveUp, queue.Nothing)
		tail.giveUp()
		tail.mustHaveLeft(errGiveUp, queue.Nothing)
		heir.wait().mustBeIn()
		x.drain()
	})
}

// A wake-up that arrives between Enter and Wait is there when Wait begins.
func TestQueue_I4_WokenBeforeWait(t *testing.T) {
	bothModes(t, func(x *fixture) {
		p := x.line(queue.Deaf, 1)
		x.s.Granted(1)
		p.wait().mustBeIn()
		x.drain()
	})
}

// Two wake-ups of which the first was not looked at are one, and the newest state counts.
func TestQueue_I4_WokenTwice(t *testing.T) {
	bothModes(t, func(x *fixture) {
		p := x.line(queue.Refusable, 1)
		for grant := range uint64(3) {
			x.s.Granted(grant + 1)
			x.mustLose(grant+1, queue.Granted, queue.StartAttempt)
		}
		p.wait().mustWait()
		x.s.Granted(4)
		p.mustBeIn()
		must(x, "grant", p.w.Grant, 4)
		x.drain()
	})
}

func TestQueue_I5_FairNeverPassesAParkedWaiter(t *testing.T) {
	inBubble(t, true, func(x *fixture) {
		a := x.own(queue.Deaf, 1, 1)
		first := x.line(queue.Deaf, 2)
		x.s.Exit(a.w.Number, true)
		x.mustBe(queue.Granted, 0, 1, 1)
		newcomer := x.park(queue.Deaf, 3)
		must(x, "Try", x.enter(queue.Try|queue.Refusable, 4).entered(), "refused")
		must(x, "TryLock", x.enter(queue.Try|queue.Refusable|queue.Deaf, 5).entered(), "refused")
		first.wait().mustBeIn()
		newcomer.mustWait()
		x.drain()
		newcomer.mustBeIn()
	})
}

func TestQueue_I5_FairAdmitsInOrderOfArrival(t *testing.T) {
	inBubble(t, true, func(x *fixture) {
		owner := x.own(queue.Deaf, 1, 1)
		var parties []*party
		for id := range uint64(100) {
			parties = append(parties, x.park([]queue.Kind{queue.Refusable, queue.Deaf}[id%2], id+2))
		}
		for i, p := range parties {
			x.s.Exit(owner.w.Number, true)
			p.mustBeIn()
			if i+1 < len(parties) {
				parties[i+1].mustWait()
			}
			owner = p
		}
		x.drain()
	})
}

// A newcomer that could not use the grant leaves it to the one that was woken for it.
func TestQueue_I6_WhoCanNotUseTheGrantDoesNotPass(t *testing.T) {
	inBubble(t, false, func(x *fixture) {
		a := x.own(queue.Deaf, 1, 1)
		head := x.line(queue.Deaf, 2)
		x.mustExit(a.w.Number, true, queue.HandedOff, queue.Nothing)
		try := x.enterAs(&queue.Waiter{NoBarge: true}, queue.Try|queue.Refusable, 3)
		must(x, "Try", try.entered(), "refused")
		newcomer := x.enterAs(&queue.Waiter{NoBarge: true}, queue.Deaf, 4)
		must(x, "Enter", newcomer.entered(), "queued")
		head.wait().mustBeIn()
		newcomer.wait().mustWait()
		x.drain()
		newcomer.mustBeIn()
	})
}

func TestQueue_I6_NonFairNewcomerMayPass(t *testing.T) {
	inBubble(t, false, func(x *fixture) {
		a := x.own(queue.Deaf, 1, 1)
		head := x.line(queue.Deaf, 2)
		for id, kind := range []queue.Kind{queue.Deaf, queue.Refusable, queue.Try | queue.Refusable, queue.Try | queue.Refusable | queue.Deaf} {
			x.mustExit(a.w.Number, true, queue.HandedOff, queue.Nothing)
			a = x.enter(kind, uint64(id+3))
			must(x, "Enter", a.entered(), "in")
			must(x, "order", a.order, queue.Nothing)
			must(x, "hand-offs", a.w.HandOffs, id+1)
		}
		head.wait().mustWait()
		x.mustExit(a.w.Number, true, queue.HandedOff, queue.Nothing)
		head.mustBeIn()
		x.drain()
	})
}

// starve returns a head that was woken in vain after waiting for d, and the owner that passed it.
func (x *fixture) starve(d time.Duration) (head, owner *party) {
	x.t.Helper()
	a := x.own(queue.Deaf, 1, 1)
	head = x.line(queue.Refusable, 2)
	time.Sleep(d)
	x.s.Exit(a.w.Number, true)
	owner = x.enter(queue.Deaf, 3)
	must(x, "Enter", owner.entered(), "in")
	head.wait().mustWait()
	return head, owner
}

// The head runs as soon as it is woken, so a newcomer mostly, but not always, meets the moment at which only the rule
// keeps it out. On either side of that moment the result must be the same; the rounds make it certain that the moment
// occurred.
func TestQueue_I6_PassedForTooLongGetsTheNext(t *testing.T) {
	inBubble(t, false, func(x *fixture) {
		for range 50 {
			head, owner := x.starve(queue.StarvationThreshold + 1)
			x.mustExit(owner.w.Number, true, queue.HandedOff, queue.Nothing)
			must(x, "Try past an owed head", x.enter(queue.Try|queue.Refusable, 4).entered(), "refused")
			late := x.line(queue.Deaf, 5)
			head.mustBeIn()

			// The privilege is used up: while late has not looked, a newcomer may pass again.
			x.mustExit(head.w.Number, true, queue.HandedOff, queue.Nothing)
			must(x, "Enter", x.enter(queue.Deaf, 6).entered(), "in")
			late.wait()
			x.drain()
			late.mustBeIn()
		}
	})
}

// The threshold itself is not past it. The privilege leaves the queue with its waiter, and ends when the waiter is
// admitted.
func TestQueue_I6_WhenTheNextIsNotOwed(t *testing.T) {
	inBubble(t, false, func(x *fixture) {
		// The place of a given-back owner tells whether the head is owed the next grant: behind it if so.
		_, owner := x.starve(queue.StarvationThreshold)
		x.s.GiveBack(owner.w)
		must(x, "first", x.s.Waiting()[0].Owner, owner.w.Owner)
		owner.wait()
		x.drain()
	})
	inBubble(t, false, func(x *fixture) {
		head, owner := x.starve(time.Second)
		fresh := x.line(queue.Deaf, 4)
		head.giveUp()
		x.s.Exit(owner.w.Number, true)
		must(x, "Enter after the owed head left", x.enter(queue.Deaf, 5).entered(), "in")
		fresh.wait()
		x.drain()
	})
	inBubble(t, false, func(x *fixture) {
		// The admission ends it, even if the waiter gives the admission back.
		head, owner := x.starve(time.Second)
		x.s.Exit(owner.w.Number, true)
		head.mustBeIn()
		x.s.GiveBack(head.w)
		x.s.Granted(2)
		must(x, "Enter", x.enter(queue.Deaf, 4).entered(), "in")
		head.wait()
		x.drain()
	})
}

// The next one may be a grant instead of a hand-off.
func TestQueue_I6_OwedAcrossRedis(t *testing.T) {
	inBubble(t, false, func(x *fixture) {
		head, owner := x.starve(time.Second)
		x.mustExit(owner.w.Number, false, queue.Final, queue.SendRelease)
		x.s.Released()
		x.s.Granted(2)
		late := x.line(queue.Deaf, 4)
		head.mustBeIn()
		late.wait()
		x.drain()
	})
}

// A given-back barger goes behind a head that is owed the next one.
func TestQueue_I6_GiveBackStaysBehindAnOwedHead(t *testing.T) {
	inBubble(t, false, func(x *fixture) {
		head, barger := x.starve(time.Second)
		must(x, "GiveBack", x.s.GiveBack(barger.w), queue.StartAttempt)
		barger.wait()
		x.s.Granted(2)
		head.mustBeIn()
		barger.mustWait()
		x.drain()
		barger.mustBeIn()
	})
}

func TestQueue_I7_AnEndedTenureNeverExits(t *testing.T) {
	bothModes(t, func(x *fixture) {
		x.mustExit(0, true, queue.Stale, queue.Nothing)
		a, b := x.own(queue.Deaf, 1, 1), x.park(queue.Deaf, 2)
		x.mustExit(a.w.Number, true, queue.HandedOff, queue.Nothing)
		x.mustExit(a.w.Number, true, queue.Stale, queue.Nothing)
		b.mustBeIn()
		x.mustExit(a.w.Number, true, queue.Stale, queue.Nothing)
		x.mustExit(b.w.Number+1, true, queue.Stale, queue.Nothing)
		x.mustExit(0, true, queue.Stale, queue.Nothing)
		x.mustBe(queue.Owned, 1, 1, 0)
		x.mustExit(b.w.Number, true, queue.Final, queue.SendRelease)
		x.mustExit(b.w.Number, true, queue.Stale, queue.Nothing)
		x.s.Released()
		x.mustExit(b.w.Number, true, queue.Stale, queue.Nothing)
		x.mustBe(queue.Free, 0, 0, 0)
	})
}

func TestQueue_I8_HandOffAndLossExcludeEachOther(t *testing.T) {
	bothModes(t, func(x *fixture) {
		// Lost first: the exit hands nothing off.
		a, b := x.own(queue.Deaf, 1, 1), x.park(queue.Deaf, 2)
		x.mustLose(1, queue.Lost, queue.Nothing)
		x.mustExit(a.w.Number, true, queue.WasLost, queue.StartAttempt)
		b.mustWait()
		x.drain()
		// Handed off first: the loss finds the grant without an owner, and the heir does not get what is gone.
		c, d := x.own(queue.Deaf, 3, 2), x.line(queue.Deaf, 4)
		x.mustExit(c.w.Number, true, queue.HandedOff, queue.Nothing)
		x.mustLose(2, queue.Granted, queue.StartAttempt)
		d.wait().mustWait()
		x.s.Granted(3)
		d.mustBeIn()
		must(x, "grant", d.w.Grant, 3)
		must(x, "hand-offs", d.w.HandOffs, 0)
		x.drain()
	})
}

func TestQueue_I9_CountStaysInItsBits(t *testing.T) {
	bothModes(t, func(x *fixture) {
		a := x.own(queue.Deaf, 1, 1)
		for range queue.MaxCount - 1 {
			must(x, "ReenterTenure", x.s.ReenterTenure(a.w.Number), nil)
		}
		must(x, "ReenterTenure", x.s.ReenterTenure(a.w.Number), queue.ErrCountLimit)
		_, r := x.s.ReenterOwner(1, false)
		must(x, "ReenterOwner", r, queue.ErrCountLimit)
		x.mustBe(queue.Owned, queue.MaxCount, 0, 0)
		x.s.Lose(1)
		_, r = x.s.ReenterOwner(1, true)
		must(x, "ReenterOwner when lost", r, queue.ErrCountLimit)
		x.mustBe(queue.Lost, queue.MaxCount, 0, 0)
		for range queue.MaxCount - 1 {
			x.mustExit(a.w.Number, true, queue.Nested, queue.Nothing)
		}
		x.mustExit(a.w.Number, true, queue.WasLost, queue.Nothing)
		x.mustBe(queue.Free, 0, 0, 0)
	})
}

func TestQueue_I10_HandOffsStayInTheirBits(t *testing.T) {
	inBubble(t, false, func(x *fixture) {
		a := x.own(queue.Deaf, 1, 1)
		head := x.line(queue.Deaf, 2) // never looks, so every newcomer barges
		tenure := a.w.Number
		for i := range queue.MaxHandOffs {
			x.mustExit(tenure, true, queue.HandedOff, queue.Nothing)
			w := &queue.Waiter{}
			in, _, _ := x.s.Enter(w)
			must(x, "Enter", in, true)
			must(x, "hand-offs", w.HandOffs, i+1)
			tenure = w.Number
		}
		x.mustBe(queue.Owned, 1, queue.MaxHandOffs, 1)
		x.mustExit(tenure, true, queue.Final, queue.SendRelease)
		x.mustBe(queue.Releasing, 0, queue.MaxHandOffs, 1)
		head.wait()
		x.drain()
	})
}

func TestQueue_I11_ALostLockAdmitsNoSuccessor(t *testing.T) {
	bothModes(t, func(x *fixture) {
		a, b := x.own(queue.Deaf, 1, 1), x.park(queue.Refusable, 2)
		x.s.ReenterOwner(1, false)
		x.mustLose(1, queue.Lost, queue.Nothing)
		newcomer := x.park(queue.Deaf, 3)
		must(x, "Try", x.enter(queue.Try|queue.Refusable, 4).entered(), "refused")
		x.mustExit(a.w.Number, true, queue.Nested, queue.Nothing)
		b.mustWait()
		newcomer.mustWait()
		x.mustBe(queue.Lost, 1, 0, 2)
		x.mustExit(a.w.Number, true, queue.WasLost, queue.StartAttempt)
		x.s.Granted(2)
		b.mustBeIn()
		x.drain()
	})
}

func TestQueue_I12_TryNeverWaitsForAnOwner(t *testing.T) {
	bothModes(t, func(x *fixture) {
		first, second, third := x.park(queue.Try|queue.Refusable, 1), x.park(queue.Try|queue.Refusable|queue.Deaf, 2), x.park(queue.Try|queue.Refusable, 3)
		must(x, "order", first.order, queue.StartAttempt)
		lock := x.park(queue.Deaf, 4)
		must(x, "Try behind a patient waiter", x.enter(queue.Try|queue.Refusable, 5).entered(), "refused")
		x.s.Granted(1)
		first.mustBeIn()
		second.mustHaveLeft(queue.ErrRefused, queue.Nothing)
		third.mustHaveLeft(queue.ErrRefused, queue.Nothing)
		lock.mustWait()
		must(x, "Try behind an owner", x.enter(queue.Try|queue.Refusable|queue.Deaf, 6).entered(), "refused")
		x.drain()

		// It may share the attempt that follows a release under way.
		a := x.own(queue.Deaf, 1, 2)
		x.s.Exit(a.w.Number, true)
		try := x.park(queue.Try|queue.Refusable|queue.Deaf, 7)
		must(x, "Released", x.s.Released(), queue.StartAttempt)
		x.s.Granted(3)
		try.mustBeIn()
		x.drain()
	})
}

// A Try kind that enters when the driver has had its refusal, or has lost its last waiter, gets an answer of its own:
// the driver is recalled, whichever of its steps comes next.
func TestQueue_I12_ATryThatComesBeforeAbandonIsAnswered(t *testing.T) {
	bothModes(t, func(x *fixture) {
		first := x.park(queue.Try|queue.Refusable, 1)
		x.s.Refused()
		first.mustHaveLeft(queue.ErrRefused, queue.Nothing)
		second := x.park(queue.Try|queue.Refusable|queue.Deaf, 2)
		must(x, "after Refused", second.order, queue.RecallAttempt)
		must(x, "one that shares it", x.park(queue.Try|queue.Refusable, 3).order, queue.Nothing)
		must(x, "Abandon", x.s.Abandon(), false)
		x.s.Refused()
		second.mustHaveLeft(queue.ErrRefused, queue.Nothing)

		patient := x.park(queue.Refusable, 4)
		must(x, "a patient one", patient.order, queue.Nothing)
		patient.giveUp()
		patient.mustHaveLeft(errGiveUp, queue.RecallAttempt)
		must(x, "after the last left", x.park(queue.Try|queue.Refusable, 5).order, queue.RecallAttempt)
		x.drain()

		try := x.own(queue.Try|queue.Refusable, 6, 1)
		patient = x.park(queue.Refusable, 7)
		x.mustLose(1, queue.Owned, queue.StartAttempt)
		x.s.Refused()
		must(x, "given back to a driver that waits", x.s.GiveBack(try.w), queue.RecallAttempt)
		x.s.Refused()
		try.wait().mustHaveLeft(queue.ErrRefused, queue.Nothing)
		patient.mustWait()
		x.drain()
	})
}

// A given-back Try kind whose grant was lost fails where it would have to wait for the next owner.
func TestQueue_I12_GiveBackOfATry(t *testing.T) {
	bothModes(t, func(x *fixture) {
		try := x.own(queue.Try|queue.Refusable, 1, 1)
		x.mustLose(1, queue.Owned, queue.Nothing)
		other := x.own(queue.Deaf, 2, 2)
		must(x, "GiveBack", x.s.GiveBack(try.w), queue.Nothing)
		try.wait().mustHaveLeft(queue.ErrRefused, queue.Nothing)
		x.mustBe(queue.Owned, 1, 0, 0)
		x.s.Exit(other.w.Number, true)
		x.s.Released()

		try = x.own(queue.Try|queue.Refusable, 3, 3)
		must(x, "GiveBack of the current", x.s.GiveBack(try.w), queue.StartAttempt)
		x.s.Refused()
		try.wait().mustHaveLeft(queue.ErrRefused, queue.Nothing)
		must(x, "Abandon", x.s.Abandon(), true)
	})
}

func TestQueue_I13_AnEndedContextNeverComesIn(t *testing.T) {
	bothModes(t, func(x *fixture) {
		// Cancelled before Wait, granted before Wait: both are ready, a hundred times, and the rule is the same each
		// time.
		for grant := range uint64(100) {
			p := x.line(queue.Refusable, 1)
			x.s.Granted(grant + 1)
			p.cancel(errGiveUp)
			p.wait().mustHaveLeft(errGiveUp, queue.SendRelease)
			must(x, "Released", x.s.Released(), queue.Nothing)
		}
		// The cause is returned; for a deadline it is the context package's own.
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		w, began := &queue.Waiter{}, time.Now()
		x.s.Enter(w)
		order, err := x.s.Wait(ctx, w)
		if order != queue.RecallAttempt || !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Minute {
			t.Fatalf("order=%v err=%v after %v", order, err, time.Since(began))
		}
		must(x, "Abandon", x.s.Abandon(), true)
		// A failure that was decided first is returned.
		p := x.line(queue.Refusable, 2)
		x.s.Fail(errClosed)
		p.cancel(errGiveUp)
		p.wait().mustHaveLeft(errClosed, queue.Nothing)
		must(x, "Abandon", x.s.Abandon(), true)
	})
}

// The state at that moment decides the effect of a cancellation, in every state.
func TestQueue_LeavingInEachState(t *testing.T) {
	bothModes(t, func(x *fixture) {
		leave := func(state queue.State, want queue.Order) {
			t.Helper()
			p := x.park(queue.Refusable, 9)
			must(x, "state", x.s.Word().State(), state)
			p.giveUp()
			p.mustHaveLeft(errGiveUp, want)
		}
		lock := x.park(queue.Deaf, 1)
		leave(queue.Acquiring, queue.Nothing)
		x.s.Granted(1)
		lock.mustBeIn()
		leave(queue.Owned, queue.Nothing)
		x.s.Lose(1)
		leave(queue.Lost, queue.Nothing)
		x.s.Exit(lock.w.Number, true)
		x.mustBe(queue.Free, 0, 0, 0)
		lock = x.own(queue.Deaf, 1, 2)
		x.s.Exit(lock.w.Number, true)
		leave(queue.Releasing, queue.Nothing)
		x.s.Released()
		p := x.park(queue.Refusable, 2)
		p.giveUp()
		p.mustHaveLeft(errGiveUp, queue.RecallAttempt)
		leave(queue.Acquiring, queue.RecallAttempt)
		must(x, "Abandon", x.s.Abandon(), true)
	})
}
