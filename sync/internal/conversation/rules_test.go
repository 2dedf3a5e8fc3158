package conversation

import (
	"fmt"
	"testing"
	"time"
)

// What goroutines demand of one unit.
var (
	quiet   = Demand{}
	pending = Demand{Want: 1}
	owned   = Demand{Keep: 1, Want: 1}
	seizes  = Demand{Want: 1, Seize: true}
)

const kept = 2 * second // the lease of a call

// play is a conversation with what happens to it in order. Each call to it fails the test if something else follows.
type play struct {
	t   *testing.T
	c   Conversation
	now Moment
}

func newPlay(t *testing.T) *play {
	return &play{t: t, c: Conversation{Terms: &Terms{Lease: 30 * second, Call: kept, Life: 30 * second, Margin: 1500 * ms, Late: second}}}
}

// sends demands that a command is sent now: see Command.String.
func (p *play) sends(d Demand, want string) {
	p.t.Helper()
	var n uint64
	fmt.Sscan(want, &n)
	c, s, until := p.c.Next(d, n, p.now)
	if p.c = c; s.N == 0 {
		p.t.Fatalf("nothing is sent until %v, want %s", until, want)
	}
	if sent := s.String(); sent != want {
		p.t.Fatalf("sent %q, want %q", sent, want)
	}
}

// isSilent demands that nothing is sent until the moment until.
func (p *play) isSilent(d Demand, until Moment) {
	p.t.Helper()
	c, s, at := p.c.Next(d, 1000, p.now)
	if p.c = c; s.N > 0 || at != until {
		p.t.Fatalf("sent %v, or waits until %v, want %v", s, at, until)
	}
}

func (p *play) handles(e Event, want Effect) {
	p.t.Helper()
	c, f := p.c.Handle(e, p.now)
	if p.c = c; f != want {
		p.t.Fatalf("effect %v, want %v", f, want)
	}
}

func (p *play) is(s State) {
	p.t.Helper()
	if p.c.State != s {
		p.t.Errorf("state %v, want %v", p.c.State, s)
	}
}

// Events.
func has(n, record uint64, units int64, lease time.Duration) Event {
	return Event{Kind: Has, N: n, Record: record, Units: units, Lease: lease}
}

func called(n uint64, units int64) Event {
	return Event{Kind: Called, N: n, Record: n, Units: units, Lease: kept}
}
func waits(n uint64) Event   { return Event{Kind: Waits, N: n, After: second} }
func nothing(n uint64) Event { return Event{Kind: HasNot, N: n} }
func lost(n uint64) Event    { return Event{Kind: Lost, N: n} }
func silence(n uint64) Event { return Event{Kind: Silence, N: n, After: 20 * ms} }
func failed(n uint64) Event  { return Event{Kind: Failed, N: n, After: 20 * ms} }
func ended(grant uint64, left time.Duration) Event {
	return Event{Kind: Ended, N: grant, Lease: left}
}

// holds asks at 10 and is granted units.
func (p *play) holds(units int64) {
	p.t.Helper()
	p.sends(Demand{Want: units}, fmt.Sprintf("10: 0 0 %d", units))
	p.handles(has(10, 10, units, kept), Granted)
}

// inLine asks at 10 and gets a place.
func (p *play) inLine() {
	p.t.Helper()
	p.sends(pending, "10: 0 0 1")
	p.handles(waits(10), None)
}

// P2: who has nothing keeps nothing. One that had no effect leaves nothing to clean up.
func TestRules_P2_WhoHasNothing(t *testing.T) {
	p := newPlay(t)
	p.sends(pending, "10: 0 0 1")
	p.handles(failed(10), None)
	p.is(Idle)
	p.isSilent(quiet, Never)
	p.sends(pending, "11: 0 0 1") // the next one who wants it begins anew
	p.handles(silence(11), None)
	p.sends(pending, "12: 0 0 1")
	p.handles(failed(12), None)
	p.is(Unsure)
	p.now += 20 * ms
	p.sends(quiet, "13: 0 0 0")
	p.handles(nothing(13), None)
	p.is(Idle)
}

