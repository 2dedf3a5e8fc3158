package queue_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/anteroom/anteroom/queue"
)

// S25: the word has the readers inside in 32 bits, closed in one and the admissions in 31. Through an open gate a reader comes
// in by one addition and leaves by one subtraction, whoever has the lock.
func TestShared_S25_OneAddition(t *testing.T) {
	const join, leave, closed = 1<<35 | 1, 1, 1 << 32
	rwGates(t, func(x *fixture) {
		x.open(all)
		x.s.CountOn(1<<29 - 3 - x.s.Raw()>>35) // two more are the last that the word has room for
		at, opened := x.s.Raw(), int(x.s.Demand().Admissions)
		x.s.WhileLocked(func() {
			for i := range uint64(4) {
				in := x.s.AcquireShared(x.now())
				if at += join; !in || x.s.Raw() != at {
					x.t.Errorf("join %d: %v, the word is %x, want %x", i, in, x.s.Raw(), at)
				}
			}
			for i := range uint64(3) {
				order := x.s.ReleaseShared(0, 1, 0)
				if at -= leave; order != queue.Nothing || x.s.Raw() != at {
					x.t.Errorf("leave %d: order %v, the word is %x, want %x", i, order, x.s.Raw(), at)
				}
			}
		})
		must(x, "readers", x.s.Demand().Readers, int64(1))
		must(x, "admissions", int(x.s.Demand().Admissions), (opened+4)&(1<<29-1))
		x.queues(all, lock)
		must(x, "the word of a closed gate", x.s.Raw(), at|closed)
		x.mustJoin(false)
		must(x, "the word after an addition in vain", x.s.Raw(), at|closed)
	})
}

// S25: the gate is open if and only if it has units, its turn is not over, no writer is inside and nobody waits. Nor is it
// while somebody inside relies on lost units, and after Close.
func TestShared_S25_WhenItIsOpen(t *testing.T) {
	for name, shut := range map[string]func(x *fixture) (open func()){
		"no units": func(x *fixture) func() {
			must(x, "Shrink", x.s.Shrink(0), true)
			return func() { x.open(1) }
		},
		"the turn is over": func(x *fixture) func() {
			time.Sleep(handOff)
			x.s.Contended()
			return func() { x.s.Renewed(false, forever) }
		},
		"the deadline": func(x *fixture) func() {
			x.s.Renewed(false, x.now())
			return func() { x.s.Renewed(false, forever) }
		},
		"a writer inside": func(x *fixture) func() {
			w := x.comes(all, lock)
			return func() { x.s.Exit(w.w) }
		},
		"somebody waits": func(x *fixture) func() {
			r := x.comes(1, lock)
			w := x.waits(all, lock)
			must(x, "a reader is inside", r.in, true)
			return func() { w.giveUp(); x.s.ReleaseShared(0, 1, 0) }
		},
		"lost units": func(x *fixture) func() {
			x.mustJoin(true)
			x.s.LoseAll()
			x.give(1)
			x.s.CountOn(2) // as two that add in vain do for a moment
			x.s.Renewed(false, forever)
			return func() { x.s.ReleaseShared(0, 1, 0); x.open(1) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			rwGates(t, func(x *fixture) {
				x.mustJoin(false)
				x.open(all)
				open := shut(x)
				must(x, "closed", x.s.Raw()>>32&1 == 1, name != "the deadline") // that readers see by the clock alone
				x.mustJoin(false)
				open()
				must(x, "closed", x.s.Raw()>>32&1 == 1, false)
				x.mustJoin(true)
				x.s.ReleaseShared(0, 1, 0)
				x.s.Close()
				x.mustJoin(false)
			})
		})
	}
	inGate(t, 0, true, func(x *fixture) { // permits have owners or a number: none is in the word
		x.give(5)
		x.comes(1, hold)
		x.comes(1, lock)
		x.mustJoin(false)
	})
}

func TestShared_I1_AWriterIsAlone(t *testing.T) {
	rwGates(t, func(x *fixture) {
		x.give(all)
		w := x.comes(all, lock)
		x.mustJoin(false)
		reader, writer := x.waits(1, hold), x.waits(all, lock)
		reader.mustWait()
		x.s.Exit(w.w)
		reader.mustBeIn()
		writer.mustWait()
		must(x, "readers", x.s.Demand().Readers, int64(1))
		x.s.Exit(reader.w)
		writer.mustBeIn()
		x.s.Exit(writer.w)
	})
}

