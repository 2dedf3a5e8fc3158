package queue_test

import (
	"testing"
	"testing/synctest"

	"github.com/anteroom/anteroom/queue"
)

func TestMutex_RefuseFailsOnlyATry(t *testing.T) {
	bothModes(t, func(x *fixture) {
		try := x.park(queue.Try|queue.NoNotify, 1)
		lock, hold := x.park(queue.NoNotify, 3), x.park(queue.Refusable, 4)
		x.s.Refuse(errRefused)
		try.mustHaveLeft(errRefused, queue.Nothing)
		x.mustBe(queue.Acquiring, 2)
		x.s.Refuse(errRefused)
		lock.mustWait()
		hold.mustWait()
		x.mustBe(queue.Acquiring, 2)
		x.drain()
		lock.mustBeIn()
		hold.mustBeIn()
		must(x, "Refuse of nobody", x.s.Refuse(errRefused), queue.Nothing)
		x.mustBe(queue.Free, 0)
	})
}

// A grant that comes when nobody wants it, or when there is another, changes nothing.
func TestMutex_GrantedIsTakenOnlyWhileAcquiring(t *testing.T) {
	bothModes(t, func(x *fixture) {
		unused := func(state queue.State) {
			t.Helper()
			before, waiting := x.s.Demand(), x.s.Len()
			must(x, "state", before.State(), state)
			must(x, "Granted", x.s.Grant(99), false)
			must(x, "Current", x.s.Demand(), before)
			must(x, "waiting", x.s.Len(), waiting)
		}
		unused(queue.Free)
		a := x.own(queue.NoNotify, 1, 1)
		unused(queue.Owned)
		b := x.line(queue.NoNotify, 2)
		x.s.Release(a.w.Stay, queue.HandOff)
		if !x.p.Fair {
			unused(queue.Granted)
		}
		b.wait().mustBeIn()
		x.s.Lose(1)
		unused(queue.Lost)
		x.s.Release(b.w.Stay, queue.HandOff)
		a = x.own(queue.NoNotify, 1, 2)
		x.park(queue.NoNotify, 2)
		x.s.Release(a.w.Stay, queue.EndTurn)
		unused(queue.Releasing)
		x.drain()
	})
}

func TestMutex_FailEndsAllButLock(t *testing.T) {
	bothModes(t, func(x *fixture) {
		try := x.park(queue.Try|queue.Refusable|queue.NoNotify, 1)
		hold, lock := x.park(queue.Refusable, 2), x.park(queue.NoNotify, 3)
		must(x, "Fail", x.s.Fail(errClosed), queue.Restate) // it was a Try that waited first
		try.mustHaveLeft(errClosed, queue.Nothing)
		hold.mustHaveLeft(errClosed, queue.Nothing)
		lock.mustWait()
		x.drain()
		lock.mustBeIn()
	})
}

func TestMutex_FailOfTheHeirPassesTheGrantOn(t *testing.T) {
	inBubble(t, false, func(x *fixture) {
		a := x.own(queue.NoNotify, 9, 1)
		heir, lock := x.line(queue.Refusable, 1), x.park(queue.NoNotify, 2)
		x.s.Release(a.w.Stay, queue.HandOff)
		must(x, "Fail", x.s.Fail(errClosed), queue.Nothing)
		heir.wait().mustHaveLeft(errClosed, queue.Nothing)
		lock.mustBeIn()
		x.drain()

		a = x.own(queue.NoNotify, 9, 2)
		only := x.line(queue.Refusable, 3)
		x.s.Release(a.w.Stay, queue.HandOff)
		must(x, "Fail", x.s.Fail(errClosed), queue.GiveBack)
		only.wait().mustHaveLeft(errClosed, queue.Nothing)
		x.mustBe(queue.Releasing, 0)
		x.released()
	})
}

