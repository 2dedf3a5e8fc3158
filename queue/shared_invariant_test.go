package queue_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/queue"
)

// S25: the word has the readers inside in 32 bits, closed in one and the admissions in 31. Through an open gate a reader comes
// in by one addition and leaves by one subtraction, whoever has the lock.
func TestShared_S25_OneAddition(t *testing.T) {
	const join, leave, closed = 1<<35 | 1, 1, 1 << 32
	rwGates(t, func(x *gateFixture) {
		x.open(all)
		x.g.CountOn(1<<29 - 3 - x.g.Raw()>>35) // two more are the last that the word has room for
		at, opened := x.g.Raw(), int(x.g.Demand().Admissions)
		x.g.WhileLocked(func() {
			for i := range uint64(4) {
				in := x.g.AcquireShared(x.now())
				if at += join; !in || x.g.Raw() != at {
					x.t.Errorf("join %d: %v, the word is %x, want %x", i, in, x.g.Raw(), at)
				}
			}
			for i := range uint64(3) {
				order := x.g.ReleaseShared(1)
				if at -= leave; order != queue.Nothing || x.g.Raw() != at {
					x.t.Errorf("leave %d: order %v, the word is %x, want %x", i, order, x.g.Raw(), at)
				}
			}
		})
		x.must("readers", x.g.Demand().Readers, int64(1))
		x.must("admissions", int(x.g.Demand().Admissions), (opened+4)&(1<<29-1))
		x.line(all, lock)
		x.must("the word of a closed gate", x.g.Raw(), at|closed)
		x.mustJoin(false)
		x.must("the word after an addition in vain", x.g.Raw(), at|closed)
	})
}

// S25: the gate is open if and only if it has units, its turn is not over, no writer is inside and nobody waits. Nor is it
// while somebody inside relies on lost units, and after Close.
func TestShared_S25_WhenItIsOpen(t *testing.T) {
	for name, shut := range map[string]func(x *gateFixture) (open func()){
		"no units": func(x *gateFixture) func() {
			x.must("Shrink", x.g.Shrink(0), true)
			return func() { x.open(1) }
		},
		"the turn is over": func(x *gateFixture) func() {
			time.Sleep(handOff)
			x.g.Contended()
			return func() { x.g.Renewed(false, forever) }
		},
		"the deadline": func(x *gateFixture) func() {
			x.g.Renewed(false, x.now())
			return func() { x.g.Renewed(false, forever) }
		},
		"a writer inside": func(x *gateFixture) func() {
			w := x.come(all, lock)
			return func() { x.g.Exit(w.w) }
		},
		"somebody waits": func(x *gateFixture) func() {
			r := x.come(1, lock)
			w := x.park(all, lock)
			x.must("a reader is inside", r.in, true)
			return func() { w.giveUp(); x.g.ReleaseShared(1) }
		},
		"lost units": func(x *gateFixture) func() {
			x.mustJoin(true)
			x.g.Lose()
			x.give(1)
			x.g.CountOn(2) // as two that add in vain do for a moment
			x.g.Renewed(false, forever)
			return func() { x.g.ReleaseShared(1); x.open(1) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			rwGates(t, func(x *gateFixture) {
				x.mustJoin(false)
				x.open(all)
				open := shut(x)
				x.must("closed", x.g.Raw()>>32&1 == 1, name != "the deadline") // that readers see by the clock alone
				x.mustJoin(false)
				open()
				x.must("closed", x.g.Raw()>>32&1 == 1, false)
				x.mustJoin(true)
				x.g.ReleaseShared(1)
				x.g.Close()
				x.mustJoin(false)
			})
		})
	}
	inGate(t, 0, true, func(x *gateFixture) { // permits have owners or a number: none is in the word
		x.give(5)
		x.come(1, hold)
		x.come(1, lock)
		x.mustJoin(false)
	})
}

