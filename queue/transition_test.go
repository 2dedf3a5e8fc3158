package queue_test

import (
	"errors"
	"testing"

	"github.com/anteroom/anteroom/queue"
)

func TestQueue_OneTurnFromFreeToFree(t *testing.T) {
	bothModes(t, func(x *fixture) {
		x.mustBe(queue.Free, 0, 0, 0)
		p := x.park(queue.Refusable, 7)
		must(x, "order", p.order, queue.StartAttempt)
		x.mustBe(queue.Acquiring, 0, 0, 1)
		must(x, "order", x.s.Granted(42), queue.Nothing)
		p.mustBeIn()
		x.mustBe(queue.Owned, 1, 0, 0)
		if p.w.Grant != 42 || p.w.Number == 0 || p.w.HandOffs != 0 {
			t.Fatalf("waiter: grant=%d tenure=%d handoffs=%d", p.w.Grant, p.w.Number, p.w.HandOffs)
		}
		want := queue.Tenure{State: queue.Owned, Number: p.w.Number, Grant: 42, Owner: 7, Kind: queue.Refusable, Count: 1}
		must(x, "Current", x.s.Current(), want)
		x.mustExit(p.w.Number, true, queue.Final, queue.SendRelease)
		x.mustBe(queue.Releasing, 0, 0, 0)
		must(x, "Grant while Releasing", x.s.Current().Grant, 42)
		must(x, "Released", x.s.Released(), queue.Nothing)
		must(x, "Current", x.s.Current(), queue.Tenure{})
	})
}

func TestQueue_HandOffCountsAndNumbers(t *testing.T) {
	bothModes(t, func(x *fixture) {
		a := x.own(queue.Deaf, 1, 5)
		b := x.line(queue.Refusable, 2)
		c := x.park(queue.Deaf, 3)
		must(x, "Enter's order", b.order, queue.Nothing)
		x.mustExit(a.w.Number, true, queue.HandedOff, queue.Nothing)
		x.mustBe(queue.Granted, 0, 1, 2)
		b.wait().mustBeIn()
		must(x, "hand-offs of the second", b.w.HandOffs, 1)
		x.mustExit(b.w.Number, true, queue.HandedOff, queue.Nothing)
		c.mustBeIn()
		must(x, "hand-offs of the third", c.w.HandOffs, 2)
		if !(a.w.Number < b.w.Number && b.w.Number < c.w.Number) || b.w.Grant != 5 || c.w.Grant != 5 {
			t.Fatalf("tenures %d %d %d, grants %d %d", a.w.Number, b.w.Number, c.w.Number, b.w.Grant, c.w.Grant)
		}
		x.drain()
	})
}

func TestQueue_ExitThatMayNotHandOffReleasesAndStartsAgain(t *testing.T) {
	bothModes(t, func(x *fixture) {
		a, b := x.own(queue.Deaf, 1, 1), x.park(queue.Deaf, 2)
		x.mustExit(a.w.Number, false, queue.Final, queue.SendRelease)
		b.mustWait()
		x.mustBe(queue.Releasing, 0, 0, 1)
		must(x, "Released", x.s.Released(), queue.StartAttempt)
		x.mustBe(queue.Acquiring, 0, 0, 1)
		must(x, "Granted", x.s.Granted(2), queue.Nothing)
		b.mustBeIn()
		must(x, "grant", b.w.Grant, 2)
		x.drain()
	})
}

func TestQueue_ResumedStartsTheBudgetAnew(t *testing.T) {
	bothModes(t, func(x *fixture) {
		a, b, c := x.own(queue.Deaf, 1, 1), x.park(queue.Deaf, 2), x.park(queue.Deaf, 3)
		x.mustExit(a.w.Number, true, queue.HandedOff, queue.Nothing)
		b.mustBeIn()
		x.mustExit(b.w.Number, false, queue.Final, queue.SendRelease)
		x.mustBe(queue.Releasing, 0, 1, 1)
		must(x, "Resumed", x.s.Resumed(), queue.Nothing)
		c.mustBeIn()
		x.mustBe(queue.Owned, 1, 0, 0)
		if c.w.Grant != 1 || c.w.HandOffs != 0 {
			t.Fatalf("grant=%d handoffs=%d", c.w.Grant, c.w.HandOffs)
		}
		x.drain()
	})
}