// With one unit there are readers only, and with none nobody.
func TestShared_I1_UnitsAreNeverExceeded(t *testing.T) {
	rwGates(t, func(x *fixture) {
		reader := x.waits(1, lock)
		reader.mustWait()
		x.mustState(0, 1)
		x.give(1)
		reader.mustBeIn()
		x.s.ReleaseShared(0, 1, 0)
		writer := x.waits(all, lock)
		writer.mustWait()
		x.mustState(1, all)
		x.give(all)
		writer.mustBeIn()
		x.s.Exit(writer.w)
	})
	inGate(t, 0, true, func(x *fixture) {
		x.give(3)
		x.comes(2, hold)
		two := x.waits(2, lock)
		two.mustWait()
		x.mustState(3, 4)
		x.give(4)
		two.mustBeIn()
		must(x, "used", x.s.Demand().Used, int64(4))
	})
}

// S26: also if it joined before the writer closed the gate.
func TestShared_I12_TheLastReaderLetsTheWriterIn(t *testing.T) {
	rwGates(t, func(x *fixture) {
		x.open(all)
		x.mustJoin(true)
		x.mustJoin(true)
		w := x.waits(all, lock)
		x.mustJoin(false)
		x.s.ReleaseShared(0, 1, 0)
		w.mustWait()
		x.s.ReleaseShared(0, 1, 0)
		w.mustBeIn()
		x.s.Exit(w.w)
		x.mustJoin(true)
		x.s.ReleaseShared(0, 1, 0)
	})
}

// S26: a reader that finds the gate closed after it has added counts as one inside until it subtracts: a writer that counted
// it must not wait for ever.
func TestShared_I12_WhoAddedInVainPassesOn(t *testing.T) {
	rwGates(t, func(x *fixture) {
		x.open(all)
		x.s.AddReader() // as AcquireShared does, which stops here
		w := x.waits(all, lock)
		w.mustWait()
		x.s.Withdraw()
		w.mustBeIn()
		x.s.Exit(w.w)
		x.mustJoin(true)
		must(x, "admissions", int(x.s.Demand().Admissions), 5) // what was in vain is none
		x.s.ReleaseShared(0, 1, 0)
	})
}

// Whoever added in vain may have been the last inside that relied on lost units. What waits by then, the next Acquire has
// stated, though it is behind others.
func TestShared_I2_AfterAnAdditionInVain(t *testing.T) {
	rwGates(t, func(x *fixture) {
		x.open(all)
		x.s.AddReader() // as AcquireShared does, which stops here
		x.s.LoseAll()
		first := x.waits(1, lock)
		must(x, "order while it is lost", first.order, queue.Nothing)
		x.s.Withdraw()
		x.mustState(0, 1)
		second := x.waits(1, lock) // as the one that added in vain does next
		must(x, "order", second.order, queue.Restate)
		x.give(all)
		first.mustBeIn()
		second.mustBeIn()
		x.s.ReleaseShared(0, 1, 0)
		x.s.ReleaseShared(0, 1, 0)
	})
}

func TestShared_I13_NobodyComesInAfterTheDeadline(t *testing.T) {
	rwGates(t, func(x *fixture) {
		x.open(all)
		deadline := x.now() + time.Second
		must(x, "Renewed", x.s.Renewed(false, deadline), queue.Nothing)
		must(x, "AcquireShared before it", x.s.AcquireShared(deadline-1), true)
		must(x, "AcquireShared at it", x.s.AcquireShared(deadline), false)
		x.s.ReleaseShared(0, 1, 0)
		time.Sleep(time.Second)
		reader, writer := x.waits(1, lock), x.waits(all, hold)
		must(x, "a try", x.asks(1, queue.Try|hold).entered(), "refused")
		reader.mustWait()
		x.mustState(all, all) // a renewal is due, and no command
		x.s.Renewed(false, forever)
		reader.mustBeIn()
		writer.mustWait()
		x.s.ReleaseShared(0, 1, 0)
		writer.mustBeIn()
		x.s.Exit(writer.w)
	})
}

// S29: the end of the turn is seen by the clock, by the first to come after it.
func TestShared_I13_AContendedGateClosesAtTheEndOfTheTurn(t *testing.T) {
	rwGates(t, func(x *fixture) {
		x.open(all)
		end := x.s.Demand().TurnEnds
		must(x, "Contended", x.s.Contended(), queue.Nothing)
		must(x, "AcquireShared before the end", x.s.AcquireShared(end-1), true)
		must(x, "AcquireShared at the end", x.s.AcquireShared(end), false)
		time.Sleep(handOff)
		v := x.queues(1, lock)
		must(x, "order", v.order, queue.Restate)
		d := x.s.Demand()
		must(x, "one inside, who needs no place", d.Again, true)
		x.mustState(1, 1)
		must(x, "order of the last reader", x.s.ReleaseShared(0, 1, 0), queue.Restate)
		x.mustState(0, 1)
		v.wait().giveUp()
		must(x, "order", v.leftWith, queue.Restate)
		x.mustState(0, 0)
	})
}