func TestShared_I1_AWriterIsAlone(t *testing.T) {
	rwGates(t, func(x *gateFixture) {
		x.give(all)
		w := x.come(all, lock)
		x.mustJoin(false)
		reader, writer := x.park(1, hold), x.park(all, lock)
		reader.mustWait()
		x.g.Exit(w.w)
		reader.mustBeIn()
		writer.mustWait()
		x.must("readers", x.g.Demand().Readers, int64(1))
		x.g.Exit(reader.w)
		writer.mustBeIn()
		x.g.Exit(writer.w)
	})
}

// With one unit there are readers only, and with none nobody.
func TestShared_I1_UnitsAreNeverExceeded(t *testing.T) {
	rwGates(t, func(x *gateFixture) {
		reader := x.park(1, lock)
		reader.mustWait()
		x.mustState(0, 1)
		x.give(1)
		reader.mustBeIn()
		x.g.ReleaseShared(1)
		writer := x.park(all, lock)
		writer.mustWait()
		x.mustState(1, all)
		x.give(all)
		writer.mustBeIn()
		x.g.Exit(writer.w)
	})
	inGate(t, 0, true, func(x *gateFixture) {
		x.give(3)
		x.come(2, hold)
		two := x.park(2, lock)
		two.mustWait()
		x.mustState(3, 4)
		x.give(4)
		two.mustBeIn()
		x.must("used", x.g.Demand().Used, int64(4))
	})
}

// S26: also if it joined before the writer closed the gate.
func TestShared_I12_TheLastReaderLetsTheWriterIn(t *testing.T) {
	rwGates(t, func(x *gateFixture) {
		x.open(all)
		x.mustJoin(true)
		x.mustJoin(true)
		w := x.park(all, lock)
		x.mustJoin(false)
		x.g.ReleaseShared(1)
		w.mustWait()
		x.g.ReleaseShared(1)
		w.mustBeIn()
		x.g.Exit(w.w)
		x.mustJoin(true)
		x.g.ReleaseShared(1)
	})
}

// S26: a reader that finds the gate closed after it has added counts as one inside until it subtracts: a writer that counted
// it must not wait for ever.
func TestShared_I12_WhoAddedInVainPassesOn(t *testing.T) {
	rwGates(t, func(x *gateFixture) {
		x.open(all)
		x.g.AddReader() // as TryJoin does, which stops here
		w := x.park(all, lock)
		w.mustWait()
		x.g.Withdraw()
		w.mustBeIn()
		x.g.Exit(w.w)
		x.mustJoin(true)
		x.must("admissions", int(x.g.Demand().Admissions), 5) // what was in vain is none
		x.g.ReleaseShared(1)
	})
}

func TestShared_I13_NobodyComesInAfterTheDeadline(t *testing.T) {
	rwGates(t, func(x *gateFixture) {
		x.open(all)
		deadline := x.now() + time.Second
		x.must("Renewed", x.g.Renewed(false, deadline), queue.Nothing)
		x.must("TryJoin before it", x.g.AcquireShared(deadline-1), true)
		x.must("TryJoin at it", x.g.AcquireShared(deadline), false)
		x.g.ReleaseShared(1)
		time.Sleep(time.Second)
		reader, writer := x.park(1, lock), x.park(all, hold)
		x.must("a try", entered(x.enter(1, queue.Try|hold).in, nil), "queued")
		reader.mustWait()
		x.mustState(all, all) // a renewal is due, and no statement
		x.g.Renewed(false, forever)
		reader.mustBeIn()
		writer.mustWait()
		x.g.ReleaseShared(1)
		writer.mustBeIn()
		x.g.Exit(writer.w)
	})
}

// S29: the end of the turn is seen by the clock, by the first to come after it.
func TestShared_I13_AContendedGateClosesAtTheEndOfTheTurn(t *testing.T) {
	rwGates(t, func(x *gateFixture) {
		x.open(all)
		end := x.g.Demand().TurnEnds
		x.must("Contended", x.g.Contended(), queue.Nothing)
		x.must("TryJoin before the end", x.g.AcquireShared(end-1), true)
		x.must("TryJoin at the end", x.g.AcquireShared(end), false)
		time.Sleep(handOff)
		v := x.line(1, lock)
		x.must("order", v.order, queue.Restate)
		d := x.g.Demand()
		x.must("one inside, who needs no place", d.Again, true)
		x.mustState(1, 1)
		x.must("order of the last reader", x.g.ReleaseShared(1), queue.Restate)
		x.mustState(0, 1)
		v.wait().giveUp()
		x.must("order", v.later, queue.Restate)
		x.mustState(0, 0)
	})
}