func TestQueue_ResumedWithoutWaitersReleases(t *testing.T) {
	bothModes(t, func(x *fixture) {
		a, b := x.own(queue.Deaf, 1, 1), x.park(queue.Refusable, 2)
		x.mustExit(a.w.Number, false, queue.Final, queue.SendRelease)
		b.giveUp()
		b.mustHaveLeft(errGiveUp, queue.Nothing)
		must(x, "Resumed", x.s.Resumed(), queue.SendRelease)
		x.mustBe(queue.Releasing, 0, 0, 0)
		must(x, "Released", x.s.Released(), queue.Nothing)
		x.mustBe(queue.Free, 0, 0, 0)
	})
}

func TestQueue_RefusedFailsOnlyTryKinds(t *testing.T) {
	bothModes(t, func(x *fixture) {
		first, second := x.park(queue.Try|queue.Refusable, 1), x.park(queue.Try|queue.Refusable|queue.Deaf, 2)
		lock, hold := x.park(queue.Deaf, 3), x.park(queue.Refusable, 4)
		x.s.Refused()
		first.mustHaveLeft(queue.ErrRefused, queue.Nothing)
		second.mustHaveLeft(queue.ErrRefused, queue.Nothing)
		lock.mustWait()
		hold.mustWait()
		x.mustBe(queue.Acquiring, 0, 0, 2)
		must(x, "Abandon", x.s.Abandon(), false)
		x.drain()
		lock.mustBeIn()
		hold.mustBeIn()
	})
}

func TestQueue_FailTriesFailsOnlyTryKinds(t *testing.T) {
	away := errors.New("away")
	bothModes(t, func(x *fixture) {
		a := x.park(queue.Try|queue.Refusable|queue.Deaf, 1)
		b := x.park(queue.Refusable, 2)
		x.s.FailTries(away)
		a.mustHaveLeft(away, queue.Nothing)
		b.mustWait()
		x.mustBe(queue.Acquiring, 0, 0, 1)
		x.drain()
		b.mustBeIn()
	})
}

func TestQueue_HeadNoteIsThatOfTheFirst(t *testing.T) {
	s := queue.New(true)
	if n := s.HeadNote(); n != nil {
		t.Fatalf("note %v without waiters", n)
	}
	first, second := &queue.Waiter{Note: "first"}, &queue.Waiter{Note: "second"}
	s.Enter(first)
	s.Enter(second)
	if n := s.HeadNote(); n != "first" {
		t.Fatalf("note %v", n)
	}
}

func TestQueue_RefusedOutsideAnAttemptDoesNothing(t *testing.T) {
	bothModes(t, func(x *fixture) {
		a := x.own(queue.Refusable, 1, 1)
		x.mustExit(a.w.Number, true, queue.Final, queue.SendRelease)
		try := x.park(queue.Try|queue.Refusable, 2)
		x.s.Refused()
		try.mustWait()
		must(x, "Released", x.s.Released(), queue.StartAttempt)
		x.s.Refused()
		try.mustHaveLeft(queue.ErrRefused, queue.Nothing)
		must(x, "Abandon", x.s.Abandon(), true)
	})
}

func TestQueue_RefusedThenAbandon(t *testing.T) {
	bothModes(t, func(x *fixture) {
		try := x.park(queue.Try|queue.Refusable|queue.Deaf, 1)
		x.s.Refused()
		try.mustHaveLeft(queue.ErrRefused, queue.Nothing)
		must(x, "Abandon", x.s.Abandon(), true)
		x.mustBe(queue.Free, 0, 0, 0)
		must(x, "Abandon when Free", x.s.Abandon(), false)
	})
}

func TestQueue_FailTellsAllButLock(t *testing.T) {
	bothModes(t, func(x *fixture) {
		try := x.park(queue.Try|queue.Refusable|queue.Deaf, 1)
		hold, lock := x.park(queue.Refusable, 2), x.park(queue.Deaf, 3)
		must(x, "Fail", x.s.Fail(errClosed), queue.Nothing)
		try.mustHaveLeft(errClosed, queue.Nothing)
		hold.mustHaveLeft(errClosed, queue.Nothing)
		lock.mustWait()
		x.drain()
		lock.mustBeIn()
	})
}