func TestMutex_LoseInEachState(t *testing.T) {
	bothModes(t, func(x *fixture) {
		x.mustLose(0, nil, queue.Nothing) // Free
		a := x.park(queue.Refusable, 9)
		x.mustLose(0, nil, queue.Nothing) // Acquiring
		x.s.Grant(1)
		a.mustBeIn()
		if !x.p.Fair {
			p := x.line(queue.Refusable, 1)
			x.s.Release(a.w.Stay, queue.HandOff)
			x.mustLose(9, nil, queue.Nothing) // another grant
			x.mustLose(1, nil, queue.Restate)
			x.mustLose(1, nil, queue.Nothing) // lost already
			p.wait().mustWait()
			x.mustBe(queue.Acquiring, 1)
			x.s.Grant(2)
			p.mustBeIn()
			x.mustLose(1, nil, queue.Nothing)
			x.mustLose(2, p, queue.Restate)
		} else {
			x.mustLose(1, a, queue.Restate)
		}
		x.mustBe(queue.Free, 0)

		q := x.own(queue.Try|queue.Refusable|queue.NoNotify, 2, 3)
		x.mustLose(3, q, queue.Restate)
		x.mustLose(3, nil, queue.Nothing) // lost already
		x.mustBe(queue.Lost, 0)
		x.mustExit(q.w.Stay, queue.HandOff, queue.WasLost, queue.Nothing)
		x.mustBe(queue.Free, 0)

		r := x.own(queue.Refusable, 3, 4)
		x.mustExit(r.w.Stay, queue.HandOff, queue.Final, queue.GiveBack)
		x.mustLose(4, nil, queue.Nothing) // the release wins
		x.mustBe(queue.Releasing, 0)
		x.released()
	})
}

func TestMutex_LossOfAHoldMovesOn(t *testing.T) {
	bothModes(t, func(x *fixture) {
		a, b := x.own(queue.Try|queue.Refusable, 1, 1), x.park(queue.Refusable, 2)
		must(x, "Reenter", x.s.Reenter(a.w.Stay, false), nil)
		x.mustLose(1, a, queue.Restate)
		must(x, "Reenter", x.s.Reenter(a.w.Stay, false), queue.ErrNotOwner)
		x.s.Grant(2)
		b.mustBeIn()
		x.mustExit(a.w.Stay, queue.HandOff, queue.Nested, queue.Nothing)
		x.mustExit(a.w.Stay, queue.HandOff, queue.WasLost, queue.Nothing)
		x.mustExit(a.w.Stay, queue.HandOff, queue.Stale, queue.Nothing)
		x.mustBe(queue.Owned, 0)
		x.drain()
	})
}

func TestMutex_Reenter(t *testing.T) {
	bothModes(t, func(x *fixture) {
		a := x.own(queue.NoNotify, 1, 1)
		by := func(owner uint64, want bool) {
			t.Helper()
			_, byLock := x.s.OwnedBy(owner)
			must(x, "byLock", byLock, want)
		}
		by(0, false)
		by(2, false)
		by(1, true)
		must(x, "Reenter", x.s.Reenter(a.w.Stay, false), nil)
		must(x, "Reenter", x.s.Reenter(a.w.Stay, true), nil)
		x.mustExit(a.w.Stay, queue.HandOff, queue.Nested, queue.Nothing)
		x.mustLose(1, a, queue.Restate)
		must(x, "Reenter", x.s.Reenter(a.w.Stay, false), queue.ErrWasLost)
		must(x, "Reenter", x.s.Reenter(a.w.Stay, true), nil)
		x.mustExit(a.w.Stay, queue.HandOff, queue.Nested, queue.Nothing)
		x.mustExit(a.w.Stay, queue.HandOff, queue.Nested, queue.Nothing)
		by(1, true)
		x.mustExit(a.w.Stay, queue.HandOff, queue.WasLost, queue.Nothing)
		by(1, false)
		must(x, "Reenter", x.s.Reenter(a.w.Stay, true), queue.ErrNotOwner)

		b := x.own(queue.Refusable, 1, 2)
		by(1, false) // a Hold is not re-entered by its goroutine's id
		owned, _ := x.s.OwnedBy(1)
		must(x, "owned", owned, true)
		must(x, "Reenter", x.s.Reenter(b.w.Stay, false), nil)
		x.drain()
		c := x.own(queue.NoNotify, 0, 3)
		by(0, false)
		x.mustExit(c.w.Stay, queue.Linger, queue.Kept, queue.Nothing)
		x.mustExit(x.enter(queue.NoNotify, 4).w.Stay, queue.Linger, queue.Kept, queue.Nothing)
		d := x.enter(queue.NoNotify, 5) // by the word
		must(x, "Reenter", x.s.Reenter(d.w.Stay, false), nil)
		must(x, "Entries", x.s.Entries(d.w.Stay), 2)
		x.mustExit(d.w.Stay, queue.Linger, queue.Nested, queue.Nothing)
		x.mustExit(d.w.Stay, queue.Linger, queue.Kept, queue.Nothing)
		must(x, "Reenter", x.s.Reenter(d.w.Stay, false), queue.ErrNotOwner)
		must(x, "Entries", x.s.Entries(d.w.Stay), 0)
		e := x.enter(queue.NoNotify, 6)
		x.mustExit(e.w.Stay, queue.Linger, queue.Kept, queue.Nothing) // by the word, which leaves the count of the stay as it was
		must(x, "Reenter", x.s.Reenter(e.w.Stay, false), queue.ErrNotOwner)
		x.drain()
	})
}

