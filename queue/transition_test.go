package queue_test

import (
	"testing"
	"testing/synctest"

	"github.com/anteroom/anteroom/queue"
)

func TestQueue_OneTurnFromFreeToFree(t *testing.T) {
	bothModes(t, func(x *fixture) {
		x.mustBe(queue.Free, 0, 0, 0)
		p := x.park(queue.Refusable, 7)
		must(x, "order", p.order, queue.StartAttempt)
		x.mustBe(queue.Acquiring, 0, 0, 1)
		must(x, "Granted", x.s.Granted(42), true)
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
		a := x.own(queue.NoNotify, 1, 5)
		b := x.line(queue.Refusable, 2)
		c := x.park(queue.NoNotify, 3)
		must(x, "Enter's order", b.order, queue.Nothing)
		x.mustExit(a.w.Number, true, queue.HandedOff, queue.Nothing)
		if x.fair {
			x.mustBe(queue.Owned, 1, 1, 1)
		} else {
			x.mustBe(queue.Granted, 0, 1, 2)
		}
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
		a, b := x.own(queue.NoNotify, 1, 1), x.park(queue.NoNotify, 2)
		x.mustExit(a.w.Number, false, queue.Final, queue.SendRelease)
		b.mustWait()
		x.mustBe(queue.Releasing, 0, 0, 1)
		must(x, "Released", x.s.Released(), queue.StartAttempt)
		x.mustBe(queue.Acquiring, 0, 0, 1)
		must(x, "Granted", x.s.Granted(2), true)
		b.mustBeIn()
		must(x, "grant", b.w.Grant, 2)
		x.drain()
	})
}

func TestQueue_RefuseFailsOnlyATry(t *testing.T) {
	bothModes(t, func(x *fixture) {
		try := x.park(queue.Try|queue.NoNotify, 1)
		lock, hold := x.park(queue.NoNotify, 3), x.park(queue.Refusable, 4)
		x.s.Refuse(errRefused)
		try.mustHaveLeft(errRefused, queue.Nothing)
		x.mustBe(queue.Acquiring, 0, 0, 2)
		x.s.Refuse(errRefused)
		lock.mustWait()
		hold.mustWait()
		x.mustBe(queue.Acquiring, 0, 0, 2)
		x.drain()
		lock.mustBeIn()
		hold.mustBeIn()
		x.s.Refuse(errRefused)
		x.mustBe(queue.Free, 0, 0, 0)
	})
}

// A grant that comes when nobody wants it, or when there is another, changes nothing.
func TestQueue_GrantedIsTakenOnlyWhileAcquiring(t *testing.T) {
	bothModes(t, func(x *fixture) {
		unused := func(state queue.State) {
			t.Helper()
			before, waiting := x.s.Current(), x.s.Len()
			must(x, "state", before.State, state)
			must(x, "Granted", x.s.Granted(99), false)
			must(x, "Current", x.s.Current(), before)
			must(x, "waiting", x.s.Len(), waiting)
		}
		unused(queue.Free)
		a := x.own(queue.NoNotify, 1, 1)
		unused(queue.Owned)
		b := x.line(queue.NoNotify, 2)
		x.s.Exit(a.w.Number, true)
		if !x.fair {
			unused(queue.Granted)
		}
		b.wait().mustBeIn()
		x.s.Lose(1)
		unused(queue.Lost)
		x.s.Exit(b.w.Number, true)
		a = x.own(queue.NoNotify, 1, 2)
		x.park(queue.NoNotify, 2)
		x.s.Exit(a.w.Number, false)
		unused(queue.Releasing)
		x.drain()
	})
}

func TestQueue_FailEndsAllButLock(t *testing.T) {
	bothModes(t, func(x *fixture) {
		try := x.park(queue.Try|queue.Refusable|queue.NoNotify, 1)
		hold, lock := x.park(queue.Refusable, 2), x.park(queue.NoNotify, 3)
		must(x, "Fail", x.s.Fail(errClosed), queue.Nothing)
		try.mustHaveLeft(errClosed, queue.Nothing)
		hold.mustHaveLeft(errClosed, queue.Nothing)
		lock.mustWait()
		x.drain()
		lock.mustBeIn()
	})
}