// P2: a place is named by the last command that kept nothing, units by the number under which the first of them came.
func TestRules_P2_WhoHasSomethingNamesIt(t *testing.T) {
	p := newPlay(t)
	p.sends(pending, "10: 0 0 1")
	p.handles(silence(10), None)
	p.sends(pending, "20: 0 0 1")
	p.handles(waits(20), None)
	p.now += second
	p.sends(pending, "30: p 1 1, since 20")
	p.now += 10 * ms
	p.handles(called(30, 1), Granted)
	if g := p.c.Grant; g.Record != 30 || g.Sent != second {
		t.Errorf("granted %+v", g)
	}
	p.isSilent(owned, Never)
	p.sends(pending, "40: 1 0 1, since 30")
}

// P5: what is sent is given back. Answers and calls of smaller numbers give nothing.
func TestRules_P5_WhatIsSentIsGiven(t *testing.T) {
	p := newPlay(t)
	p.sends(pending, "10: 0 0 1")
	p.handles(silence(10), None)
	p.sends(quiet, "20: 0 0 0")
	p.handles(has(10, 10, 1, kept), None)
	p.handles(called(10, 1), None)
	p.is(Unsure)
	for _, later := range []int64{3, 4} { // a call for 4 counts for nothing once 3 are asked for, and one for 3 does while 4 are
		p := newPlay(t)
		p.sends(Demand{Want: 7 - later}, fmt.Sprintf("10: 0 0 %d", 7-later))
		p.handles(waits(10), None)
		p.sends(Demand{Want: later}, fmt.Sprintf("11: p %d %d, since 10", later, later))
		want := None
		if later == 4 {
			want = Granted
		}
		p.handles(called(10, 7-later), want)
	}
	p = newPlay(t)
	p.holds(4)
	p.sends(Demand{Keep: 1}, "11: 4 1 1, since 10")
	if p.c.Units != 1 {
		t.Errorf("relies on %d units while it gives back all but 1", p.c.Units)
	}
}

// P5: at equal numbers a call is newer than the answer. It answers the command.
func TestRules_P5_ACallOvertakesTheAnswer(t *testing.T) {
	p := newPlay(t)
	p.sends(pending, "10: 0 0 1")
	p.handles(called(10, 1), Granted)
	p.handles(waits(10), None)
	p.is(Holding)
	p.sends(quiet, "11: 1 0 0, since 10")
}

// P5: the answer to an acquire is lost, and then its call comes. Before another acquire is sent the call is a grant. Afterwards it gives
// nothing: that acquire gives back what the first one got.
func TestRules_P5_TheCallOfAnAcquireWhoseAnswerIsLost(t *testing.T) {
	p := newPlay(t)
	p.sends(pending, "10: 0 0 1")
	p.handles(silence(10), None)
	early := *p
	early.handles(called(10, 1), Granted)
	p.sends(pending, "11: 0 0 1")
	p.handles(called(10, 1), None)
	p.isSilent(pending, Never)
	p.handles(waits(11), None)
	p.handles(called(10, 1), None)
	p.is(Waiting)
	p.handles(called(11, 1), Granted)
}

// P5: what is older than an answer counts for nothing.
func TestRules_P5_OldEventsGiveNothing(t *testing.T) {
	p := newPlay(t)
	p.inLine()
	p.isSilent(pending, second)
	p.now += second
	p.sends(pending, "20: p 1 1, since 10")
	p.handles(nothing(20), None)
	p.handles(called(10, 1), None)
	p.is(Unsure)
}

// P5: while somebody relies on units no place and nothing less takes their stead.
func TestRules_P5_ARelianceIsNotReplaced(t *testing.T) {
	p := newPlay(t)
	p.inLine()
	p.sends(Demand{Want: 2}, "11: p 2 2, since 10")
	p.handles(called(10, 1), Granted)
	p.handles(waits(11), None)
	p.is(Holding)
	p.sends(quiet, "12: 1 0 0, since 10")
}