// Nobody comes: Contended at the end of the turn gives the order.
func TestShared_I13_ContendedAtTheEndOfTheTurn(t *testing.T) {
	rwGates(t, func(x *gateFixture) {
		x.open(all)
		x.g.Contended()
		x.mustState(all, all)
		time.Sleep(x.g.Demand().TurnEnds - x.now())
		x.must("Contended", x.g.Contended(), queue.Restate)
		x.must("Contended again", x.g.Contended(), queue.Nothing)
		x.mustState(0, 0)
		x.must("Shrink", x.g.Shrink(0), true)
		x.must("units", x.g.Demand().Units, int64(0))
	})
}

// S29: if a unit is held for longer than a turn, a waiter elsewhere closes the gate immediately. When nobody waits any more, it opens.
func TestShared_I15_OpenUntilContendedAndAgainAfterwards(t *testing.T) {
	rwGates(t, func(x *gateFixture) {
		x.open(1)
		time.Sleep(2 * handOff)
		x.mustJoin(true)
		x.must("Contended", x.g.Contended(), queue.Nothing) // the unit is used
		x.mustJoin(false)
		v := x.park(1, lock)
		v.mustWait()
		x.g.Renewed(false, forever)
		v.mustBeIn()
		x.mustJoin(true)
	})
}

func TestShared_I15_TheFirstReaderOfATurnIsNoticed(t *testing.T) {
	rwGates(t, func(x *gateFixture) {
		v := x.park(1, lock)
		x.give(1)
		v.mustBeIn()
		x.mustJoin(false)
		x.must("the only one leaves", x.g.ReleaseShared(1), queue.Restate)
		x.must("idle", x.g.Demand().Idle, true)
		x.must("the second comes", x.come(1, lock).order, queue.Restate)
		x.must("idle", x.g.Demand().Idle, false)
		x.mustJoin(true)
		x.must("order", x.g.ReleaseShared(1), queue.Nothing)
		x.must("order", x.g.ReleaseShared(1), queue.Nothing)
		x.must("idle", x.g.Demand().Idle, false)
		x.must("admissions", int(x.g.Demand().Admissions), 3)
	})
}

// S27: a writer that waits closes the gate.
func TestShared_I15_ClosedWhileAWriterWaits(t *testing.T) {
	rwGates(t, func(x *gateFixture) {
		x.open(1)
		x.mustJoin(true)
		w := x.park(all, hold)
		x.must("order", w.order, queue.Restate)
		x.mustState(1, all)
		x.mustJoin(false)
		w.giveUp()
		w.mustHaveLeft(errGiveUp)
		x.must("order", w.later, queue.Restate)
		x.mustState(1, 1)
		x.mustJoin(true)
	})
}

// A waiter that was admitted, woken or only queued when its context ended passes on what was meant for it.
func TestShared_I4_WhoGivesUpPassesOn(t *testing.T) {
	rwGates(t, func(x *gateFixture) {
		x.give(all)
		w := x.come(all, lock)
		heir, next, reader := x.line(all, hold), x.park(all, hold), x.park(1, lock)
		first := heir
		if !x.fair { // readers come before writers
			x.g.Exit(w.w)
			reader.mustBeIn()
			x.g.ReleaseShared(1)
		} else {
			x.g.Exit(w.w)
		}
		first.cancel(errGiveUp)
		first.wait().mustHaveLeft(errGiveUp)
		next.mustBeIn()
		x.g.Exit(next.w)
		reader.mustBeIn()
	})
}

