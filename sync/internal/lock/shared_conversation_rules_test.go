package lock

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom/queue"
)

// unitsPlay is play for units: a semaphore of 5 with a gate that the test speaks for.
type unitsPlay struct {
	t   *testing.T
	c   UnitsConversation
	d   queue.Demand
	now Moment
}

func newUnitsPlay(t *testing.T) *unitsPlay {
	terms := Terms{Lease: 30 * time.Second, Call: 2 * time.Second, Life: 30 * time.Second, Margin: 1500 * ms, Late: time.Second}
	return &unitsPlay{t: t, c: UnitsConversation{Terms: terms, Capacity: 5}}
}

// demands sets what the gate says: used by those inside, want of the first waiter (0: nobody waits).
func (p *unitsPlay) demands(used, want int64) {
	p.d = queue.Demand{Used: used, Keep: p.c.Units, Want: max(p.c.Units, want), Admissions: p.d.Admissions}
	if want > 0 {
		p.d.Waiting = 1
	}
}

// over makes the gate's turn be over.
func (p *unitsPlay) over() {
	p.d.Contended, p.d.Keep = true, p.d.Used
	if p.d.Waiting > 0 && p.d.Want <= p.c.Units && p.d.Want <= p.d.Used {
		p.d.Again = true
	}
}

// states demands that the statement n is said now: what it has, keeps and wants.
func (p *unitsPlay) states(n, since uint64, have, keep, want int64) {
	p.t.Helper()
	p.saysThis(UnitsStatement{N: n, Since: since, Have: have, Keep: keep, Want: want})
}

func (p *unitsPlay) saysThis(want UnitsStatement) {
	p.t.Helper()
	c, s, until := p.c.Next(&p.d, want.N, p.now)
	p.c = c
	if s == nil {
		p.t.Fatalf("nothing is stated until %v, want %+v", until, want)
	}
	if *s != want {
		p.t.Fatalf("stated %+v, want %+v", *s, want)
	}
}

// quiet demands that nothing is said until the moment until.
func (p *unitsPlay) quiet(until Moment) {
	p.t.Helper()
	c, s, at := p.c.Next(&p.d, 1000, p.now)
	if p.c = c; s != nil || at != until {
		p.t.Fatalf("stated %+v, or waits until %v, want %v", s, at, until)
	}
}

func (p *unitsPlay) hears(h UnitsNews, want Event) {
	p.t.Helper()
	c, e := p.c.Heard(h, p.now)
	if p.c = c; e != want {
		p.t.Fatalf("event %v, want %v", e, want)
	}
}

// has gives the conversation so many units by statement n, which are all used.
func (p *unitsPlay) has(n uint64, units int64) {
	p.t.Helper()
	p.demands(0, units)
	p.states(n, p.c.since, 0, 0, units)
	p.hears(UnitsNews{Word: Has, N: n, Units: units, Lease: 2 * time.Second}, Granted)
	p.demands(units, 0)
}

// S12: one statement is open at a time, and only the answer to the last one counts. Without an answer another one follows:
// the first immediately, the next after growing pauses.
func TestUnits_S12_OnlyTheLastAnswerCounts(t *testing.T) {
	p := newUnitsPlay(t)
	p.demands(0, 2)
	p.states(10, 0, 0, 0, 2)
	p.quiet(p.c.over)
	p.hears(UnitsNews{Word: Silence, N: 10, After: 20 * ms}, None)
	p.states(11, 0, 0, 0, 2)
	p.hears(UnitsNews{Word: Has, N: 10, Units: 2, Lease: 2 * time.Second}, None)
	p.hears(UnitsNews{Word: Silence, N: 11, After: 20 * ms}, None)
	p.quiet(20 * ms)
	p.now = 20 * ms
	p.states(12, 0, 0, 0, 2)
	p.hears(UnitsNews{Word: Has, N: 12, Units: 2, Lease: 2 * time.Second}, Granted)
}