// P4, P6: a call whose command was sent long ago, or is not remembered, is renewed before anybody enters, immediately.
func TestRules_P4_TooLittleIsLeft(t *testing.T) {
	p := newPlay(t)
	p.inLine()
	p.now += 1500 * ms
	p.handles(called(10, 1), None)
	p.is(Fresh)
	p.sends(pending, "20: 1 1 1, since 10")
	p.now += 1500 * ms
	p.handles(has(20, 10, 1, kept), None)
	p.sends(pending, "21: 1 1 1, since 10")
	p.handles(has(21, 10, 1, 30*second), Granted)
	if g := p.c.Grant; g.Record != 10 || g.Until(p.c.Margin) != 3*second+28500*ms {
		t.Errorf("%+v", g)
	}
	p = newPlay(t) // it does not wait for a confirmation on its way
	p.inLine()
	p.now += second
	p.sends(pending, "20: p 1 1, since 10")
	p.now += 10 * ms
	p.handles(called(10, 1), None)
	p.sends(pending, "21: 1 1 1, since 10")
	p = newPlay(t) // nobody wants it any more: that it is gone is no loss
	p.inLine()
	p.now += kept
	p.handles(called(10, 1), None)
	p.sends(quiet, "20: 1 0 0, since 10")
	p.handles(lost(20), None)
}

// P4: where answers are so slow that a whole lease leaves too little, who waits enters with that.
func TestRules_P4_NoRenewalGivesMoreThanALease(t *testing.T) {
	for after, want := range map[Moment]Effect{70 * ms: Granted, 95 * ms: None} {
		p := newPlay(t)
		p.c.Lease, p.c.Call = 100*ms, 100*ms
		p.sends(pending, "10: 0 0 1")
		p.now += after
		p.handles(has(10, 10, 1, 100*ms), want)
	}
}

// P7: a Retry is not forgotten over an answer on its way, and says nothing while owners rely on units.
func TestRules_P7_Retry(t *testing.T) {
	p := newPlay(t)
	p.now = ms
	p.sends(pending, "10: 0 0 1")
	p.handles(Event{Kind: Retry}, None)
	p.handles(waits(10), None)
	p.sends(pending, "20: p 1 1, since 10")
	p.handles(called(20, 1), Granted)
	p.handles(Event{Kind: Retry}, None)
	p.isSilent(owned, Never)
}

// P7: one for later is not forgotten over what is said before.
func TestRules_P7_ARetryForLater(t *testing.T) {
	p := newPlay(t)
	p.inLine()
	p.handles(Event{Kind: Retry, After: 1200 * ms}, None)
	p.now += 500 * ms
	p.handles(Event{Kind: Retry}, None)
	p.sends(pending, "20: p 1 1, since 10")
	p.handles(waits(20), None)
	p.isSilent(pending, 1200*ms)
	p.now = 1200 * ms
	p.sends(pending, "30: p 1 1, since 10")
	p.handles(waits(30), None)
	p.isSilent(pending, 2200*ms)
}

// A confirmation whose call came first finds that the unit is gone.
func TestRules_AConfirmationFindsALoss(t *testing.T) {
	for _, e := range []Event{nothing(20), lost(20)} {
		p := newPlay(t)
		p.inLine()
		p.now += ms
		p.handles(Event{Kind: Retry}, None)
		p.sends(pending, "20: p 1 1, since 10")
		p.handles(called(10, 1), Granted)
		p.handles(e, Vanished)
		p.isSilent(pending, Never)
		p.handles(ended(10, 0), None)
		p.sends(pending, "30: 0 0 1")
	}
}

// P7: the rhythm of a place ends with it. One turn after the other is said immediately.
func TestRules_P7_ATurnAfterATurn(t *testing.T) {
	p := newPlay(t)
	p.holds(1)
	record := 10
	for n := 11; n < 15; n++ {
		p.sends(pending, fmt.Sprintf("%d: 1 0 1, since %d", n, record))
		if n > 12 {
			p.handles(waits(uint64(n)), None)
		}
		p.handles(called(uint64(n), 1), Granted)
		record = n
	}
}