// The heir was woken, a newcomer was quicker, and the heir's wake-up was in vain: it is woken again.
func TestShared_I4_AnHeirThatWasPassedIsWokenAgain(t *testing.T) {
	inGate(t, all, false, func(x *gateFixture) {
		x.give(all)
		w := x.come(all, lock)
		heir := x.line(all, lock)
		x.g.Exit(w.w)
		quick := x.come(all, lock) // before the heir runs
		heir.wait().mustWait()
		x.g.Exit(quick.w)
		heir.mustBeIn()
		x.g.Exit(heir.w)
		x.mustJoin(true)
	})
}

// The gate is open for readers while an heir is on its way, and closes when the heir finds one inside.
func TestShared_I4_AnHeirClosesTheGate(t *testing.T) {
	inGate(t, all, false, func(x *gateFixture) {
		x.open(all)
		w := x.come(all, lock)
		heir := x.line(all, lock)
		x.g.Exit(w.w)
		x.mustJoin(true)
		heir.wait().mustWait()
		x.mustJoin(false)
		late := x.line(1, lock) // does not pass it either
		x.g.ReleaseShared(1)
		heir.mustBeIn()
		late.wait().mustWait()
		x.g.Exit(heir.w)
		late.mustBeIn()
	})
}

// S27: FIFO.
func TestShared_I5_FairIsInTheOrderOfArrival(t *testing.T) {
	inGate(t, all, true, func(x *gateFixture) {
		x.give(all)
		w := x.come(all, lock)
		second, third := x.line(all, lock), x.line(1, lock)
		x.g.Exit(w.w)
		x.mustJoin(false)
		late := x.line(all, lock)
		second.wait().mustBeIn()
		third.wait().mustWait()
		x.g.Exit(second.w)
		third.mustBeIn()
		late.wait().mustWait()
		x.g.ReleaseShared(1)
		late.mustBeIn()
	})
}

func TestShared_I5_NobodyPassesOneThatDoesNotFit(t *testing.T) {
	for _, fair := range []bool{true, false} {
		inGate(t, 0, fair, func(x *gateFixture) {
			x.give(4)
			three := x.come(3, hold)
			large, small := x.park(4, hold), x.park(1, hold)
			large.mustWait()
			small.mustWait()
			x.must("a try", entered(x.enter(1, queue.Try|hold).in, nil), "queued")
			x.mustState(4, 7)
			x.must("order", x.g.Exit(three.w), queue.Restate)
			large.mustBeIn()
			small.mustWait()
			x.mustState(4, 5)
			x.g.Exit(large.w)
			small.mustBeIn()
		})
	}
}

// First ones come back before those that wait, and nobody passes them.
func TestShared_I5_FirstComesBeforeAll(t *testing.T) {
	rwGates(t, func(x *gateFixture) {
		x.give(all)
		first, second := x.come(all, lock), x.park(all, lock)
		reader := x.park(1, lock)
		x.g.Lose()
		x.g.Exit(first.w)
		first.w.Again()
		again := x.enterAs(first.w)
		x.lined(again, second, reader)
		x.give(all)
		again.wait().mustBeIn()
		second.mustWait()
		reader.mustWait()
		x.g.Exit(again.w)
	})
}

// S27: when a writer leaves, the readers that wait come in together: in a fair Gate those before the next writer, else all.
func TestShared_I16_ReadersComeInTogether(t *testing.T) {
	rwGates(t, func(x *gateFixture) {
		x.give(all)
		w := x.come(all, lock)
		a, b := x.park(1, lock), x.park(1, hold)
		writer := x.park(all, lock)
		c := x.park(1, lock)
		x.g.Exit(w.w)
		a.mustBeIn()
		b.mustBeIn()
		writer.mustWait()
		if x.fair {
			c.mustWait()
		} else {
			c.mustBeIn()
			x.g.ReleaseShared(1)
		}
		x.g.ReleaseShared(1)
		writer.mustWait()
		x.g.Exit(b.w)
		writer.mustBeIn()
		x.g.Exit(writer.w)
		c.mustBeIn()
	})
}