func TestMutex_MisuseIsRefusedLoudly(t *testing.T) {
	inBubble(t, true, func(x *fixture) {
		w := &queue.Waiter{Stay: &queue.Stay{Need: 1}}
		mustPanic(x, "Fail(nil)", func() { x.s.Fail(nil) })
		mustPanic(x, "Refuse(nil)", func() { x.s.Refuse(nil) })
		mustPanic(x, "Park before Acquire", func() { x.s.Park(t.Context(), w) })
		x.s.Acquire(w)
		mustPanic(x, "second Acquire", func() { x.s.Acquire(w) })
		mustPanic(x, "Again of a queued waiter", w.Again)
		mustPanic(x, "nothing needed", func() { x.s.Acquire(&queue.Waiter{Stay: &queue.Stay{}}) })
		// After each panic the lock is free and nothing has changed.
		x.mustBe(queue.Acquiring, 1)
	})
}

func TestMutex_StatesHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for v := range queue.Lost + 1 {
		if name := v.String(); name == "" || seen[name] {
			t.Errorf("the name %q is empty or used twice", name)
		}
		seen[v.String()] = true
	}
}

// The next owner takes a unit that lingers; a loss or EndLinger ends it, once.
func TestMutex_I2_Linger(t *testing.T) {
	bothModes(t, func(x *fixture) {
		lingers := func(want bool) {
			t.Helper()
			must(x, "Lingers", x.s.Demand().Lingers, want)
		}
		a := x.own(0, 1, 1)
		x.mustExit(a.w.Stay, queue.Linger, queue.Kept, queue.Nothing)
		lingers(true)
		x.mustExit(a.w.Stay, queue.Linger, queue.Stale, queue.Nothing)
		b := x.enter(queue.Try, 2)
		must(x, "a Try of what lingers", b.entered(), "in")
		must(x, "its hand-offs", b.w.HandOffs, 1)
		lingers(false)
		c := x.park(0, 3)
		x.mustExit(b.w.Stay, queue.Linger, queue.HandedOff, queue.Nothing)
		synctest.Wait()
		c.mustBeIn()
		lingers(false) // somebody waited
		must(x, "EndLinger of what is owned", x.s.EndLinger(), queue.Nothing)
		x.mustExit(c.w.Stay, queue.Linger, queue.Kept, queue.Nothing)
		must(x, "EndLinger", x.s.EndLinger(), queue.GiveBack)
		must(x, "EndLinger", x.s.EndLinger(), queue.Nothing)
		x.released()

		d := x.own(0, 4, 2)
		x.mustExit(d.w.Stay, queue.Linger, queue.Kept, queue.Nothing)
		x.mustLose(2, nil, queue.Restate)
		must(x, "EndLinger of what is lost", x.s.EndLinger(), queue.Nothing)
		x.mustBe(queue.Free, 0)

		for i, next := range []queue.Next{queue.Linger, queue.Linger, queue.HandOff} { // the third comes by the word
			f := x.enter(queue.NoNotify, 6)
			if i == 0 {
				must(x, "Granted", x.s.Grant(9), true)
				f.wait().mustBeIn()
			}
			must(x, "Owner", x.s.Owner(), f.w.Stay)
			exit, order := x.s.Release(f.w.Stay, next)
			must(x, "it lingers", x.s.Demand().Lingers, next == queue.Linger)
			must(x, "it is kept", exit == queue.Kept, next == queue.Linger)
			must(x, "Exit", exit == queue.Final && order == queue.GiveBack, next == queue.HandOff)
		}
		x.released()

		e := x.own(0, 5, 3)
		for range queue.MaxHandOffs {
			x.mustExit(e.w.Stay, queue.Linger, queue.Kept, queue.Nothing)
			e.w = &queue.Waiter{Stay: &queue.Stay{Need: 1}}
			x.s.Acquire(e.w)
		}
		x.mustExit(e.w.Stay, queue.Linger, queue.Final, queue.GiveBack)
		x.released()
	})
}