// P8: after a release without an answer comes a cancel, with the record of which a mark is left; the first immediately, the
// next after growing pauses, and in the end none.
func TestRules_P8_AReleaseWithoutAnAnswer(t *testing.T) {
	granted := func() *play {
		p := newPlay(t)
		p.holds(1)
		p.sends(quiet, "20: 1 0 0, since 10")
		p.isSilent(pending, Never) // only its answer says whether the unit was there
		return p
	}
	t.Run("found or not: released", func(t *testing.T) {
		p := granted()
		p.handles(silence(20), None)
		p.sends(quiet, "30: 0 0 0, since 10")
		p.handles(silence(30), None)
		p.sends(quiet, "31: 0 0 0, since 10")
		p.handles(silence(31), None)
		p.isSilent(quiet, 20*ms)
		p.now += 20 * ms
		p.sends(quiet, "32: 0 0 0, since 10")
		p.handles(nothing(32), None)
		p.is(Idle)
	})
	t.Run("an acquire does as well", func(t *testing.T) {
		p := granted()
		p.handles(silence(20), None)
		p.sends(pending, "30: 0 0 1, since 10")
		p.handles(waits(30), None)
		p.now += second
		p.sends(pending, "31: p 1 1, since 30")
	})
	t.Run("to be left with a mark, and neither is there", func(t *testing.T) {
		p := granted()
		p.handles(silence(20), None)
		p.sends(quiet, "30: 0 0 0, since 10")
		p.handles(lost(30), Missing)
		p.sends(quiet, "40: 0 0 0") // lost changes nothing: a place may still be there
		p.handles(nothing(40), None)
		p.is(Idle)
	})
	t.Run("without effect: released by name again", func(t *testing.T) {
		p := granted()
		p.handles(failed(20), None)
		p.is(Leaving)
		p.isSilent(quiet, 20*ms)
		p.now += 20 * ms
		p.sends(quiet, "30: 1 0 0, since 10")
		p.handles(lost(30), Missing)
	})
	t.Run("without effect, then unanswered", func(t *testing.T) {
		p := granted()
		p.handles(failed(20), None)
		p.now += 20 * ms
		p.sends(pending, "30: 1 0 1, since 10")
		p.handles(silence(30), None)
		p.sends(quiet, "40: 0 0 0, since 10")
		p.handles(nothing(40), None)
		p.is(Idle)
	})
	t.Run("gone immediately: lost", func(t *testing.T) {
		p := granted()
		p.handles(lost(20), Missing)
		p.sends(pending, "30: 0 0 1")
	})
	t.Run("Never answered: given up", func(t *testing.T) {
		p := granted()
		p.handles(silence(20), None)
		for n := uint64(30); p.now < p.c.nothingLeftAt; n++ {
			p.sends(quiet, fmt.Sprintf("%d: 0 0 0, since 10", n))
			p.handles(silence(n), None)
			p.now += 2 * second
		}
		if p.now > 40*second {
			t.Errorf("over after %v", p.now)
		}
		p.handles(Event{Kind: Tick}, GivenUp)
		p.isSilent(quiet, Never)
	})
}

// P8: what lasted long is no measure of what comes after it.
func TestRules_P8_OverIsOver(t *testing.T) {
	p := newPlay(t)
	p.holds(1)
	p.c = p.c.Lasts(p.now + 24*hour)
	p.sends(quiet, "20: 1 0 0, since 10")
	p.handles(nothing(20), None)
	p.sends(pending, "30: 0 0 1")
	p.handles(silence(30), None)
	p.now += hour
	p.isSilent(quiet, p.c.nothingLeftAt)
	p.handles(Event{Kind: Tick}, GivenUp)
}

// P8: what ends by itself is not kept for a command that is due later.
func TestRules_P8_OverBeforeTheNextCommand(t *testing.T) {
	p := newPlay(t)
	p.holds(1)
	p.sends(quiet, "20: 1 0 0, since 10")
	p.handles(silence(20), None)
	p.sends(quiet, "21: 0 0 0, since 10")
	e := failed(21)
	e.After = hour
	p.handles(e, None)
	p.isSilent(quiet, p.c.nothingLeftAt)
	p.now = p.c.nothingLeftAt
	p.handles(Event{Kind: Tick}, GivenUp)
}