func TestQueue_FailOfTheLastRecallsTheAttempt(t *testing.T) {
	bothModes(t, func(x *fixture) {
		hold := x.park(queue.Refusable, 1)
		must(x, "Fail", x.s.Fail(errClosed), queue.RecallAttempt)
		hold.mustHaveLeft(errClosed, queue.Nothing)
		must(x, "second Fail", x.s.Fail(errClosed), queue.Nothing)
		must(x, "Abandon", x.s.Abandon(), true)
	})
}

func TestQueue_FailOfTheHeirPassesTheGrantOn(t *testing.T) {
	bothModes(t, func(x *fixture) {
		heir, lock := x.line(queue.Refusable, 1), x.park(queue.Deaf, 2)
		x.s.Granted(1)
		must(x, "Fail", x.s.Fail(errClosed), queue.Nothing)
		heir.wait().mustHaveLeft(errClosed, queue.Nothing)
		lock.mustBeIn()
		x.drain()

		only := x.line(queue.Refusable, 3)
		x.s.Granted(2)
		must(x, "Fail", x.s.Fail(errClosed), queue.SendRelease)
		only.wait().mustHaveLeft(errClosed, queue.Nothing)
		x.mustBe(queue.Releasing, 0, 0, 0)
		x.s.Released()
	})
}

func TestQueue_FailBehindAnOwner(t *testing.T) {
	bothModes(t, func(x *fixture) {
		x.own(queue.Refusable, 1, 1)
		hold := x.park(queue.Refusable, 2)
		must(x, "Fail", x.s.Fail(errClosed), queue.Nothing)
		hold.mustHaveLeft(errClosed, queue.Nothing)
		x.mustBe(queue.Owned, 1, 0, 0)
		x.drain()
	})
}

func TestQueue_GrantedWithoutWaitersIsReleased(t *testing.T) {
	bothModes(t, func(x *fixture) {
		p := x.park(queue.Refusable, 1)
		p.giveUp()
		p.mustHaveLeft(errGiveUp, queue.RecallAttempt)
		must(x, "Granted", x.s.Granted(1), queue.SendRelease)
		x.mustBe(queue.Releasing, 0, 0, 0)
		must(x, "Released", x.s.Released(), queue.Nothing)
	})
}

func TestQueue_AnAttemptGoesOnForTheNextWaiter(t *testing.T) {
	bothModes(t, func(x *fixture) {
		first := x.park(queue.Refusable, 1)
		first.giveUp()
		first.mustHaveLeft(errGiveUp, queue.RecallAttempt)
		second := x.park(queue.Refusable, 2)
		must(x, "order for the second", second.order, queue.Nothing)
		must(x, "Abandon", x.s.Abandon(), false)
		x.s.Granted(1)
		second.mustBeIn()
		x.drain()
	})
}

func TestQueue_LoseInEachState(t *testing.T) {
	bothModes(t, func(x *fixture) {
		x.mustLose(0, queue.Free, queue.Nothing) // Free
		p := x.line(queue.Refusable, 1)
		x.mustLose(0, queue.Free, queue.Nothing) // Acquiring
		x.s.Granted(1)
		x.mustLose(9, queue.Free, queue.Nothing) // another grant
		x.mustLose(1, queue.Granted, queue.StartAttempt)
		p.wait().mustWait()
		x.mustBe(queue.Acquiring, 0, 0, 1)
		x.s.Granted(2)
		p.mustBeIn()
		x.mustLose(1, queue.Free, queue.Nothing)
		x.mustLose(2, queue.Owned, queue.Nothing)
		must(x, "Current", x.s.Current(), queue.Tenure{})

		q := x.own(queue.Try|queue.Refusable|queue.Deaf, 2, 3)
		x.mustLose(3, queue.Lost, queue.Nothing)
		x.mustLose(3, queue.Free, queue.Nothing) // lost already
		x.mustBe(queue.Lost, 1, 0, 0)
		x.mustExit(q.w.Number, true, queue.WasLost, queue.Nothing)
		must(x, "Current", x.s.Current(), queue.Tenure{})

		r := x.own(queue.Refusable, 3, 4)
		x.mustExit(r.w.Number, true, queue.Final, queue.SendRelease)
		x.mustLose(4, queue.Free, queue.Nothing) // the release wins
		x.mustBe(queue.Releasing, 0, 0, 0)
		x.s.Released()
	})
}