// S13: what is stated, by what is had and demanded.
func TestUnits_S13_WhatIsStated(t *testing.T) {
	p := newUnitsPlay(t)
	p.demands(0, 2)
	p.states(10, 0, 0, 0, 2) // ask
	p.hears(UnitsNews{Word: Waits, N: 10, After: time.Second}, None)
	p.quiet(time.Second)
	p.now = time.Second
	p.saysThis(UnitsStatement{N: 11, Place: true, Keep: 2, Want: 2}) // confirm
	p.hears(UnitsNews{Word: Has, N: 11, Units: 2, Lease: 2 * time.Second}, Granted)
	p.demands(2, 4)
	p.states(12, 11, 2, 4, 4) // more
	p.hears(UnitsNews{Word: Waits, N: 12, Units: 2, Lease: 30 * time.Second, After: time.Second}, None)
	p.demands(2, 0)
	p.states(13, 12, 2, 2, 2) // out of the line
	p.hears(UnitsNews{Word: Has, N: 13, Units: 2, Lease: 30 * time.Second}, None)
	p.demands(1, 3)
	p.d.Want = 3
	p.over()
	p.states(14, 13, 2, 1, 3) // turn
	p.hears(UnitsNews{Word: Waits, N: 14, Units: 1, Lease: 30 * time.Second, After: time.Second}, None)
	p.demands(0, 0)
	p.d.Idle = true
	p.states(15, 14, 1, 0, 0) // release
	p.hears(UnitsNews{Word: HasNot, N: 15}, None)
	p.quiet(never)
	if !p.c.Settled() {
		t.Error("not settled")
	}
}

// S13: fewer units than it has, or an older record, are a loss. A release that finds one says so.
func TestUnits_S13_ALoss(t *testing.T) {
	p := newUnitsPlay(t)
	p.has(10, 2)
	p.c = p.c.soon(p.now)
	p.states(11, 10, 2, 2, 2)
	p.hears(UnitsNews{Word: Lost, N: 11}, Vanished)
	p.demands(0, 1)
	p.quiet(p.c.over) // until the owners are notified
	p.hears(UnitsNews{Word: Ended, N: 10}, None)
	p.states(12, 10, 0, 0, 1)
	p.hears(UnitsNews{Word: Has, N: 12, Units: 1, Lease: 2 * time.Second}, Granted)
	p.demands(0, 0)
	p.d.Idle = true
	p.states(13, 12, 1, 0, 0)
	p.hears(UnitsNews{Word: Lost, N: 13}, Missing)
	p.states(14, 12, 0, 0, 0) // something else may be there
	p.hears(UnitsNews{Word: HasNot, N: 14}, None)
}

// S14: what is sent is given. A call for 4 counts for nothing once 3 are asked for, and one for 3 does while 4 are.
func TestUnits_S14_WhatIsSentIsGiven(t *testing.T) {
	for _, later := range []int64{3, 4} {
		p := newUnitsPlay(t)
		p.demands(0, 7-later)
		p.states(10, 0, 0, 0, 7-later)
		p.hears(UnitsNews{Word: Waits, N: 10, After: time.Second}, None)
		p.demands(0, later)
		p.saysThis(UnitsStatement{N: 11, Place: true, Keep: later, Want: later})
		if later == 3 {
			p.hears(UnitsNews{Word: Called, N: 10, Units: 4, Lease: 2 * time.Second}, None)
			if p.c.Units != 0 {
				t.Errorf("%d units by a call above what is kept", p.c.Units)
			}
			continue
		}
		p.hears(UnitsNews{Word: Called, N: 10, Units: 3, Lease: 2 * time.Second}, Granted)
	}
	p := newUnitsPlay(t)
	p.has(10, 4)
	p.demands(1, 0)
	p.over()
	p.states(11, 10, 4, 1, 1)
	if p.c.Units != 1 {
		t.Errorf("relies on %d units while it gives all but 1", p.c.Units)
	}
}