// P8: only the answer to the last command counts, and one is open at a time.
func TestRules_P8_OnlyTheLastAnswerCounts(t *testing.T) {
	p := newPlay(t)
	p.sends(pending, "10: 0 0 1")
	p.isSilent(quiet, Never)
	p.handles(silence(10), None)
	p.sends(pending, "11: 0 0 1")
	p.handles(has(10, 10, 1, kept), None)
	p.handles(silence(11), None)
	p.isSilent(pending, 20*ms)
	p.now = 20 * ms
	p.sends(pending, "12: 0 0 1")
	p.handles(has(12, 12, 1, kept), Granted)
}

// P9: after a loss nothing is said before the confirmed lease is over, or its owners have exited; those of an earlier one are not
// they. What is heard meanwhile lets nobody in.
func TestRules_P9_NotBefore(t *testing.T) {
	for _, exits := range []bool{false, true} {
		p := newPlay(t)
		p.holds(5)
		p.sends(Demand{Keep: 5, Want: 6}, "20: 5 6 6, since 10")
		p.now += kept - 200*ms
		p.handles(ended(10, 200*ms), None)
		p.handles(has(20, 10, 6, 30*second), None)
		p.handles(called(20, 6), None)
		p.handles(Event{Kind: Exited, N: 9}, None)
		p.isSilent(pending, kept)
		p.isSilent(quiet, kept)
		p.now += 100 * ms
		if exits {
			p.handles(Event{Kind: Exited, N: 10}, None)
		} else {
			p.now += 100 * ms
		}
		p.sends(pending, "30: 0 0 1")
		p.handles(has(30, 30, 1, kept), Granted)
		p.handles(ended(10, second), None) // heard late, it ends nothing
		p.is(Holding)
	}
}

// P9: a loss that an answer tells: nothing is said before the owners are notified.
func TestRules_P9_UntilTheyAreNotified(t *testing.T) {
	p := newPlay(t)
	p.holds(2)
	p.sends(Demand{Keep: 1}, "11: 2 1 1, since 10")
	p.handles(lost(11), Vanished)
	p.isSilent(pending, Never)
	p.handles(ended(10, 0), None)
	p.sends(pending, "12: 0 0 1")
}

// P11: a call for a place that nobody knew of is answered by what removes it, also if that lands beside a cancel.
func TestRules_P11_AnUnknownCallIsCleanedUp(t *testing.T) {
	p := newPlay(t)
	p.sends(pending, "10: 0 0 1")
	p.handles(silence(10), None)
	p.sends(quiet, "20: 0 0 0")
	p.handles(called(10, 1), None)
	p.handles(nothing(20), None) // perhaps from before
	p.sends(quiet, "30: 0 0 0")
	p.handles(nothing(30), None)
	p.isSilent(quiet, Never)
	p.handles(called(10, 1), None)
	p.sends(quiet, "40: 0 0 0")
}

// P11: a call of before this conversation gives nothing: the answer to what was sent since counts.
func TestRules_P11_ACallOfBefore(t *testing.T) {
	p := newPlay(t)
	p.sends(pending, "10: 0 0 1")
	p.handles(called(5, 1), None)
	p.handles(has(10, 10, 1, kept), Granted)
}

// P11: a call that is not believed is answered by a confirmation.
func TestRules_P11_ACallThatIsNotBelievedAsks(t *testing.T) {
	for _, n := range []uint64{5, 10, 21} {
		p := newPlay(t)
		p.inLine()
		p.now += second
		p.sends(pending, "20: p 1 1, since 10")
		p.handles(waits(20), None)
		p.handles(called(n, 1), None)
		p.sends(pending, "30: p 1 1, since 10")
	}
}

// Whatever is heard after all was given up gives nothing, and what it reports is cleaned up.
func TestRules_P11_AfterAllWasGivenUp(t *testing.T) {
	for _, e := range []Event{waits(10), has(10, 10, 1, kept), called(10, 1)} {
		p := newPlay(t)
		p.sends(pending, "10: 0 0 1")
		p.handles(silence(10), None)
		p.now = p.c.nothingLeftAt
		p.handles(Event{Kind: Tick}, GivenUp)
		p.handles(e, None)
		p.sends(quiet, "11: 0 0 0")
		p.handles(nothing(11), None)
		p.is(Idle)
	}
}