func TestQueue_LossOfAHoldMovesOn(t *testing.T) {
	bothModes(t, func(x *fixture) {
		a, b := x.own(queue.Try|queue.Refusable, 1, 1), x.park(queue.Refusable, 2)
		must(x, "ReenterTenure", x.s.ReenterTenure(a.w.Number), nil)
		x.mustLose(1, queue.Owned, queue.StartAttempt)
		must(x, "ReenterTenure", x.s.ReenterTenure(a.w.Number), queue.ErrNotOwner)
		x.s.Granted(2)
		b.mustBeIn()
		x.mustExit(a.w.Number, true, queue.Stale, queue.Nothing)
		x.mustExit(a.w.Number, true, queue.Stale, queue.Nothing)
		x.mustBe(queue.Owned, 1, 0, 0)
		x.drain()
	})
}

func TestQueue_ReenterOwner(t *testing.T) {
	bothModes(t, func(x *fixture) {
		reenter := func(owner uint64, allowLost bool, number uint64, want error) {
			t.Helper()
			gotTenure, got := x.s.ReenterOwner(owner, allowLost)
			must(x, "ReenterOwner", got, want)
			must(x, "its tenure", gotTenure, number)
		}
		reenter(1, true, 0, queue.ErrNotOwner)
		a := x.own(queue.Deaf, 1, 1)
		tenure := a.w.Number
		reenter(0, true, 0, queue.ErrNotOwner)
		reenter(2, true, 0, queue.ErrNotOwner)
		reenter(1, false, tenure, nil)
		must(x, "ReenterTenure", x.s.ReenterTenure(tenure), nil)
		x.mustBe(queue.Owned, 3, 0, 0)
		x.mustExit(tenure, true, queue.Nested, queue.Nothing)
		x.mustLose(1, queue.Lost, queue.Nothing)
		reenter(1, false, tenure, queue.ErrWasLost)
		must(x, "ReenterTenure", x.s.ReenterTenure(tenure), queue.ErrWasLost)
		reenter(1, true, tenure, nil)
		x.mustBe(queue.Lost, 3, 0, 0)
		x.mustExit(tenure, true, queue.Nested, queue.Nothing)
		x.mustExit(tenure, true, queue.Nested, queue.Nothing)
		x.mustExit(tenure, true, queue.WasLost, queue.Nothing)
		reenter(1, true, 0, queue.ErrNotOwner)

		x.own(queue.Refusable, 1, 2)
		reenter(1, true, 0, queue.ErrNotOwner) // a Hold is not re-entered by its goroutine's id
		x.drain()
		x.own(queue.Deaf, 0, 3)
		reenter(0, true, 0, queue.ErrNotOwner)
		x.drain()
		must(x, "ReenterTenure of none", x.s.ReenterTenure(0), queue.ErrNotOwner)
	})
}

func TestQueue_GiveBackOfTheCurrentTenure(t *testing.T) {
	bothModes(t, func(x *fixture) {
		a, b := x.own(queue.Deaf, 1, 1), x.park(queue.Deaf, 2)
		old := a.w.Number
		must(x, "GiveBack", x.s.GiveBack(a.w), queue.StartAttempt)
		x.mustBe(queue.Acquiring, 0, 0, 2)
		x.mustLose(1, queue.Free, queue.Nothing)
		x.mustExit(old, true, queue.Stale, queue.Nothing)
		a.wait()
		a.mustWait()
		x.s.Granted(2)
		a.mustBeIn()
		b.mustWait()
		if a.w.Grant != 2 || a.w.Number <= old {
			t.Fatalf("grant=%d tenure=%d after %d", a.w.Grant, a.w.Number, old)
		}
		x.drain()
	})
}