// S15: a lease counts from before the statement was sent that is answered, or that the call names.
func TestUnits_S15_CountsFromTheSend(t *testing.T) {
	p := newUnitsPlay(t)
	p.demands(0, 2)
	p.states(10, 0, 0, 0, 2)
	p.now = 300 * ms
	p.hears(UnitsNews{Word: Waits, N: 10, After: time.Second}, None)
	p.now = 1300 * ms
	p.saysThis(UnitsStatement{N: 11, Place: true, Keep: 2, Want: 2})
	p.hears(UnitsNews{Word: Called, N: 10, Units: 2, Lease: 2 * time.Second}, None)
	if p.c.usable || p.c.Grant.Sent != 0 {
		t.Errorf("%+v is relied on", p.c.Grant)
	}
	p.hears(UnitsNews{Word: Has, N: 11, Units: 2, Lease: 1800 * ms}, Granted)
	if g := p.c.Grant; g.Until(p.c.Margin) != 1300*ms+1800*ms-180*ms {
		t.Errorf("relied on until %v", g.Until(p.c.Margin))
	}
}

// S15, P4: where too little is left, a renewal comes before anybody enters.
func TestUnits_S15_TooLittleIsLeft(t *testing.T) {
	p := newUnitsPlay(t)
	p.demands(0, 2)
	p.states(10, 0, 0, 0, 2)
	p.now = 1100 * ms
	p.hears(UnitsNews{Word: Has, N: 10, Units: 2, Lease: 2 * time.Second}, None)
	p.demands(0, 2)
	p.d.Keep = 0 // the gate does not know of them
	p.states(11, 10, 2, 2, 2)
	p.hears(UnitsNews{Word: Has, N: 11, Units: 2, Lease: 30 * time.Second}, Granted)
}

// S16: a renewal keeps what is used, and takes back what no answer has said.
func TestUnits_S16_ARenewal(t *testing.T) {
	p := newUnitsPlay(t)
	p.has(10, 2)
	p.hears(UnitsNews{Word: Retry}, None)
	p.states(11, 10, 2, 2, 2)
	p.hears(UnitsNews{Word: Has, N: 11, Units: 2, Lease: 30 * time.Second}, None)
	if g := p.c.Grant; g.Unit != 10 || g.Until(p.c.Margin) != 28500*ms {
		t.Errorf("%+v", g)
	}
}

// P9: after a loss nothing is stated before the confirmed lease is over, or all have exited.
func TestUnits_P9_NotBefore(t *testing.T) {
	p := newUnitsPlay(t)
	p.has(10, 2)
	p.hears(UnitsNews{Word: Ended, N: 10, Lease: 150 * ms}, None)
	p.demands(0, 2)
	p.quiet(150 * ms)
	p.hears(UnitsNews{Word: Called, N: 10, Units: 2, Lease: 2 * time.Second}, None)
	p.hears(UnitsNews{Word: Exited, N: 10}, None)
	p.states(11, 10, 0, 0, 2)
}

// S22: that another client waits is known by an answer, or by a message, which may come before the answer. While others
// may come in without Redis, that is asked for each second.
func TestUnits_S22_Contended(t *testing.T) {
	p := newUnitsPlay(t)
	p.demands(0, 1)
	p.states(10, 0, 0, 0, 1)
	p.c = p.c.NoteContended(10)
	p.hears(UnitsNews{Word: Has, N: 10, Units: 1, Lease: 2 * time.Second}, Granted)
	if !p.c.Contended {
		t.Error("a message that has overtaken its answer is forgotten")
	}
	p = newUnitsPlay(t)
	p.has(10, 1)
	p.d.Readers = 1
	p.quiet(10 * ms)
	p.now = time.Second
	p.states(11, 10, 1, 1, 1)
	p.hears(UnitsNews{Word: Has, N: 11, Units: 1, Lease: 30 * time.Second, Contended: true}, None)
	p.d.Contended = true // as the gate knows then
	p.now = 3 * time.Second
	p.quiet(never)
}