func TestQueue_FailOfTheHeirPassesTheGrantOn(t *testing.T) {
	inBubble(t, false, func(x *fixture) {
		heir, lock := x.line(queue.Refusable, 1), x.park(queue.NoNotify, 2)
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

// The heir of a fair queue is the owner already.
func TestQueue_FailDoesNotReachAFairHeir(t *testing.T) {
	inBubble(t, true, func(x *fixture) {
		heir := x.line(queue.Refusable, 1)
		x.s.Granted(1)
		must(x, "Fail", x.s.Fail(errClosed), queue.Nothing)
		heir.wait().mustBeIn()
		x.drain()
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

func TestQueue_AnAttemptContinuesForTheNextWaiter(t *testing.T) {
	bothModes(t, func(x *fixture) {
		first, second := x.park(queue.Refusable, 1), x.park(queue.Refusable, 2)
		first.giveUp()
		first.mustHaveLeft(errGiveUp, queue.Nothing)
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
		if !x.fair {
			x.s.Granted(1)
			x.mustLose(9, queue.Free, queue.Nothing) // another grant
			x.mustLose(1, queue.Granted, queue.StartAttempt)
			x.mustLose(1, queue.Free, queue.Nothing) // lost already
			p.wait().mustWait()
			x.mustBe(queue.Acquiring, 0, 0, 1)
		} else {
			p.wait()
		}
		x.s.Granted(2)
		p.mustBeIn()
		x.mustLose(1, queue.Free, queue.Nothing)
		x.mustLose(2, queue.Owned, queue.Nothing)
		must(x, "Current", x.s.Current(), queue.Tenure{})

		q := x.own(queue.Try|queue.Refusable|queue.NoNotify, 2, 3)
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
		a := x.own(queue.NoNotify, 1, 1)
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
		x.own(queue.NoNotify, 0, 3)
		reenter(0, true, 0, queue.ErrNotOwner)
		x.drain()
		must(x, "ReenterTenure of none", x.s.ReenterTenure(0), queue.ErrNotOwner)
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
	mustPanic(t, "Released while Free", func() { s.Released() })
	mustPanic(t, "Fail(nil)", func() { s.Fail(nil) })
	mustPanic(t, "Refuse(nil)", func() { s.Refuse(nil) })
	mustPanic(t, "Wait before Enter", func() { s.Wait(t.Context(), w) })
	s.Enter(w)
	mustPanic(t, "second Enter", func() { s.Enter(w) })
	mustPanic(t, "Again of a queued waiter", w.Again)
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
	for v := range queue.Lost + 1 {
		add(v.String())
	}
	for v := range queue.Try | queue.Refusable | queue.NoNotify + 1 {
		add(v.String())
	}
	for v := range queue.SendRelease + 1 {
		add(v.String())
	}
	for v := range queue.WasLost + 1 {
		add(v.String())
	}
}

// TestQueue_I2_Keep also shows I8 and I10: the next owner takes a grant that is kept; a loss or EndLinger ends it, once.
func TestQueue_I2_Keep(t *testing.T) {
	bothModes(t, func(x *fixture) {
		a := x.own(0, 1, 1)
		must(x, "Keep by another tenure", x.s.Keep(a.w.Number+1), false)
		must(x, "Keep", x.s.Keep(a.w.Number), true)
		x.mustBe(queue.Lingers, 0, 1, 0)
		must(x, "Keep again", x.s.Keep(a.w.Number), false)
		x.mustExit(a.w.Number, true, queue.Stale, queue.Nothing)
		b := x.enter(queue.Try, 2)
		must(x, "a Try of what is kept", b.entered(), "in")
		must(x, "its hand-offs", b.w.HandOffs, 1)
		c := x.park(0, 3)
		must(x, "Keep beside a waiter", x.s.Keep(b.w.Number), false)
		x.mustExit(b.w.Number, true, queue.HandedOff, queue.Nothing)
		synctest.Wait()
		c.mustBeIn()
		must(x, "EndLinger of what is owned", x.s.EndLinger(), queue.Nothing)
		must(x, "Keep", x.s.Keep(c.w.Number), true)
		must(x, "EndLinger", x.s.EndLinger(), queue.SendRelease)
		x.mustLose(1, queue.Free, queue.Nothing)
		must(x, "Released", x.s.Released(), queue.Nothing)

		d := x.own(0, 4, 2)
		must(x, "Keep", x.s.Keep(d.w.Number), true)
		x.mustLose(2, queue.Lingers, queue.Nothing)
		must(x, "EndLinger of what is lost", x.s.EndLinger(), queue.Nothing)
		x.mustBe(queue.Free, 0, 0, 0)

		e := x.own(0, 5, 3)
		for range queue.MaxHandOffs {
			must(x, "Keep", x.s.Keep(e.w.Number), true)
			e.w = &queue.Waiter{}
			x.s.Enter(e.w)
		}
		must(x, "Keep beyond the count", x.s.Keep(e.w.Number), false)
		x.drain()
	})
}
