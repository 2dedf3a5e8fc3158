package queue_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/queue"
)

func TestMutex_I1_FreeMeansNobodyAndNothing(t *testing.T) {
	bothModes(t, func(x *fixture) {
		mustBeNothing := func(way string) {
			t.Helper()
			d := x.s.Demand()
			d.Admissions, d.TurnEnds = 0, 0
			must(x, way, d, queue.Demand{})
			must(x, way+": word", x.s.Raw()&(1<<34-1), 1<<32)
		}
		mustBeNothing("new")
		a := x.own(queue.NoNotify, 1, 1)
		x.s.Release(a.w.Stay, queue.HandOff)
		x.released()
		mustBeNothing("released")
		x.own(queue.Refusable, 1, 2)
		x.s.Lose(2)
		mustBeNothing("lost by a hold")
		a = x.own(queue.NoNotify, 1, 3)
		x.s.Lose(3)
		x.s.Release(a.w.Stay, queue.HandOff)
		mustBeNothing("lost by a lock")
		a = x.park(queue.Refusable, 1)
		a.giveUp()
		mustBeNothing("given up")
		x.park(queue.Try|queue.Refusable, 1)
		x.s.Refuse(errRefused)
		mustBeNothing("refused")
	})
}

// Of waiters that enter in any state, only the one that makes the state Acquiring is ordered to start an attempt; of
// those that leave, only the last is ordered to end it.
func TestMutex_I2_OneOrderPerNeed(t *testing.T) {
	bothModes(t, func(x *fixture) {
		must(x, "first", x.park(queue.NoNotify, 1).order, queue.Restate)
		must(x, "while Acquiring", x.park(queue.NoNotify, 2).order, queue.Nothing)
		x.s.Grant(1)
		synctest.Wait()
		must(x, "while Owned", x.park(queue.NoNotify, 3).order, queue.Nothing)
		x.mustExit(x.s.Owner(), queue.EndTurn, queue.Final, queue.GiveBack)
		must(x, "while Releasing", x.park(queue.NoNotify, 4).order, queue.Nothing)
		x.released()
		x.mustBe(queue.Acquiring, 3)
		x.s.Grant(2)
		synctest.Wait()
		x.mustLose(2, x.first(2), queue.Restate)
		must(x, "while Lost", x.park(queue.NoNotify, 5).order, queue.Nothing)
		x.mustExit(x.s.Owner(), queue.HandOff, queue.WasLost, queue.Restate)
		x.drain()

		a, b := x.park(queue.Refusable, 1), x.park(queue.Refusable, 2)
		a.giveUp()
		a.mustHaveLeft(errGiveUp, queue.Nothing)
		b.giveUp()
		b.mustHaveLeft(errGiveUp, queue.Restate)
		c := x.park(queue.Refusable, 3)
		must(x, "after the end", c.order, queue.Restate)
		must(x, "Fail", x.s.Fail(errClosed), queue.Restate)
		c.mustHaveLeft(errClosed, queue.Nothing)
		must(x, "second Fail", x.s.Fail(errClosed), queue.Nothing)
	})
}

// A woken heir that is cancelled passes its wake-up on: to the next waiter, or back to Redis.
func TestMutex_I4_AnHeirThatLeavesPassesTheGrantOn(t *testing.T) {
	bothModes(t, func(x *fixture) {
		a := x.own(queue.NoNotify, 1, 1)
		heir, next := x.line(queue.Refusable, 2), x.park(queue.Refusable, 3)
		x.mustExit(a.w.Stay, queue.HandOff, queue.HandedOff, queue.Nothing)
		heir.cancel(errGiveUp)
		heir.wait().mustHaveLeft(errGiveUp, queue.Nothing)
		next.mustBeIn()
		handOffs := 1
		if x.p.Fair {
			handOffs++ // to one that had given up
		}
		must(x, "hand-offs", next.w.HandOffs, handOffs)

		last := x.line(queue.Refusable, 4)
		x.mustExit(next.w.Stay, queue.HandOff, queue.HandedOff, queue.Nothing)
		last.cancel(errGiveUp)
		last.wait().mustHaveLeft(errGiveUp, queue.GiveBack)
		x.mustBe(queue.Releasing, 0)
		x.released()
	})
}

// A wake-up that arrives between Enter and Wait is there when Wait begins.
func TestMutex_I4_WokenBeforeWait(t *testing.T) {
	bothModes(t, func(x *fixture) {
		p := x.line(queue.NoNotify, 1)
		x.s.Grant(1)
		p.wait().mustBeIn()
		x.drain()
	})
}