// S13: terms of units that only the caller knows are said once, and again until an answer comes.
func TestRules_S13_OtherTerms(t *testing.T) {
	p := newPlay(t)
	news := func(d Demand) Demand {
		d.News = true
		return d
	}
	two, more := Demand{Keep: 2, Want: 2}, Demand{Keep: 2, Want: 3}
	p.isSilent(news(quiet), Never)
	p.sends(Demand{Want: 2}, "10: 0 0 2")
	p.handles(has(10, 10, 2, 30*second), Granted)
	p.isSilent(two, Never)
	p.sends(news(two), "11: 2 2 2, since 10")
	p.handles(Event{Kind: Failed, N: 11, After: second}, None)
	p.isSilent(two, second)
	p.now += second
	p.sends(two, "12: 2 2 2, since 10")
	p.handles(has(12, 12, 2, 30*second), None)
	p.sends(more, "13: 2 3 3, since 10")
	p.handles(Event{Kind: Waits, N: 13, Record: 13, Units: 2, Lease: 30 * second, After: second}, None)
	p.isSilent(more, 2*second)
	p.sends(news(more), "14: 2 3 3, since 10")
	p.handles(Event{Kind: Called, N: 14, Record: 14, Units: 3, Lease: 30 * second}, None)
	p.isSilent(Demand{Keep: 3, Want: 3}, Never)
}

// S13: what is said, by what is had and demanded.
func TestRules_S13_WhatIsSaid(t *testing.T) {
	p := newPlay(t)
	p.sends(Demand{Want: 2}, "10: 0 0 2") // acquire
	p.handles(waits(10), None)
	p.now += second
	p.sends(Demand{Want: 2}, "11: p 2 2, since 10") // confirm
	p.handles(has(11, 11, 2, kept), Granted)
	p.isSilent(Demand{Keep: 2, Want: 2}, Never)
	surplus := *p
	surplus.handles(Event{Kind: Surplus}, None)
	surplus.sends(Demand{Keep: 2, Want: 2}, "12: 2 2 2, since 11")
	surplus.handles(Event{Kind: Surplus}, None) // which that command gives back
	surplus.handles(has(12, 12, 2, 30*second), None)
	surplus.isSilent(Demand{Keep: 2, Want: 2}, Never)
	p.sends(Demand{Keep: 2, Want: 4}, "12: 2 4 4, since 11") // grow
	p.handles(Event{Kind: Waits, N: 12, Record: 12, Units: 2, Lease: 30 * second, After: second}, None)
	p.sends(Demand{Keep: 2, Want: 2}, "13: 2 2 2, since 11") // out of the line
	p.handles(has(13, 13, 2, 30*second), None)
	p.sends(Demand{Keep: 1, Want: 3}, "14: 2 1 3, since 11") // yield
	p.handles(Event{Kind: Waits, N: 14, Record: 14, Units: 1, Lease: 30 * second, After: second}, None)
	p.isSilent(Demand{Keep: 1, Want: 3}, 2*second)
	p.sends(Demand{Keep: 1, Want: 1}, "15: 1 1 1, since 11")
	p.handles(has(15, 15, 1, 30*second), None)
	p.sends(Demand{Keep: 1, Want: 1, Again: true}, "16: 1 1 1a, since 11") // requeue
	p.handles(Event{Kind: Waits, N: 16, Record: 16, Units: 1, Lease: 30 * second, After: second}, None)
	p.isSilent(Demand{Keep: 1, Want: 1, Again: true}, 2*second)
	p.sends(Demand{Want: 1}, "17: 1 0 1, since 11") // the last one has left: its unit goes, and its place stays
	p.handles(waits(17), None)
	p.sends(Demand{Want: 1, Try: true}, "18: p 1 1t, since 17")
	p.handles(nothing(18), None)
	p.isSilent(quiet, Never)
}

// S31: what the goroutines do while a command is open is one command.
func TestRules_S31_OneCommand(t *testing.T) {
	p := newPlay(t)
	p.holds(2)
	p.sends(Demand{Keep: 2, Want: 3}, "11: 2 3 3, since 10")
	for used := range int64(3) {
		p.isSilent(Demand{Keep: used, Want: 5}, Never)
	}
	p.handles(has(11, 11, 3, 30*second), None)
	p.sends(Demand{Keep: 3, Want: 5}, "12: 3 5 5, since 10")
}