// Nobody comes: Contended at the end of the turn gives the order.
func TestShared_I13_ContendedAtTheEndOfTheTurn(t *testing.T) {
	rwGates(t, func(x *fixture) {
		x.open(all)
		x.s.Contended()
		x.mustState(all, all)
		time.Sleep(x.s.Demand().TurnEnds - x.now())
		must(x, "Contended", x.s.Contended(), queue.Restate)
		must(x, "Contended again", x.s.Contended(), queue.Nothing)
		x.mustState(0, 0)
		must(x, "Shrink", x.s.Shrink(0), true)
		must(x, "units", x.s.Demand().Units, int64(0))
	})
}

// S29: if a unit is held for longer than a turn, a waiter elsewhere closes the gate immediately. When nobody waits any more, it opens.
func TestShared_I15_OpenUntilContendedAndAgainAfterwards(t *testing.T) {
	rwGates(t, func(x *fixture) {
		x.open(1)
		time.Sleep(2 * handOff)
		x.mustJoin(true)
		must(x, "Contended", x.s.Contended(), queue.Nothing) // the unit is used
		x.mustJoin(false)
		v := x.waits(1, lock)
		v.mustWait()
		x.s.Renewed(false, forever)
		v.mustBeIn()
		x.mustJoin(true)
	})
}

func TestShared_I15_TheFirstReaderOfATurnIsNoticed(t *testing.T) {
	rwGates(t, func(x *fixture) {
		v := x.waits(1, lock)
		x.give(1)
		v.mustBeIn()
		x.mustJoin(false)
		must(x, "the only one leaves", x.s.ReleaseShared(0, 1, 0), queue.Restate)
		must(x, "idle", x.s.Demand().Idle, true)
		must(x, "the second comes", x.comes(1, lock).order, queue.Restate)
		must(x, "idle", x.s.Demand().Idle, false)
		x.mustJoin(true)
		must(x, "order", x.s.ReleaseShared(0, 1, 0), queue.Nothing)
		must(x, "order", x.s.ReleaseShared(0, 1, 0), queue.Nothing)
		must(x, "idle", x.s.Demand().Idle, false)
		must(x, "admissions", int(x.s.Demand().Admissions), 3)
	})
}

// S27: a writer that waits closes the gate.
func TestShared_I15_ClosedWhileAWriterWaits(t *testing.T) {
	rwGates(t, func(x *fixture) {
		x.open(1)
		x.mustJoin(true)
		w := x.waits(all, hold)
		must(x, "order", w.order, queue.Restate)
		x.mustState(1, all)
		x.mustJoin(false)
		w.giveUp()
		w.mustHaveLeft(errGiveUp)
		must(x, "order", w.leftWith, queue.Restate)
		x.mustState(1, 1)
		x.mustJoin(true)
	})
}

// A waiter that was admitted, woken or only queued when its context ended passes on what was meant for it.
func TestShared_I4_WhoGivesUpPassesOn(t *testing.T) {
	rwGates(t, func(x *fixture) {
		x.give(all)
		w := x.comes(all, lock)
		heir, next, reader := x.queues(all, hold), x.waits(all, hold), x.waits(1, lock)
		first := heir
		if !x.p.Fair { // readers come before writers
			x.s.Exit(w.w)
			reader.mustBeIn()
			x.s.ReleaseShared(0, 1, 0)
		} else {
			x.s.Exit(w.w)
		}
		first.cancel(errGiveUp)
		first.wait().mustHaveLeft(errGiveUp)
		next.mustBeIn()
		x.s.Exit(next.w)
		reader.mustBeIn()
	})
}

// The heir was woken, a newcomer was quicker, and the heir's wake-up was in vain: it is woken again.
func TestShared_I4_AnHeirThatWasPassedIsWokenAgain(t *testing.T) {
	inGate(t, all, false, func(x *fixture) {
		x.give(all)
		w := x.comes(all, lock)
		heir := x.queues(all, lock)
		x.s.Exit(w.w)
		quick := x.comes(all, lock) // before the heir runs
		heir.wait().mustWait()
		x.s.Exit(quick.w)
		heir.mustBeIn()
		x.s.Exit(heir.w)
		x.mustJoin(true)
	})
}