func TestQueue_GiveBackAfterTheTenureWasLost(t *testing.T) {
	bothModes(t, func(x *fixture) {
		a := x.own(queue.Refusable, 1, 1) // lost with nobody waiting: Free
		x.mustLose(1, queue.Owned, queue.Nothing)
		must(x, "GiveBack when Free", x.s.GiveBack(a.w), queue.StartAttempt)
		x.s.Granted(2)
		a.wait().mustBeIn()

		b := x.line(queue.Refusable, 2) // lost with a waiter: Acquiring
		x.mustLose(2, queue.Owned, queue.StartAttempt)
		must(x, "GiveBack when Acquiring", x.s.GiveBack(a.w), queue.Nothing)
		x.s.Granted(3)
		a.wait().mustBeIn()

		x.mustLose(3, queue.Owned, queue.StartAttempt) // granted to the next, which has not taken it
		x.s.Granted(4)
		must(x, "GiveBack when Granted", x.s.GiveBack(a.w), queue.Nothing)
		b.wait().mustWait() // woken as heir, but no longer first
		a.wait().mustBeIn()
		b.mustWait()

		x.mustLose(4, queue.Owned, queue.StartAttempt) // owned by the next
		x.s.Granted(5)
		b.mustBeIn()
		must(x, "GiveBack when Owned", x.s.GiveBack(a.w), queue.Nothing)
		a.wait().mustWait()
		x.mustExit(b.w.Number, true, queue.HandedOff, queue.Nothing)
		a.mustBeIn()
		x.drain()

		c := x.own(queue.Deaf, 3, 6) // lost and still open: its own tenure
		x.mustLose(6, queue.Lost, queue.Nothing)
		must(x, "GiveBack when Lost", x.s.GiveBack(c.w), queue.StartAttempt)
		x.s.Granted(7)
		c.wait().mustBeIn()
		x.drain()
	})
}

func TestQueue_GiveBackWhileReleasing(t *testing.T) {
	bothModes(t, func(x *fixture) {
		a := x.own(queue.Refusable, 1, 1)
		x.mustLose(1, queue.Owned, queue.Nothing)
		b := x.own(queue.Refusable, 2, 2)
		x.mustExit(b.w.Number, true, queue.Final, queue.SendRelease)
		must(x, "GiveBack", x.s.GiveBack(a.w), queue.Nothing)
		must(x, "Released", x.s.Released(), queue.StartAttempt)
		x.s.Granted(3)
		a.wait().mustBeIn()
		x.drain()
	})
}

func TestQueue_GiveBackOfABarger(t *testing.T) {
	inBubble(t, false, func(x *fixture) {
		a, b := x.own(queue.Deaf, 1, 1), x.line(queue.Deaf, 2)
		x.s.Exit(a.w.Number, true)
		barger := x.enter(queue.Deaf, 3)
		must(x, "Enter", barger.entered(), "in")
		must(x, "GiveBack", x.s.GiveBack(barger.w), queue.StartAttempt)
		x.s.Granted(2)
		b.wait().mustWait()
		barger.wait().mustBeIn()
		b.mustWait()
		x.drain()
	})
}

func TestQueue_MisuseIsRefusedLoudly(t *testing.T) {
	mustPanic := func(t *testing.T, what string, f func()) {
		t.Helper()
		defer func() {
			if recover() == nil {
				t.Fatalf("%s did not panic", what)
			}
		}()
		f()
	}
	s := queue.New(true)
	w := &queue.Waiter{}
	mustPanic(t, "Granted while Free", func() { s.Granted(1) })
	mustPanic(t, "Released while Free", func() { s.Released() })
	mustPanic(t, "Resumed while Free", func() { s.Resumed() })
	mustPanic(t, "Fail(nil)", func() { s.Fail(nil) })
	mustPanic(t, "Wait before Enter", func() { s.Wait(t.Context(), w) })
	mustPanic(t, "GiveBack before Enter", func() { s.GiveBack(w) })
	s.Enter(w)
	mustPanic(t, "second Enter", func() { s.Enter(w) })
	mustPanic(t, "GiveBack of a queued waiter", func() { s.GiveBack(w) })
	// After each panic the lock is free and nothing has changed.
	if s.Word().State() != queue.Acquiring || s.Len() != 1 {
		t.Fatal(s)
	}
}

func TestQueue_StringsAreNames(t *testing.T) {
	seen := map[string]bool{}
	add := func(name string) {
		if name == "" || seen[name] {
			t.Errorf("the name %q is empty or used twice", name)
		}
		seen[name] = true
	}
	// One value past the last has a name too: every printed value says something.
	for v := range queue.Lost + 2 {
		add(v.String())
	}
	for v := range queue.Try | queue.Refusable | queue.Deaf + 1 {
		add(v.String())
	}
	for v := range queue.RecallAttempt + 2 {
		add(v.String())
	}
	for v := range queue.WasLost + 2 {
		add(v.String())
	}
}