// Two wake-ups of which the first was not read are one, and the newest state counts.
func TestMutex_I4_WokenTwice(t *testing.T) {
	bothModes(t, func(x *fixture) {
		// The heir of a fair queue is the owner before it runs: it finds that it was.
		if x.p.Fair {
			p := x.line(queue.Refusable, 1)
			x.s.Grant(1)
			x.mustLose(1, p, queue.Restate)
			x.mustBe(queue.Free, 0)
			p.wait().mustBeIn()
			x.mustExit(p.w.Stay, queue.HandOff, queue.WasLost, queue.Nothing)
			p.again("queued", queue.Restate)
			p.wait()
			x.drain()
			return
		}
		a := x.own(queue.NoNotify, 9, 1)
		p := x.line(queue.Refusable, 1)
		for range 3 {
			x.mustExit(a.w.Stay, queue.HandOff, queue.HandedOff, queue.Nothing)
			a = x.enter(queue.NoNotify, 9)
			must(x, "Acquire", a.entered(), "in")
		}
		p.wait().mustWait()
		x.mustExit(a.w.Stay, queue.HandOff, queue.HandedOff, queue.Nothing)
		p.mustBeIn()
		x.drain()
	})
}

func TestMutex_I5_FairNeverPassesAParkedWaiter(t *testing.T) {
	inBubble(t, true, func(x *fixture) {
		a := x.own(queue.NoNotify, 1, 1)
		first := x.line(queue.NoNotify, 2)
		x.s.Release(a.w.Stay, queue.HandOff)
		x.mustBe(queue.Owned, 0)
		newcomer := x.park(queue.NoNotify, 3)
		must(x, "Try", x.enter(queue.Try|queue.Refusable, 4).entered(), "refused")
		must(x, "TryLock", x.enter(queue.Try|queue.Refusable|queue.NoNotify, 5).entered(), "refused")
		first.wait().mustBeIn()
		newcomer.mustWait()
		x.drain()
		newcomer.mustBeIn()
	})
}

func TestMutex_I5_FairAdmitsInOrderOfArrival(t *testing.T) {
	inBubble(t, true, func(x *fixture) {
		owner := x.own(queue.NoNotify, 1, 1)
		var parties []*party
		for id := range uint64(100) {
			parties = append(parties, x.park([]queue.Kind{queue.Refusable, queue.NoNotify}[id%2], id+2))
		}
		for i, p := range parties {
			x.s.Release(owner.w.Stay, queue.HandOff)
			p.mustBeIn()
			if i+1 < len(parties) {
				parties[i+1].mustWait()
			}
			owner = p
		}
		x.drain()
	})
}

// starve returns a head that was woken in vain after waiting for d, and the owner that passed it.
func (x *fixture) starve(d time.Duration) (head, owner *party) {
	x.t.Helper()
	a := x.own(queue.NoNotify, 1, 1)
	head = x.line(queue.Refusable, 2)
	time.Sleep(d)
	x.s.Release(a.w.Stay, queue.HandOff)
	owner = x.enter(queue.NoNotify, 3)
	must(x, "Enter", owner.entered(), "in")
	head.wait().mustWait()
	return head, owner
}

// The head is the owner before it runs, so nobody can be quicker.
func TestMutex_I6_PassedForTooLongGetsTheNext(t *testing.T) {
	inBubble(t, false, func(x *fixture) {
		head, owner := x.starve(queue.StarvationThreshold + 1)
		x.mustExit(owner.w.Stay, queue.HandOff, queue.HandedOff, queue.Nothing)
		x.mustBe(queue.Owned, 0)
		late := x.line(queue.NoNotify, 5)
		head.mustBeIn()

		// The privilege is used up: while late has not run, a newcomer may pass again.
		x.mustExit(head.w.Stay, queue.HandOff, queue.HandedOff, queue.Nothing)
		must(x, "Enter", x.enter(queue.NoNotify, 6).entered(), "in")
		late.wait()
		x.drain()
		late.mustBeIn()
	})
}