// The gate is open for readers while an heir is on its way, and closes when the heir finds one inside.
func TestShared_I4_AnHeirClosesTheGate(t *testing.T) {
	inGate(t, all, false, func(x *fixture) {
		x.open(all)
		w := x.comes(all, lock)
		heir := x.queues(all, lock)
		x.s.Exit(w.w)
		x.mustJoin(true)
		heir.wait().mustWait()
		x.mustJoin(false)
		late := x.queues(1, lock) // does not pass it either
		x.s.ReleaseShared(0, 1, 0)
		heir.mustBeIn()
		late.wait().mustWait()
		x.s.Exit(heir.w)
		late.mustBeIn()
	})
}

// S27: FIFO.
func TestShared_I5_FairIsInTheOrderOfArrival(t *testing.T) {
	inGate(t, all, true, func(x *fixture) {
		x.give(all)
		w := x.comes(all, lock)
		second, third := x.queues(all, lock), x.queues(1, lock)
		x.s.Exit(w.w)
		x.mustJoin(false)
		late := x.queues(all, lock)
		second.wait().mustBeIn()
		third.wait().mustWait()
		x.s.Exit(second.w)
		third.mustBeIn()
		late.wait().mustWait()
		x.s.ReleaseShared(0, 1, 0)
		late.mustBeIn()
	})
}

func TestShared_I5_NobodyPassesOneThatDoesNotFit(t *testing.T) {
	for _, fair := range []bool{true, false} {
		inGate(t, 0, fair, func(x *fixture) {
			x.give(4)
			three := x.comes(3, hold)
			large, small := x.waits(4, hold), x.waits(1, hold)
			large.mustWait()
			small.mustWait()
			must(x, "a try", x.asks(1, queue.Try|hold).entered(), "refused")
			x.mustState(4, 7)
			must(x, "order", x.s.Exit(three.w), queue.Restate)
			large.mustBeIn()
			small.mustWait()
			x.mustState(4, 5)
			x.s.Exit(large.w)
			small.mustBeIn()
		})
	}
}

// First ones come back before those that wait, and nobody passes them.
func TestShared_I5_FirstComesBeforeAll(t *testing.T) {
	rwGates(t, func(x *fixture) {
		x.give(all)
		first, second := x.comes(all, lock), x.waits(all, lock)
		reader := x.waits(1, lock)
		x.s.LoseAll()
		x.s.Exit(first.w)
		first.w.Again()
		again := x.enterAs(first.w)
		x.linedUp(again, second, reader)
		x.give(all)
		again.wait().mustBeIn()
		second.mustWait()
		reader.mustWait()
		x.s.Exit(again.w)
	})
}

// S27: when a writer leaves, the readers that wait come in together: in a fair Gate those before the next writer, else all.
func TestShared_I16_ReadersComeInTogether(t *testing.T) {
	rwGates(t, func(x *fixture) {
		x.give(all)
		w := x.comes(all, lock)
		a, b := x.waits(1, lock), x.waits(1, hold)
		writer := x.waits(all, lock)
		c := x.waits(1, lock)
		x.s.Exit(w.w)
		a.mustBeIn()
		b.mustBeIn()
		writer.mustWait()
		if x.p.Fair {
			c.mustWait()
		} else {
			c.mustBeIn()
			x.s.ReleaseShared(0, 1, 0)
		}
		x.s.ReleaseShared(0, 1, 0)
		writer.mustWait()
		x.s.Exit(b.w)
		writer.mustBeIn()
		x.s.Exit(writer.w)
		c.mustBeIn()
	})
}

// S27: the next writer is the first of the queue, and the readers behind it come in before it after another writer, unless
// the Gate is fair.
func TestShared_I16_AfterAWriterReadersComeFirst(t *testing.T) {
	rwGates(t, func(x *fixture) {
		x.give(all)
		w := x.comes(all, lock)
		writer, reader := x.waits(all, lock), x.waits(1, lock)
		x.s.Exit(w.w)
		first, then := reader, writer
		if x.p.Fair {
			first, then = writer, reader
		}
		first.mustBeIn()
		then.mustWait()
	})
}