// A failover that has lost the newest command, and no units, is no loss: the grant has the number of its first units.
func TestRules_S13_SinceIsThatOfTheGrant(t *testing.T) {
	p := newPlay(t)
	p.holds(2)
	p.sends(Demand{Keep: 1, Want: 1}, "11: 2 1 1, since 10")
	p.handles(has(11, 11, 1, 30*second), None)
	p.sends(Demand{Keep: 1, Want: 2}, "12: 1 2 2, since 10")
}

// P2: a failover that has lost confirmations loses no place: the call of the older one is confirmed, and its record is the client's.
func TestRules_P2_APlaceKeepsItsNumber(t *testing.T) {
	p := newPlay(t)
	p.inLine()
	for n := range uint64(2) {
		p.now += second
		p.sends(pending, fmt.Sprintf("%d: p 1 1, since 10", 20+n))
		p.handles(waits(20+n), None)
	}
	p.handles(called(20, 1), None)
	p.sends(pending, "30: p 1 1, since 10")
	p.handles(has(30, 20, 1, kept), Granted)
	p.sends(quiet, "31: 1 0 0, since 20")
}

// A yield or shrink that may have had no effect is made up for: what it gave back is not kept by the next command either, so
// that whoever waits has its turn.
func TestRules_AYieldMayHaveHadNoEffect(t *testing.T) {
	yields := Demand{Keep: 2, Want: 5}
	for _, answer := range []func(uint64) Event{silence, failed} {
		p := newPlay(t)
		p.holds(5)
		p.sends(yields, "11: 5 2 5, since 10")
		p.handles(answer(11), None)
		p.now += second
		p.sends(yields, "12: 2 2 5, since 10")
		p.handles(answer(12), None)
		p.now += second
		p.sends(yields, "13: 2 2 5, since 10")
		p.handles(Event{Kind: Waits, N: 13, Record: 13, Units: 2, Lease: 30 * second, After: second}, None)
		p.now += second
		p.sends(yields, "14: 2 5 5, since 10")
		p.handles(silence(14), None) // that gave nothing back: what a call gives is kept
		p.now += second
		p.sends(yields, "15: 2 5 5, since 10")
	}
	p := newPlay(t) // and a place beside the units stays
	p.holds(2)
	p.sends(Demand{Keep: 2, Want: 5}, "11: 2 5 5, since 10")
	p.handles(Event{Kind: Waits, N: 11, Record: 11, Units: 2, Lease: 30 * second, After: second}, None)
	p.sends(Demand{Want: 5}, "12: 2 0 5, since 10")
	p.handles(silence(12), None)
	p.now += second
	p.sends(Demand{Want: 5}, "13: p 0 5, since 10")
}

// Nothing is given up before the end of the place that a yield may have made.
func TestRules_P8_APlaceThatAYieldMade(t *testing.T) {
	p := newPlay(t)
	p.holds(1)
	p.now += second
	p.sends(pending, "11: 1 0 1, since 10")
	p.handles(silence(11), None)
	if end := p.now.Add(p.c.Life + p.c.Call + p.c.Late); p.c.nothingLeftAt < end {
		t.Errorf("given up at %v, and called as late as %v", p.c.nothingLeftAt, end)
	}
}

// Who takes the lock has it taken for the place, immediately, and the lease counts from that command.
func TestRules_Seize_ForThePlace(t *testing.T) {
	p := newPlay(t)
	p.sends(seizes, "10: 0 0 1")
	p.handles(waits(10), None)
	p.now += 10 * ms
	p.sends(seizes, "20: p 1 1s, place 10")
	p.handles(has(20, 20, 1, hour), Granted)
	if g := p.c.Grant; g.Record != 20 || g.Sent != 10*ms {
		t.Errorf("granted %+v", g)
	}
	p.sends(quiet, "30: 1 0 0, since 20")
	p.handles(silence(30), None)
	p.now += 30 * 60 * second
	p.sends(quiet, "40: 0 0 0, since 20") // the unit may be there for an hour
}