// The threshold itself is not past it. The privilege leaves the queue with its waiter.
func TestMutex_I6_WhenTheNextIsNotOwed(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // no woken goroutine runs before this checks
	inBubble(t, false, func(x *fixture) {
		_, owner := x.starve(queue.StarvationThreshold)
		x.mustExit(owner.w.Stay, queue.HandOff, queue.HandedOff, queue.Nothing)
		x.mustBe(queue.Granted, 1)
		x.drain()
	})
	inBubble(t, false, func(x *fixture) {
		head, owner := x.starve(time.Second)
		fresh := x.line(queue.NoNotify, 4)
		head.giveUp()
		x.s.Release(owner.w.Stay, queue.HandOff)
		must(x, "Enter after the owed head left", x.enter(queue.NoNotify, 5).entered(), "in")
		fresh.wait()
		x.drain()
	})
}

// A First waiter is before all others, also one that is owed the next grant, and nobody passes it.
func TestMutex_I6_FirstIsBeforeAll(t *testing.T) {
	inBubble(t, false, func(x *fixture) {
		a := x.own(queue.Refusable, 1, 1)
		b := x.line(queue.Refusable, 2)
		time.Sleep(time.Second)
		x.s.Release(a.w.Stay, queue.HandOff)
		c := x.enter(queue.Refusable, 3)
		must(x, "Enter", c.entered(), "in")
		x.mustLose(1, c, queue.Restate)
		c.again("queued", queue.Nothing) // before b has run
		x.lined(3, 2)
		b.wait().mustWait()
		a.again("queued", queue.Nothing)
		x.lined(1, 3, 2)
		c.wait()
		a.wait()
		for i, next := range []*party{a, c, b} {
			x.s.Grant(uint64(i + 2))
			next.mustBeIn()
			x.s.Release(next.w.Stay, queue.EndTurn)
			x.released()
		}
	})
}

// A First waiter, and one that takes the lock, are let in before they have run: a newcomer is no quicker.
func TestMutex_I6_NobodyPassesFirstOrTakes(t *testing.T) {
	for _, takes := range []bool{false, true} {
		inBubble(t, false, func(x *fixture) {
			a := x.own(queue.Refusable, 1, 1)
			x.mustLose(1, a, queue.Restate)
			b := x.own(queue.Refusable, 2, 2)
			if takes {
				a = x.enterAs(&queue.Waiter{Stay: &queue.Stay{Need: 1, Kind: queue.Refusable, Goroutine: 1}, Takes: true})
				must(x, "Enter", a.entered(), "queued")
			} else {
				a.again("queued", queue.Nothing)
			}
			x.mustExit(b.w.Stay, queue.HandOff, queue.HandedOff, queue.Nothing)
			late := x.enter(queue.Refusable, 3)
			must(x, "Enter of a newcomer", late.entered(), "queued")
			a.wait().mustBeIn()
			x.s.Release(a.w.Stay, queue.HandOff)
			late.wait().mustBeIn()
			x.drain()
		})
	}
}

// Those that take the lock are queued in the order of their arrival, before one that is First.
func TestMutex_I6_TakersKeepTheirOrder(t *testing.T) {
	inBubble(t, false, func(x *fixture) {
		first := x.own(queue.Refusable, 1, 1)
		x.mustLose(1, first, queue.Restate)
		x.enterAs(&queue.Waiter{Stay: &queue.Stay{Need: 1, Kind: queue.Refusable, Goroutine: 2}, Takes: true}).wait()
		x.enterAs(&queue.Waiter{Stay: &queue.Stay{Need: 1, Kind: queue.Refusable, Goroutine: 3}, Takes: true}).wait()
		first.again("queued", queue.Nothing)
		first.wait()
		x.park(queue.Refusable, 4)
		x.lined(2, 3, 1, 4)
		x.drain()
	})
}

func TestMutex_I7_AnEndedTenureNeverExits(t *testing.T) {
	bothModes(t, func(x *fixture) {
		x.mustExit(new(queue.Stay), queue.HandOff, queue.Stale, queue.Nothing)
		a, b := x.own(queue.NoNotify, 1, 1), x.park(queue.NoNotify, 2)
		x.mustExit(a.w.Stay, queue.HandOff, queue.HandedOff, queue.Nothing)
		x.mustExit(a.w.Stay, queue.HandOff, queue.Stale, queue.Nothing)
		b.mustBeIn()
		x.mustExit(a.w.Stay, queue.HandOff, queue.Stale, queue.Nothing)
		x.mustBe(queue.Owned, 0)
		x.mustExit(b.w.Stay, queue.HandOff, queue.Final, queue.GiveBack)
		x.mustExit(b.w.Stay, queue.HandOff, queue.Stale, queue.Nothing)
		x.released()
		x.mustExit(b.w.Stay, queue.HandOff, queue.Stale, queue.Nothing)
		x.mustBe(queue.Free, 0)
	})
}