func TestShared_I6_PassedForTooLongIsPassedNoMore(t *testing.T) {
	for waits, owed := range map[time.Duration]bool{queue.StarvationThreshold: false, queue.StarvationThreshold + 1: true} {
		inGate(t, all, false, func(x *fixture) {
			x.give(all)
			w := x.comes(all, lock)
			heir := x.queues(all, lock)
			x.s.Exit(w.w)
			w = x.comes(all, lock) // passes it
			time.Sleep(waits)
			heir.wait().mustWait()
			reader := x.waits(1, lock)
			x.s.Exit(w.w)
			if owed {
				heir.mustBeIn()
				must(x, "used", x.s.Demand().Used, int64(all))
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
	rwGates(t, func(x *fixture) {
		a := x.waits(1, lock)
		must(x, "first", a.order, queue.Restate)
		b := x.waits(1, lock)
		must(x, "another reader", b.order, queue.Nothing)
		c := x.waits(all, hold)
		must(x, "a writer behind", c.order, queue.Nothing)
		must(x, "Granted", x.s.Granted(1, false, forever), queue.Restate)
		x.mustState(1, all)
		if first, second := x.s.ReleaseShared(0, 1, 0), x.s.ReleaseShared(0, 1, 0); first != queue.Nothing || second != queue.Nothing {
			x.t.Fatal("the leave of a reader beside a writer that wants all units changes nothing")
		}
		must(x, "Granted", x.s.Granted(all, false, forever), queue.Restate)
		c.mustBeIn()
		d := x.waits(all, lock)
		must(x, "with all units", d.order, queue.Nothing)
		must(x, "with all units", x.s.Exit(c.w), queue.Nothing)
		d.mustBeIn()
		must(x, "with all units", d.leftWith, queue.Nothing)
		must(x, "with all units", x.s.Exit(d.w), queue.Nothing)
	})
}

// The last reader has left the word and not yet taken the lock. Who states meanwhile that the units go back may be slower
// than its program, which ends right after its RUnlock.
func TestShared_I2_TheLastReaderIsOrdered(t *testing.T) {
	for name, turnOver := range map[string]bool{"the turn is over": true, "it was the only one": false} {
		t.Run(name, func(t *testing.T) {
			for _, goneBack := range []bool{false, true} {
				rwGates(t, func(x *fixture) {
					x.give(all)
					x.comes(1, lock)
					if turnOver {
						x.comes(1, lock)
						x.s.ReleaseShared(0, 1, 0)
						x.s.Contended()
						time.Sleep(handOff)
					}
					left, now := make(chan queue.Order, 1), x.now()
					x.s.WhileLocked(func() {
						inside := x.s.Raw()
						go func() { left <- x.s.ReleaseShared(now, 1, 0) }()
						for x.s.Raw() == inside {
							runtime.Gosched()
						}
						must(x, "another transition", x.s.RenewedLocked(turnOver), queue.Restate)
						if goneBack {
							x.s.ShrinkLocked(0)
						}
					})
					must(x, "the reader", <-left, queue.Restate)
				})
			}
		})
	}
}

// The turn ends while the gate is open, and nobody has noticed that when the last reader leaves.
func TestShared_I2_TheLastReaderNoticesTheEndOfTheTurn(t *testing.T) {
	rwGates(t, func(x *fixture) {
		x.open(all)
		x.mustJoin(true)
		x.s.Contended()
		must(x, "in the turn", x.s.ReleaseShared(x.now(), 1, 0), queue.Nothing)
		x.mustJoin(true)
		x.mustJoin(true)
		time.Sleep(handOff)
		must(x, "not the last", x.s.ReleaseShared(x.now(), 1, 0), queue.Nothing)
		must(x, "the last", x.s.ReleaseShared(x.now(), 1, 0), queue.Restate)
		x.mustState(0, 0)
	})
}

func TestShared_I10_ATryWaitsForNobody(t *testing.T) {
	rwGates(t, func(x *fixture) {
		for _, kind := range []queue.Kind{queue.Try | hold, queue.Try | lock} {
			x.give(all)
			w := x.comes(all, kind)
			must(x, "a writer beside a writer", x.asks(all, kind).refused, queue.ErrRefused)
			must(x, "a reader beside a writer", x.asks(1, kind).refused, queue.ErrRefused)
			x.s.Exit(w.w)
			r := x.comes(1, kind)
			must(x, "a writer beside a reader", x.asks(all, kind).refused, queue.ErrRefused)
			x.s.Exit(r.w)
			x.comes(1, lock)
			x.comes(1, lock)
			x.s.ReleaseShared(0, 1, 0)
			x.mustJoin(true) // a refused try leaves the gate as it was
			must(x, "a writer beside a reader", x.asks(all, kind).refused, queue.ErrRefused)
			x.mustJoin(true)
			x.s.ReleaseShared(0, 1, 0)
			x.s.ReleaseShared(0, 1, 0)
			x.s.ReleaseShared(0, 1, 0)
			x.s.Contended()
			time.Sleep(handOff)
			must(x, "a reader after the turn", x.asks(1, kind).refused, queue.ErrRefused)
			x.s.Shrink(0)
			x.give(1)
			x.comes(1, lock)
			must(x, "a writer beside a reader with one unit", x.asks(all, kind).refused, queue.ErrRefused)
			x.s.ReleaseShared(0, 1, 0)
			x.s.Shrink(0)
		}
	})
}

// A Try that only units keep out waits for one answer.
func TestShared_I10_ATryWaitsForOneAnswer(t *testing.T) {
	rwGates(t, func(x *fixture) {
		try := x.waits(all, queue.Try|hold)
		must(x, "order", try.order, queue.Restate)
		must(x, "Try", x.s.Demand().Try, true)
		must(x, "a second one", x.asks(1, queue.Try|hold).refused, queue.ErrRefused)
		behind := x.waits(1, lock)
		must(x, "Refuse", x.s.Refuse(errRefused), queue.Restate)
		try.mustHaveLeft(errRefused)
		behind.mustWait()
		x.mustState(0, 1)
		must(x, "Try", x.s.Demand().Try, false)
		x.give(1)
		behind.mustBeIn()
		x.s.ReleaseShared(0, 1, 0)
		try = x.waits(all, queue.Try|hold) // beside an unused unit
		x.mustState(1, all)
		x.give(all)
		try.mustBeIn()
		x.s.Exit(try.w)
	})
}

// S29: a grant admits whom it was for, and begins a turn for a process that had nothing or was not told.
func TestShared_I14_AGrantAdmitsWhomItWasFor(t *testing.T) {
	rwGates(t, func(x *fixture) {
		x.open(1)
		x.mustJoin(true)
		time.Sleep(handOff)
		x.s.Contended()
		v, w := x.waits(1, lock), x.waits(all, lock)
		v.mustWait()
		must(x, "again", x.s.Demand().Again, true)
		// The place has come to the front, and another client waits behind it. The process knew of a waiter before, so its turn continues.
		x.s.Granted(1, true, forever)
		v.mustBeIn()
		w.mustWait()
		must(x, "the turn is over", x.s.Demand().TurnEnds <= x.now(), true)
		x.mustJoin(false)
		x.mustState(1, all)
		x.s.ReleaseShared(0, 1, 0)
		x.s.ReleaseShared(0, 1, 0)
		must(x, "Shrink", x.s.Shrink(0), true)
		must(x, "Granted", x.s.Granted(all, true, forever), queue.Restate) // a new turn
		w.mustBeIn()
		next := x.waits(all, lock)
		x.s.Exit(w.w)
		next.mustBeIn()
		time.Sleep(handOff)
		last := x.waits(all, lock)
		x.s.Exit(next.w)
		last.mustWait()
		x.mustState(0, all)
	})
}

// Of a Gate that is not fair, too: who is only woken could find the turn over.
func TestShared_I14_WhomAGrantIsForDoesNotRunFirst(t *testing.T) {
	inGate(t, all, false, func(x *fixture) {
		v := x.queues(all, lock)
		x.s.Granted(all, true, forever)
		time.Sleep(2 * handOff)
		x.s.Contended()
		v.wait().mustBeIn()
	})
}

func TestShared_I8_ALossEndsWhoCanBeNotified(t *testing.T) {
	rwGates(t, func(x *fixture) {
		x.give(all)
		r := x.comes(1, hold)
		was := x.s.Demand().Grant
		must(x, "the waiter's grant", r.w.Grant, was)
		x.s.LoseAll()
		must(x, "another grant", x.s.Demand().Grant != was, true)
		must(x, "lost", x.s.Demand().Lost, false)
		w := x.waits(all, hold)
		x.give(all)
		w.mustBeIn()
		must(x, "a stale exit", x.s.Exit(r.w), queue.Nothing)
		must(x, "used", x.s.Demand().Used, int64(all))
		x.s.LoseAll()
		next := x.waits(all, hold)
		x.give(all)
		next.mustBeIn()
		must(x, "a stale exit", x.s.Exit(w.w), queue.Nothing)
		must(x, "a stale downgrade", x.s.Downgrade(w.w.Stay), queue.Nothing)
		must(x, "used", x.s.Demand().Used, int64(all))
		x.s.Exit(next.w)
	})
	inGate(t, 0, true, func(x *fixture) {
		x.give(4)
		three := x.comes(3, hold)
		x.s.LoseAll()
		x.give(4)
		x.comes(4, hold)
		x.s.Exit(three.w)
		must(x, "used", x.s.Demand().Used, int64(4))
	})
}

func TestShared_I8_WhoCannotBeNotifiedKeepsAllOut(t *testing.T) {
	mustKeepOut := func(x *fixture, leave func()) {
		x.t.Helper()
		x.s.LoseAll()
		v := x.waits(1, lock)
		x.mustState(0, 0)
		must(x, "lost", x.s.Demand().Lost, true)
		must(x, "a try", x.asks(1, queue.Try|hold).entered(), "refused")
		x.give(all) // nobody asked for it
		v.mustWait()
		x.mustState(0, 0)
		leave()
		v.mustBeIn()
		must(x, "lost", x.s.Demand().Lost, false)
		must(x, "used", x.s.Demand().Used, int64(1))
		must(x, "its grant", v.w.Grant, x.s.grants) // the one that came meanwhile: it can be lost, too
		must(x, "the grant", x.s.Demand().Grant, x.s.grants)
	}
	rwGates(t, func(x *fixture) {
		x.open(all)
		x.mustJoin(true)
		x.comes(1, lock)
		x.comes(1, hold)
		mustKeepOut(x, func() {
			x.s.ReleaseShared(0, 1, 0)
			must(x, "one is left", x.s.Demand().Lost, true)
			x.s.ReleaseShared(0, 1, 0)
		})
	})
	rwGates(t, func(x *fixture) {
		x.give(all)
		w := x.comes(all, lock)
		mustKeepOut(x, func() { x.s.Exit(w.w) })
	})
	inGate(t, 0, true, func(x *fixture) {
		x.give(all)
		x.comes(3, lock)
		mustKeepOut(x, func() { x.s.ReleaseShared(0, 2, 0); x.s.ReleaseShared(0, 1, 0) })
		x.s.ReleaseShared(0, 1, 0)
	})
}

func TestShared_I17_WhatIsGivenBackIsNotUsed(t *testing.T) {
	rwGates(t, func(x *fixture) {
		x.open(all)
		x.mustJoin(true)
		must(x, "used", x.s.Shrink(0), false)
		must(x, "units", x.s.Demand().Units, int64(all))
		x.mustJoin(true)
		must(x, "all but one", x.s.Shrink(1), true)
		x.mustJoin(true)
		must(x, "a writer", x.queues(all, hold).order, queue.Restate)
		x.mustState(1, all)
		for range 3 {
			x.s.ReleaseShared(0, 1, 0)
		}
		must(x, "unused", x.s.Shrink(0), true)
		x.mustJoin(false)
		x.mustState(0, all)
		must(x, "more than there is", x.s.Shrink(all), true)
		must(x, "units", x.s.Demand().Units, int64(0))
		x.s.Fail(errClosed)
	})
	inGate(t, 0, true, func(x *fixture) {
		x.give(5)
		x.comes(2, hold)
		must(x, "used", x.s.Shrink(1), false)
		must(x, "all others", x.s.Shrink(2), true)
		must(x, "units", x.s.Demand().Units, int64(2))
	})
}

func TestShared_I16_NobodyComesBetweenAWriterAndTheReaderItBecomes(t *testing.T) {
	for _, kind := range []queue.Kind{hold, lock} {
		rwGates(t, func(x *fixture) {
			x.give(all)
			w := x.comes(all, kind)
			writer, reader := x.waits(all, lock), x.waits(1, lock)
			must(x, "Downgrade", x.s.Downgrade(w.w.Stay), queue.Nothing)
			writer.mustWait()
			must(x, "Downgrade again", x.s.Downgrade(w.w.Stay), queue.Nothing)
			if x.p.Fair {
				reader.mustWait()
			} else {
				reader.mustBeIn()
				x.s.ReleaseShared(0, 1, 0)
			}
			must(x, "used", x.s.Demand().Used, int64(1))
			x.s.Exit(w.w)
			writer.mustBeIn()
			x.s.Exit(writer.w)
			reader.mustBeIn()
		})
	}
}

// If another process waits, a downgrade gives the units back that the reader does not need.
func TestShared_DowngradeWhenContended(t *testing.T) {
	rwGates(t, func(x *fixture) {
		x.give(all)
		w := x.comes(all, hold)
		time.Sleep(handOff)
		must(x, "Contended", x.s.Contended(), queue.Nothing)
		must(x, "Downgrade", x.s.Downgrade(w.w.Stay), queue.Restate)
		x.mustState(1, 1)
		must(x, "Shrink", x.s.Shrink(1), true)
		must(x, "Exit", x.s.Exit(w.w), queue.Restate)
		x.mustState(0, 0)
	})
}

// A waiter that is admitted after its context has ended has not come in.
func TestShared_I11_AnEndedContextNeverComesIn(t *testing.T) {
	rwGates(t, func(x *fixture) {
		for _, need := range []int32{1, all} {
			for _, kind := range []queue.Kind{hold, lock} {
				v := x.queues(need, kind)
				v.cancel(errGiveUp)
				x.give(all)
				v.wait().mustHaveLeft(errGiveUp)
				must(x, "used", x.s.Demand().Used, int64(0))
				must(x, "Shrink", x.s.Shrink(0), true)
			}
		}
	})
}

func TestShared_I3_LeavesTheQueueOnce(t *testing.T) {
	rwGates(t, func(x *fixture) {
		x.give(1)
		x.comes(1, lock)
		var line []*party
		for range 5 {
			line = append(line, x.waits(all, hold))
		}
		for i, leaver := range []int{0, 4, 2} {
			line[leaver].giveUp()
			line[leaver].mustHaveLeft(errGiveUp)
			line[leaver].giveUp()
			must(x, "waiting", x.s.Demand().Waiting, 4-i)
		}
		x.linedUp(line[1], line[3])
		locked := x.waits(all, lock)
		must(x, "Fail", x.s.Fail(errClosed), queue.Nothing)
		line[1].mustHaveLeft(errClosed)
		line[3].mustHaveLeft(errClosed)
		x.linedUp(locked)
		must(x, "Fail", x.s.Fail(errClosed), queue.Nothing)
		x.give(all)
		x.s.ReleaseShared(0, 1, 0)
		locked.mustBeIn()
	})
}

// A failure that was decided is returned, though the context has ended, too.
func TestShared_AFailureComesBeforeTheContext(t *testing.T) {
	rwGates(t, func(x *fixture) {
		v := x.queues(1, hold)
		x.s.Fail(errClosed)
		v.cancel(errGiveUp)
		v.wait().mustHaveLeft(errClosed)
	})
}

func TestShared_MistakesPanic(t *testing.T) {
	rwGates(t, func(x *fixture) {
		x.give(all)
		mustPanic(x, "Leave", func() { x.s.ReleaseShared(0, 1, 0) })
		must(x, "the word is whole", x.s.Demand().Readers, int64(0))
		mustPanic(x, "no need", func() { x.asks(0, lock) })
		v := x.comes(1, hold)
		mustPanic(x, "used", func() { x.enterAs(v.w) })
		mustPanic(x, "nil", func() { x.s.Fail(nil) })
		mustPanic(x, "Release", func() { x.s.ReleaseShared(0, 1, 0) })
		x.s.Exit(v.w)
		v.w.Reset()
		v.w.Stay = &queue.Stay{Need: 1, Kind: hold}
		must(x, "after Reset", x.enterAs(v.w).entered(), "in")
	})
}

// Who ends its entries one by one is inside until it Leaves, and enters no more after the last one. One that has to leave
// before that keeps them.
func TestShared_I9_EntriesAndStay(t *testing.T) {
	rwGates(t, func(x *fixture) {
		x.give(all)
		w := x.comes(all, hold)
		must(x, "Reenter", x.s.Reenter(w.w.Stay, false), nil)
		end := func(wantLeft int, want bool) {
			x.t.Helper()
			left, ok := x.s.EndEntry(w.w.Stay)
			must(x, "left", left, wantLeft)
			must(x, "ended", ok, want)
			must(x, "entries", x.s.Entries(w.w.Stay), left)
		}
		end(1, true)
		end(0, true)
		end(0, false)
		must(x, "Reenter", x.s.Reenter(w.w.Stay, false), queue.ErrNotOwner)
		must(x, "inside", x.s.Owner(), w.w.Stay)
		r := x.waits(1, lock)
		x.s.Leave(w.w.Stay)
		r.mustBeIn()
		x.s.ReleaseShared(0, 1, 0)
		one, two := x.comes(1, hold), x.comes(1, hold)
		x.s.Leave(one.w.Stay)
		must(x, "a second Leave", x.s.Leave(one.w.Stay), queue.Nothing)
		must(x, "the other one is inside", x.s.Demand().Readers, int64(1))
		x.s.Leave(two.w.Stay)

		w = x.comes(all, hold)
		x.s.Leave(w.w.Stay)
		must(x, "Reenter", x.s.Reenter(w.w.Stay, false), queue.ErrNotOwner)
		end(0, true)
		must(x, "Release", x.s.Exit(w.w), queue.Nothing)
	})
}