// S27: the next writer is the first of the queue, and the readers behind it come in before it after another writer, unless
// the Gate is fair.
func TestShared_I16_AfterAWriterReadersComeFirst(t *testing.T) {
	rwGates(t, func(x *gateFixture) {
		x.give(all)
		w := x.come(all, lock)
		writer, reader := x.park(all, lock), x.park(1, lock)
		x.g.Exit(w.w)
		first, then := reader, writer
		if x.fair {
			first, then = writer, reader
		}
		first.mustBeIn()
		then.mustWait()
	})
}

func TestShared_I6_PassedForTooLongIsPassedNoMore(t *testing.T) {
	for waits, owed := range map[time.Duration]bool{queue.StarvationThreshold: false, queue.StarvationThreshold + 1: true} {
		inGate(t, all, false, func(x *gateFixture) {
			x.give(all)
			w := x.come(all, lock)
			heir := x.line(all, lock)
			x.g.Exit(w.w)
			w = x.come(all, lock) // passes it
			time.Sleep(waits)
			heir.wait().mustWait()
			reader := x.park(1, lock)
			x.g.Exit(w.w)
			if owed {
				heir.mustBeIn()
				x.must("used", x.g.Demand().Used, int64(all))
				reader.mustWait()
				return
			}
			reader.mustBeIn()
			heir.mustWait()
		})
	}
}

// Of several transitions only the one that changes what must be stated is ordered to state it.
func TestShared_I2_OneOrderPerChange(t *testing.T) {
	rwGates(t, func(x *gateFixture) {
		a := x.park(1, lock)
		x.must("first", a.order, queue.Restate)
		b := x.park(1, lock)
		x.must("another reader", b.order, queue.Nothing)
		c := x.park(all, hold)
		x.must("a writer behind", c.order, queue.Nothing)
		x.must("Granted", x.g.Granted(1, false, forever), queue.Restate)
		x.mustState(1, all)
		if first, second := x.g.ReleaseShared(1), x.g.ReleaseShared(1); first != queue.Nothing || second != queue.Nothing {
			x.t.Fatal("the leave of a reader beside a writer that wants all units changes nothing")
		}
		x.must("Granted", x.g.Granted(all, false, forever), queue.Restate)
		c.mustBeIn()
		d := x.park(all, lock)
		x.must("with all units", d.order, queue.Nothing)
		x.must("with all units", x.g.Exit(c.w), queue.Nothing)
		d.mustBeIn()
		x.must("with all units", d.later, queue.Nothing)
		x.must("with all units", x.g.Exit(d.w), queue.Nothing)
	})
}

func TestShared_I10_ATryWaitsForNobody(t *testing.T) {
	rwGates(t, func(x *gateFixture) {
		for _, kind := range []queue.Kind{queue.Try | hold, queue.Try | lock} {
			x.give(all)
			w := x.come(all, kind)
			x.must("a writer beside a writer", x.enter(all, kind).refused, queue.ErrRefused)
			x.must("a reader beside a writer", x.enter(1, kind).refused, queue.ErrRefused)
			x.g.Exit(w.w)
			r := x.come(1, kind)
			x.must("a writer beside a reader", x.enter(all, kind).refused, queue.ErrRefused)
			x.g.Exit(r.w)
			x.come(1, lock)
			x.come(1, lock)
			x.g.ReleaseShared(1)
			x.mustJoin(true) // a refused try leaves the gate as it was
			x.must("a writer beside a reader", x.enter(all, kind).refused, queue.ErrRefused)
			x.mustJoin(true)
			x.g.ReleaseShared(1)
			x.g.ReleaseShared(1)
			x.g.ReleaseShared(1)
			x.g.Contended()
			time.Sleep(handOff)
			x.must("a reader after the turn", x.enter(1, kind).refused, queue.ErrRefused)
			x.g.Shrink(0)
			x.give(1)
			x.come(1, lock)
			x.must("a writer beside a reader with one unit", x.enter(all, kind).refused, queue.ErrRefused)
			x.g.ReleaseShared(1)
			x.g.Shrink(0)
		}
	})
}