func TestMutex_I8_HandOffAndLossExcludeEachOther(t *testing.T) {
	bothModes(t, func(x *fixture) {
		// Lost first: the exit hands nothing off.
		a, b := x.own(queue.NoNotify, 1, 1), x.park(queue.NoNotify, 2)
		x.mustLose(1, a, queue.Restate)
		x.mustExit(a.w.Stay, queue.HandOff, queue.WasLost, queue.Restate)
		b.mustWait()
		x.drain()
		// Handed off first: the loss is the heir's, or finds the grant without an owner.
		c, d := x.own(queue.NoNotify, 3, 2), x.line(queue.NoNotify, 4)
		x.mustExit(c.w.Stay, queue.HandOff, queue.HandedOff, queue.Nothing)
		if x.p.Fair {
			x.mustLose(2, d, queue.Restate)
			d.wait().mustBeIn()
			x.mustExit(d.w.Stay, queue.HandOff, queue.WasLost, queue.Nothing)
			return
		}
		x.mustLose(2, nil, queue.Restate)
		d.wait().mustWait()
		x.s.Grant(3)
		d.mustBeIn()
		must(x, "grant", d.w.Grant, 3)
		must(x, "hand-offs", d.w.HandOffs, 0)
		x.drain()
	})
}

func TestMutex_I9_CountStaysInItsBits(t *testing.T) {
	bothModes(t, func(x *fixture) {
		a := x.own(queue.NoNotify, 1, 1)
		for range queue.MaxCount - 1 {
			must(x, "Reenter", x.s.Reenter(a.w.Stay, false), nil)
		}
		must(x, "Reenter", x.s.Reenter(a.w.Stay, false), queue.ErrCountLimit)
		x.mustBe(queue.Owned, 0)
		x.s.Lose(1)
		must(x, "Reenter when lost", x.s.Reenter(a.w.Stay, true), queue.ErrCountLimit)
		x.mustBe(queue.Lost, 0)
		for range queue.MaxCount - 1 {
			x.mustExit(a.w.Stay, queue.HandOff, queue.Nested, queue.Nothing)
		}
		x.mustExit(a.w.Stay, queue.HandOff, queue.WasLost, queue.Nothing)
		x.mustBe(queue.Free, 0)
	})
}

func TestMutex_I9_HandOffsStayInTheirBits(t *testing.T) {
	inBubble(t, false, func(x *fixture) {
		a := x.own(queue.NoNotify, 1, 1)
		head := x.line(queue.NoNotify, 2) // never runs, so every newcomer barges
		last := a.w
		for i := range queue.MaxHandOffs {
			x.mustExit(last.Stay, queue.HandOff, queue.HandedOff, queue.Nothing)
			last = &queue.Waiter{Stay: &queue.Stay{Need: 1, Kind: queue.NoNotify * queue.Kind((i+1)%2)}} // by the word, as the last one, and not
			in, _, _ := x.s.Acquire(last)
			must(x, "Acquire", in, true)
			must(x, "hand-offs", last.HandOffs, i+1)
		}
		x.mustBe(queue.Owned, 1)
		x.mustExit(last.Stay, queue.HandOff, queue.Final, queue.GiveBack)
		x.mustBe(queue.Releasing, 1)
		head.wait()
		x.drain()
	})
}

func TestMutex_I8_ALostLockAdmitsNoSuccessor(t *testing.T) {
	bothModes(t, func(x *fixture) {
		a, b := x.own(queue.NoNotify, 1, 1), x.park(queue.Refusable, 2)
		x.s.Reenter(a.w.Stay, false)
		x.mustLose(1, a, queue.Restate)
		newcomer := x.park(queue.NoNotify, 3)
		must(x, "Try", x.enter(queue.Try|queue.Refusable, 4).entered(), "refused")
		x.mustExit(a.w.Stay, queue.HandOff, queue.Nested, queue.Nothing)
		b.mustWait()
		newcomer.mustWait()
		x.mustBe(queue.Lost, 2)
		x.mustExit(a.w.Stay, queue.HandOff, queue.WasLost, queue.Restate)
		x.s.Grant(2)
		b.mustBeIn()
		x.drain()
	})
}