// Only a place whose number is known is named: after an answer.
func TestRules_Seize_OnlyForANumberThatIsKnown(t *testing.T) {
	p := newPlay(t)
	p.inLine()
	p.now += second
	p.sends(pending, "20: p 1 1, since 10")
	p.isSilent(seizes, Never)
	p.handles(silence(20), None)
	p.sends(seizes, "30: p 1 1, since 10")
	p.handles(waits(30), None)
	p.sends(seizes, "40: p 1 1s, place 30")
	p.handles(silence(40), None)
	p.sends(seizes, "50: p 1 1, since 10")
	p.handles(has(50, 40, 1, hour), Granted)
	p.sends(quiet, "60: 1 0 0, since 40")
}

// What may have been taken, and nobody wants any more, goes back by its number, with a place.
func TestRules_Seize_WhatMayHaveBeenTakenGoesBack(t *testing.T) {
	p := newPlay(t)
	p.inLine()
	p.sends(seizes, "20: p 1 1s, place 10")
	p.isSilent(quiet, Never)
	p.handles(silence(20), None)
	p.sends(quiet, "30: p 0 0, since 20")
	p.handles(silence(30), None)
	p.sends(quiet, "40: 0 0 0, since 20")
	p.handles(nothing(40), None)
	p.is(Idle)
}

// One that had no effect leaves nothing to learn. The next confirmation is after a pause.
func TestRules_Seize_WithoutEffect(t *testing.T) {
	p := newPlay(t)
	p.inLine()
	p.sends(seizes, "20: p 1 1s, place 10")
	p.handles(failed(20), None)
	early := *p
	early.sends(quiet, "30: p 0 0")
	p.isSilent(seizes, 20*ms)
	p.now += 20 * ms
	p.sends(seizes, "30: p 1 1, since 10")
	p.handles(waits(30), None)
	p.sends(seizes, "31: p 1 1s, place 30")
}

// P5: a call of the command before the last. That may arrive yet and make a place, which the next command strikes.
func TestRules_P5_ACallOfBeforeAConfirmation(t *testing.T) {
	p := newPlay(t)
	p.inLine()
	p.sends(Demand{Want: 3}, "11: p 3 3, since 10")
	p.handles(called(10, 1), Granted)
	p.handles(waits(11), None)
	p.sends(owned, "12: 1 1 1, since 10")
	p.handles(has(12, 10, 1, kept), None)
	p.isSilent(owned, Never)
}

// P8: what was to be given back, or a place that nobody wants, ends by itself, also if each command to say so certainly fails.
func TestRules_P8_OverThoughEachCommandFails(t *testing.T) {
	for name, play := range map[string]func(*play) string{
		"release": func(p *play) string { p.holds(1); return "%d: 1 0 0, since 10" },
		"cancel":  func(p *play) string { p.inLine(); return "%d: p 0 0" },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			cmd := play(p)
			end := p.now.Add(p.c.Life + p.c.Call + p.c.Late + second)
			for n := uint64(20); p.now < end; n++ { // as a driver does at each moment that Next names
				var f Effect
				if p.c, f = p.c.Handle(Event{Kind: Tick}, p.now); f == GivenUp {
					break
				}
				var sent Command
				var until Moment
				if p.c, sent, until = p.c.Next(quiet, n, p.now); sent.N == 0 {
					p.now = until
				} else if want := fmt.Sprintf(cmd, n); sent.String() != want {
					t.Fatalf("sent %q, want %q", sent, want)
				} else {
					p.handles(failed(n), None)
				}
			}
			p.is(Idle)
		})
	}
}

// P8: the answer that grants supersedes what was reported of before, so nothing is sent while an owner has the unit.
func TestRules_P8_AGrantAfterAnUnbelievedCall(t *testing.T) {
	p := newPlay(t)
	p.sends(pending, "10: 0 0 1")
	p.handles(silence(10), None)
	p.sends(pending, "11: 0 0 1")
	p.handles(called(10, 1), None)
	p.handles(has(11, 11, 1, kept), Granted)
	p.isSilent(owned, Never)
}