// A Try that only units keep out waits for one answer.
func TestShared_I10_ATryWaitsForOneAnswer(t *testing.T) {
	rwGates(t, func(x *gateFixture) {
		try := x.park(all, queue.Try|hold)
		x.must("order", try.order, queue.Restate)
		x.must("Try", x.g.Demand().Try, true)
		x.must("a second one", x.enter(1, queue.Try|hold).refused, queue.ErrRefused)
		behind := x.park(1, lock)
		x.must("Refuse", x.g.Refuse(errRefused), queue.Restate)
		try.mustHaveLeft(errRefused)
		behind.mustWait()
		x.mustState(0, 1)
		x.must("Try", x.g.Demand().Try, false)
		x.give(1)
		behind.mustBeIn()
		x.g.ReleaseShared(1)
		try = x.park(all, queue.Try|hold) // beside an unused unit
		x.mustState(1, all)
		x.give(all)
		try.mustBeIn()
		x.g.Exit(try.w)
	})
}

// S29: a grant admits whom it was for, and begins a turn for a process that had nothing or was not told.
func TestShared_I14_AGrantAdmitsWhomItWasFor(t *testing.T) {
	rwGates(t, func(x *gateFixture) {
		x.open(1)
		x.mustJoin(true)
		time.Sleep(handOff)
		x.g.Contended()
		v, w := x.park(1, lock), x.park(all, lock)
		v.mustWait()
		x.must("again", x.g.Demand().Again, true)
		// The place has come to the front, and another client waits behind it. The process knew of a waiter before, so its turn continues.
		x.g.Granted(1, true, forever)
		v.mustBeIn()
		w.mustWait()
		x.must("the turn is over", x.g.Demand().TurnEnds <= x.now(), true)
		x.mustJoin(false)
		x.mustState(1, all)
		x.g.ReleaseShared(1)
		x.g.ReleaseShared(1)
		x.must("Shrink", x.g.Shrink(0), true)
		x.must("Granted", x.g.Granted(all, true, forever), queue.Restate) // a new turn
		w.mustBeIn()
		next := x.park(all, lock)
		x.g.Exit(w.w)
		next.mustBeIn()
		time.Sleep(handOff)
		last := x.park(all, lock)
		x.g.Exit(next.w)
		last.mustWait()
		x.mustState(0, all)
	})
}

// Of a Gate that is not fair, too: who is only woken could find the turn over.
func TestShared_I14_WhomAGrantIsForDoesNotRunFirst(t *testing.T) {
	inGate(t, all, false, func(x *gateFixture) {
		v := x.line(all, lock)
		x.g.Granted(all, true, forever)
		time.Sleep(2 * handOff)
		x.g.Contended()
		v.wait().mustBeIn()
	})
}

func TestShared_I8_ALossEndsWhoCanBeNotified(t *testing.T) {
	rwGates(t, func(x *gateFixture) {
		x.give(all)
		r := x.come(1, hold)
		was := x.g.Demand().Grant
		x.must("the waiter's grant", r.w.Grant, was)
		x.g.Lose()
		x.must("another grant", x.g.Demand().Grant != was, true)
		x.must("lost", x.g.Demand().Lost, false)
		w := x.park(all, hold)
		x.give(all)
		w.mustBeIn()
		x.must("a stale exit", x.g.Exit(r.w), queue.Nothing)
		x.must("used", x.g.Demand().Used, int64(all))
		x.g.Lose()
		next := x.park(all, hold)
		x.give(all)
		next.mustBeIn()
		x.must("a stale exit", x.g.Exit(w.w), queue.Nothing)
		x.must("a stale downgrade", x.g.Downgrade(w.w.Stay), queue.Nothing)
		x.must("used", x.g.Demand().Used, int64(all))
		x.g.Exit(next.w)
	})
	inGate(t, 0, true, func(x *gateFixture) {
		x.give(4)
		three := x.come(3, hold)
		x.g.Lose()
		x.give(4)
		x.come(4, hold)
		x.g.Exit(three.w)
		x.must("used", x.g.Demand().Used, int64(4))
	})
}