// S23: readers inside do not keep their process from waiting in line again, so that new ones come in when the writer leaves.
func TestUnits_S23_Again(t *testing.T) {
	p := newUnitsPlay(t)
	p.has(10, 1)
	p.demands(1, 1)
	p.over()
	p.saysThis(UnitsStatement{N: 11, Since: 10, Have: 1, Keep: 1, Want: 1, Again: true})
	p.hears(UnitsNews{Word: Waits, N: 11, Units: 1, Lease: 30 * time.Second, After: time.Second}, None)
	p.quiet(time.Second)
	p.demands(0, 1)
	p.over()
	p.d.Again = false
	p.states(12, 11, 1, 0, 1) // the last one has left: its unit goes, and its place stays
}

// S24: a try is one ask that does not wait in line.
func TestUnits_S24_ATry(t *testing.T) {
	p := newUnitsPlay(t)
	p.demands(0, 2)
	p.d.Try = true
	p.saysThis(UnitsStatement{N: 10, Want: 2, Try: true})
	p.hears(UnitsNews{Word: HasNot, N: 10}, None)
	p.demands(0, 0)
	p.quiet(never)
}

// S28: where somebody of this process has to leave first, nothing is stated. With one unit all are, immediately.
func TestUnits_S28_FirstSomebodyLeaves(t *testing.T) {
	p := newUnitsPlay(t)
	p.has(10, 4)
	p.demands(4, 6)
	p.quiet(never)
	p = newUnitsPlay(t)
	p.has(10, 1)
	p.demands(1, p.c.Capacity)
	p.states(11, 10, 1, p.c.Capacity, p.c.Capacity)
}

// S30: units that nobody uses go back after 10 ms, and immediately if the gate says so. A use between two checks counts.
func TestUnits_S30_Linger(t *testing.T) {
	p := newUnitsPlay(t)
	p.has(10, 2)
	p.demands(0, 0)
	p.quiet(10 * ms)
	p.now = 9 * ms
	p.d.Admissions++
	p.quiet(19 * ms)
	p.now = 19 * ms
	p.states(11, 10, 2, 0, 0)

	p = newUnitsPlay(t)
	p.has(10, 2)
	p.demands(0, 0)
	p.d.Idle = true
	p.states(11, 10, 2, 0, 0)
}

// S30: units that nobody uses are never renewed.
func TestUnits_S30_NoRenewalOfWhatNobodyUses(t *testing.T) {
	p := newUnitsPlay(t)
	p.has(10, 2)
	p.demands(0, 0)
	p.hears(UnitsNews{Word: Retry}, None)
	p.states(11, 10, 2, 0, 0)
}

// S31: what the goroutines of a process do while a statement is open is one statement.
func TestUnits_S31_OneStatement(t *testing.T) {
	p := newUnitsPlay(t)
	p.has(10, 2)
	p.hears(UnitsNews{Word: Retry}, None)
	p.states(11, 10, 2, 2, 2)
	for _, used := range []int64{1, 2, 0, 1} {
		p.demands(used, 3)
		p.quiet(never)
	}
	p.hears(UnitsNews{Word: Has, N: 11, Units: 2, Lease: 30 * time.Second}, None)
	p.states(12, 11, 2, 3, 3)
}

// What may be left is cleaned up, until that is answered or its time has passed.
func TestUnits_P8_CleansUp(t *testing.T) {
	p := newUnitsPlay(t)
	p.demands(0, 2)
	p.states(10, 0, 0, 0, 2)
	p.hears(UnitsNews{Word: Silence, N: 10, After: 20 * ms}, None)
	p.demands(0, 0)
	p.states(11, 0, 0, 0, 0)
	p.hears(UnitsNews{Word: Silence, N: 11, After: 20 * ms}, None)
	p.states(12, 0, 0, 0, 0)
	p.hears(UnitsNews{Word: Silence, N: 12, After: 20 * ms}, None)
	p.quiet(20 * ms)
	p.now = 33 * time.Second
	p.quiet(33 * time.Second)
	p.hears(UnitsNews{Word: Clock}, GivenUp)
	if !p.c.Settled() {
		t.Error("not settled")
	}
}