func TestMutex_I10_ATryIsQueuedOnlyIfTheKeyIsFree(t *testing.T) {
	bothModes(t, func(x *fixture) {
		refused := func(state queue.State) {
			t.Helper()
			must(x, "state", x.s.State(), state)
			for _, kind := range []queue.Kind{queue.Try, queue.Try | queue.Refusable | queue.NoNotify} {
				p := x.enter(kind, 9)
				must(x, "Try", p.entered(), "refused")
				must(x, "its error", p.refused, queue.ErrRefused)
				must(x, "its order", p.order, queue.Nothing)
			}
		}
		a := x.park(queue.Try|queue.Refusable|queue.NoNotify, 1)
		must(x, "order", a.order, queue.Restate)
		refused(queue.Acquiring)
		x.s.Grant(1)
		a.mustBeIn()
		refused(queue.Owned)
		x.mustLose(1, a, queue.Restate)
		refused(queue.Lost)
		x.s.Release(a.w.Stay, queue.HandOff)

		b := x.own(queue.NoNotify, 2, 2)
		x.s.Release(b.w.Stay, queue.HandOff)
		refused(queue.Releasing)
		x.released()

		c := x.own(queue.NoNotify, 3, 3)
		d := x.line(queue.Refusable, 4)
		x.s.Release(c.w.Stay, queue.HandOff)
		if x.p.Fair {
			refused(queue.Owned)
		} else {
			refused(queue.Granted) // it does not pass an heir
		}
		d.wait().mustBeIn()
		x.drain()
	})
}

// Nobody passes a queued Try, so the next answer is its own: granted or refused.
func TestMutex_I10_ATryGetsTheNextAnswer(t *testing.T) {
	bothModes(t, func(x *fixture) {
		a := x.own(queue.Refusable, 1, 1)
		x.mustLose(1, a, queue.Restate)
		try, b := x.line(queue.Try|queue.Refusable, 2), x.park(queue.Refusable, 3)
		a.again("queued", queue.Nothing)
		x.lined(2, 1, 3)
		x.s.Grant(2)
		x.mustBe(queue.Owned, 2)
		c := x.park(queue.Refusable, 4)
		try.wait().mustBeIn()
		a.wait()
		x.drain()
		b.mustBeIn()
		c.mustBeIn()

		try, b = x.park(queue.Try|queue.NoNotify, 5), x.park(queue.NoNotify, 6)
		x.s.Refuse(errRefused)
		try.mustHaveLeft(errRefused, queue.Nothing)
		x.mustBe(queue.Acquiring, 1)
		x.drain()
		b.mustBeIn()
	})
}

func TestMutex_I11_AnEndedContextNeverComesIn(t *testing.T) {
	bothModes(t, func(x *fixture) {
		// Cancelled before Wait, granted before Wait: both are ready, a hundred times, and the rule is the same each
		// time.
		for grant := range uint64(100) {
			p := x.line(queue.Refusable, 1)
			x.s.Grant(grant + 1)
			p.cancel(errGiveUp)
			p.wait().mustHaveLeft(errGiveUp, queue.GiveBack)
			x.released()
		}
		// The cause is returned; for a deadline it is the context package's own.
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		w, began := &queue.Waiter{Stay: &queue.Stay{Need: 1}}, time.Now()
		x.s.Acquire(w)
		order, err := x.s.Park(ctx, w)
		if order != queue.Restate || !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Minute {
			t.Fatalf("order=%v err=%v after %v", order, err, time.Since(began))
		}
		// A failure that was decided first is returned.
		p := x.line(queue.Refusable, 2)
		x.s.Fail(errClosed)
		p.cancel(errGiveUp)
		p.wait().mustHaveLeft(errClosed, queue.Nothing)
	})
}

// A grant admits the first waiter before it runs: nobody passes it. A unit that was handed off a newcomer may take.
func TestMutex_I14_BargingIsAtHandOffsOnly(t *testing.T) {
	inBubble(t, false, func(x *fixture) {
		a := x.line(queue.NoNotify, 1)
		must(x, "Granted", x.s.Grant(1), true)
		x.mustBe(queue.Owned, 0)
		b := x.line(queue.NoNotify, 2)
		a.wait().mustBeIn()
		x.mustExit(a.w.Stay, queue.HandOff, queue.HandedOff, queue.Nothing)
		x.mustBe(queue.Granted, 1)
		must(x, "a newcomer", x.enter(queue.NoNotify, 3).entered(), "in")
		b.wait().mustWait()
		x.drain()
	})
}

// first returns the party of the owner, which must have that id.
func (x *fixture) first(id uint64) *party {
	x.t.Helper()
	w := x.s.Owner()
	must(x, "owner", w.Goroutine, id)
	return &party{x: x, w: &queue.Waiter{Stay: w}}
}