func TestShared_I8_WhoCannotBeNotifiedKeepsAllOut(t *testing.T) {
	mustKeepOut := func(x *gateFixture, leave func()) {
		x.t.Helper()
		x.g.Lose()
		v := x.park(1, lock)
		x.mustState(0, 0)
		x.must("lost", x.g.Demand().Lost, true)
		x.must("a try", entered(x.enter(1, queue.Try|hold).in, nil), "queued")
		x.give(all) // nobody asked for it
		v.mustWait()
		x.mustState(0, 0)
		leave()
		v.mustBeIn()
		x.must("lost", x.g.Demand().Lost, false)
		x.must("used", x.g.Demand().Used, int64(1))
	}
	rwGates(t, func(x *gateFixture) {
		x.open(all)
		x.mustJoin(true)
		x.come(1, lock)
		x.come(1, hold)
		mustKeepOut(x, func() {
			x.g.ReleaseShared(1)
			x.must("one is left", x.g.Demand().Lost, true)
			x.g.ReleaseShared(1)
		})
	})
	rwGates(t, func(x *gateFixture) {
		x.give(all)
		w := x.come(all, lock)
		mustKeepOut(x, func() { x.g.Exit(w.w) })
	})
	inGate(t, 0, true, func(x *gateFixture) {
		x.give(all)
		x.come(3, lock)
		mustKeepOut(x, func() { x.g.ReleaseShared(2); x.g.ReleaseShared(1) })
		x.g.ReleaseShared(1)
	})
}

func TestShared_I17_WhatIsGivenBackIsNotUsed(t *testing.T) {
	rwGates(t, func(x *gateFixture) {
		x.open(all)
		x.mustJoin(true)
		x.must("used", x.g.Shrink(0), false)
		x.must("units", x.g.Demand().Units, int64(all))
		x.mustJoin(true)
		x.must("all but one", x.g.Shrink(1), true)
		x.mustJoin(true)
		x.must("a writer", x.line(all, hold).order, queue.Restate)
		x.mustState(1, all)
		for range 3 {
			x.g.ReleaseShared(1)
		}
		x.must("unused", x.g.Shrink(0), true)
		x.mustJoin(false)
		x.mustState(0, all)
		x.must("more than there is", x.g.Shrink(all), true)
		x.must("units", x.g.Demand().Units, int64(0))
		x.g.Fail(errClosed)
	})
	inGate(t, 0, true, func(x *gateFixture) {
		x.give(5)
		x.come(2, hold)
		x.must("used", x.g.Shrink(1), false)
		x.must("all others", x.g.Shrink(2), true)
		x.must("units", x.g.Demand().Units, int64(2))
	})
}

func TestShared_I16_NobodyComesBetweenAWriterAndTheReaderItBecomes(t *testing.T) {
	for _, kind := range []queue.Kind{hold, lock} {
		rwGates(t, func(x *gateFixture) {
			x.give(all)
			w := x.come(all, kind)
			writer, reader := x.park(all, lock), x.park(1, lock)
			x.must("Downgrade", x.g.Downgrade(w.w.Stay), queue.Nothing)
			writer.mustWait()
			x.must("Downgrade again", x.g.Downgrade(w.w.Stay), queue.Nothing)
			if x.fair {
				reader.mustWait()
			} else {
				reader.mustBeIn()
				x.g.ReleaseShared(1)
			}
			x.must("used", x.g.Demand().Used, int64(1))
			x.g.Exit(w.w)
			writer.mustBeIn()
			x.g.Exit(writer.w)
			reader.mustBeIn()
		})
	}
}

// If another process waits, a downgrade gives the units back that the reader does not need.
func TestShared_DowngradeWhenContended(t *testing.T) {
	rwGates(t, func(x *gateFixture) {
		x.give(all)
		w := x.come(all, hold)
		time.Sleep(handOff)
		x.must("Contended", x.g.Contended(), queue.Nothing)
		x.must("Downgrade", x.g.Downgrade(w.w.Stay), queue.Restate)
		x.mustState(1, 1)
		x.must("Shrink", x.g.Shrink(1), true)
		x.must("Exit", x.g.Exit(w.w), queue.Restate)
		x.mustState(0, 0)
	})
}

// I13 of a Gate: a waiter that is admitted after its context has ended has not come in.
func TestShared_I11_AnEndedContextNeverComesIn(t *testing.T) {
	rwGates(t, func(x *gateFixture) {
		for _, need := range []int64{1, all} {
			for _, kind := range []queue.Kind{hold, lock} {
				v := x.line(need, kind)
				v.cancel(errGiveUp)
				x.give(all)
				v.wait().mustHaveLeft(errGiveUp)
				x.must("used", x.g.Demand().Used, int64(0))
				x.must("Shrink", x.g.Shrink(0), true)
			}
		}
	})
}

func TestShared_I3_LeavesTheQueueOnce(t *testing.T) {
	rwGates(t, func(x *gateFixture) {
		x.give(1)
		x.come(1, lock)
		var line []*visitor
		for range 5 {
			line = append(line, x.park(all, hold))
		}
		for i, leaver := range []int{0, 4, 2} {
			line[leaver].giveUp()
			line[leaver].mustHaveLeft(errGiveUp)
			line[leaver].giveUp()
			x.must("waiting", x.g.Demand().Waiting, 4-i)
		}
		x.lined(line[1], line[3])
		locked := x.park(all, lock)
		x.must("Fail", x.g.Fail(errClosed), queue.Nothing)
		line[1].mustHaveLeft(errClosed)
		line[3].mustHaveLeft(errClosed)
		x.lined(locked)
		x.must("Fail", x.g.Fail(errClosed), queue.Nothing)
		x.give(all)
		x.g.ReleaseShared(1)
		locked.mustBeIn()
	})
}

// A failure that was decided is returned, though the context has ended, too.
func TestShared_AFailureComesBeforeTheContext(t *testing.T) {
	rwGates(t, func(x *gateFixture) {
		v := x.line(1, hold)
		x.g.Fail(errClosed)
		v.cancel(errGiveUp)
		v.wait().mustHaveLeft(errClosed)
	})
}

func TestShared_MistakesPanic(t *testing.T) {
	rwGates(t, func(x *gateFixture) {
		x.give(all)
		panics(x, "Leave", func() { x.g.ReleaseShared(1) })
		x.must("the word is whole", x.g.Demand().Readers, int64(0))
		panics(x, "no need", func() { x.enter(0, lock) })
		v := x.come(1, hold)
		panics(x, "used", func() { x.enterAs(v.w) })
		panics(x, "nil", func() { x.g.Fail(nil) })
		panics(x, "Release", func() { x.g.ReleaseShared(1) })
		x.g.Exit(v.w)
		v.w.Reset()
		v.w.Stay = &queue.Stay{Need: 1, Kind: hold}
		x.must("after Reset", entered(x.enterAs(v.w).in, nil), "in")
	})
}

func panics(x *gateFixture, what string, f func()) {
	x.t.Helper()
	defer func() {
		x.t.Helper()
		if recover() == nil {
			x.t.Fatalf("%s: no panic", what)
		}
	}()
	f()
}

// The getters show who is inside and who waits.
func TestShared_Peek(t *testing.T) {
	inGate(t, all, true, func(x *gateFixture) {
		x.give(all)
		w := x.come(all, lock)
		since := time.Now()
		w2, w3 := x.line(all, hold), x.line(1, lock)
		x.must("writer", x.g.Owner(), w.w.Stay)
		infos := x.g.Peek(1)
		if len(infos) != 1 || infos[0].Goroutine != w2.w.Goroutine || !infos[0].Since.Equal(since) || infos[0].Kind != hold {
			x.t.Fatalf("%+v", infos)
		}
		x.must("all", len(x.g.Peek(5)), 2)
		x.lined(w2, w3)
		x.g.Exit(w.w)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		for _, v := range []*visitor{w2, w3} {
			_, err := x.g.Park(ctx, v.w)
			x.must("Wait", err, context.Canceled)
		}
		synctest.Wait()
		x.must("used", x.g.Demand().Used, int64(0))
	})
}
