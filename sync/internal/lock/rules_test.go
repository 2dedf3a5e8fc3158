package lock

import (
	"testing"
	"time"
)

// play is a conversation with what happens to it in order. Each call to it fails the test if something else follows.
type play struct {
	t   *testing.T
	c   Conversation
	now Moment
}

func newPlay(t *testing.T) *play {
	return &play{t: t, c: Conversation{Terms: Terms{Lease: 30 * time.Second, Call: 2 * time.Second, Life: 30 * time.Second, Margin: 1500 * ms, Late: time.Second}}}
}

// states demands that the statement n is said now.
func (p *play) states(w Demand, n, since uint64, have Have, keep, want int) {
	p.t.Helper()
	c, s, until := p.c.Next(w, n, p.now)
	p.c = c
	if s == nil {
		p.t.Fatalf("nothing is stated until %v, want %d: %v %d %d", until, n, have, keep, want)
	}
	if expected := (Statement{N: n, Since: since, Have: have, Keep: keep, Want: want}); *s != expected {
		p.t.Fatalf("stated %+v, want %+v", *s, expected)
	}
}

// quiet demands that nothing is said until the moment until.
func (p *play) quiet(w Demand, until Moment) {
	p.t.Helper()
	c, s, at := p.c.Next(w, 1000, p.now)
	if p.c = c; s != nil || at != until {
		p.t.Fatalf("stated %+v, or waits until %v, want %v", s, at, until)
	}
}

func (p *play) hears(h News, want Event) {
	p.t.Helper()
	c, e := p.c.Heard(h, p.now)
	if p.c = c; e != want {
		p.t.Fatalf("event %v, want %v", e, want)
	}
}

const kept = 2 * time.Second

// P2: who has nothing names the smallest number that may have left something, also after a statement that had no effect.
func TestRules_P2_WhoHasNothingNamesTheFirst(t *testing.T) {
	p := newPlay(t)
	p.states(Pending, 10, 10, Nothing, 0, 1)
	p.hears(News{Word: Silence, N: 10, Lease: 20 * ms}, None)
	p.states(Pending, 11, 10, Nothing, 0, 1)
	p.hears(News{Word: Failed, N: 11, Lease: 20 * ms}, None)
	p.now += 20 * ms
	p.states(Quiet, 12, 10, Nothing, 0, 0)
	p.hears(News{Word: HasNot, N: 12}, None)
	if !p.c.Settled() {
		t.Error("not settled")
	}
	p.states(Pending, 13, 13, Nothing, 0, 1)
}

// P2: a place is confirmed since the last statement that kept nothing; a unit is named exactly.
func TestRules_P2_WhoHasSomethingNamesIt(t *testing.T) {
	p := newPlay(t)
	p.states(Pending, 10, 10, Nothing, 0, 1)
	p.hears(News{Word: Silence, N: 10}, None)
	p.states(Pending, 20, 10, Nothing, 0, 1)
	p.hears(News{Word: Waits, N: 20, Lease: time.Second}, None)
	p.now += time.Second
	p.states(Pending, 30, 20, Place, 1, 1)
	p.now += 10 * ms
	p.hears(News{Word: Called, N: 30, Lease: kept}, Granted)
	if g := p.c.Grant; g.Unit != 30 || g.Sent != time.Second {
		t.Errorf("granted %+v", g)
	}
	p.quiet(Owned, never)
	p.states(Pending, 40, 30, Unit, 0, 1)
}

// P5: what is sent is given. Answers and calls of smaller numbers give nothing.
func TestRules_P5_WhatIsSentIsGiven(t *testing.T) {
	p := newPlay(t)
	p.states(Pending, 10, 10, Nothing, 0, 1)
	p.states(Quiet, 20, 10, Nothing, 0, 0)
	p.hears(News{Word: Has, N: 10, Unit: 10, Lease: kept}, None)
	p.hears(News{Word: Called, N: 10, Lease: kept}, None)
	if p.c.Have() != Nothing {
		t.Error("an answer to what was given up counts")
	}
}

// P5: at equal numbers a call is newer than the answer that the place is there.
func TestRules_P5_ACallOvertakesTheAnswer(t *testing.T) {
	p := newPlay(t)
	p.states(Pending, 10, 10, Nothing, 0, 1)
	p.hears(News{Word: Called, N: 10, Lease: kept}, Granted)
	p.hears(News{Word: Waits, N: 10, Lease: time.Second}, None)
	if p.c.Have() != Unit {
		t.Error("the call is forgotten")
	}
}

// P5: the answer to an ask is lost, and then its call comes. Until it is asked again the call is a grant. Afterwards it gives
// nothing: that ask gives back what the first one got, so its own answer says what there is.
func TestRules_P5_TheCallOfAnAskWhoseAnswerIsLost(t *testing.T) {
	p := newPlay(t)
	p.states(Pending, 10, 10, Nothing, 0, 1)
	p.hears(News{Word: Silence, N: 10}, None)
	early := *p
	early.hears(News{Word: Called, N: 10, Lease: kept}, Granted)
	p.states(Pending, 11, 10, Nothing, 0, 1)
	p.hears(News{Word: Called, N: 10, Lease: kept}, None)
	p.quiet(Pending, never)
	p.hears(News{Word: Waits, N: 11, Lease: time.Second}, None)
	p.hears(News{Word: Called, N: 10, Lease: kept}, None)
	if p.c.Have() != Place {
		t.Errorf("it has %v", p.c.Have())
	}
	p.hears(News{Word: Called, N: 11, Lease: kept}, Granted)
}

// P4, P6: a call whose statement was sent long ago, or is not remembered, is renewed before anybody enters.
func TestRules_P4_TooLittleIsLeft(t *testing.T) {
	p := newPlay(t)
	p.states(Pending, 10, 10, Nothing, 0, 1)
	p.hears(News{Word: Waits, N: 10, Lease: time.Minute}, None)
	p.now += kept
	p.hears(News{Word: Called, N: 10, Lease: kept}, None)
	p.states(Pending, 20, 10, Unit, 1, 1)
	p.hears(News{Word: Has, N: 20, Unit: 10, Lease: 30 * time.Second}, Granted)
	if g := p.c.Grant; g.Until(p.c.Margin) != kept+28500*ms {
		t.Errorf("valid until %v", g.Until(p.c.Margin))
	}
}

// P8: a release without an answer is repeated, the first time immediately, and in the end given up.
func TestRules_P8_AReleaseIsRepeated(t *testing.T) {
	granted := func() *play {
		p := newPlay(t)
		p.states(Pending, 10, 10, Nothing, 0, 1)
		p.hears(News{Word: Has, N: 10, Unit: 10, Lease: kept}, Granted)
		p.states(Quiet, 20, 10, Unit, 0, 0)
		return p
	}
	t.Run("unanswered, then gone: released", func(t *testing.T) {
		p := granted()
		p.hears(News{Word: Silence, N: 20, Lease: 20 * ms}, None)
		p.states(Quiet, 30, 10, Unit, 0, 0)
		p.hears(News{Word: Lost, N: 30}, None)
		if !p.c.Settled() {
			t.Error("not settled")
		}
	})
	t.Run("never sent, then gone: lost", func(t *testing.T) {
		p := granted()
		p.hears(News{Word: Failed, N: 20, Lease: 20 * ms}, None)
		p.quiet(Quiet, 20*ms)
		p.now = 20 * ms
		p.states(Quiet, 30, 10, Unit, 0, 0)
		p.hears(News{Word: Lost, N: 30}, Missing)
	})
	t.Run("gone immediately: lost", func(t *testing.T) {
		p := granted()
		p.hears(News{Word: Lost, N: 20}, Missing)
	})
	t.Run("never answered: given up", func(t *testing.T) {
		p := granted()
		p.hears(News{Word: Silence, N: 20, Lease: 20 * ms}, None)
		n := uint64(30)
		for p.now < p.c.over { // no longer than all that may be there
			p.states(Quiet, n, 10, Unit, 0, 0)
			p.hears(News{Word: Silence, N: n, Lease: 20 * ms}, None)
			p.now += 2 * time.Second
			n++
		}
		if p.now > 40*time.Second {
			t.Errorf("over after %v", p.now)
		}
		p.hears(News{Word: Clock}, GivenUp)
		p.quiet(Quiet, never)
	})
	t.Run("nobody had entered: no loss", func(t *testing.T) {
		p := newPlay(t)
		p.states(Pending, 10, 10, Nothing, 0, 1)
		p.hears(News{Word: Waits, N: 10, Lease: time.Minute}, None)
		p.now += kept
		p.hears(News{Word: Called, N: 10, Lease: kept}, None)
		p.states(Quiet, 20, 10, Unit, 0, 0)
		p.hears(News{Word: Lost, N: 20}, None)
	})
}

// P9: after a notified loss nothing is stated until the confirmed lease is over or the owner has exited.
func TestRules_P9_NotBefore(t *testing.T) {
	for _, exits := range []bool{false, true} {
		p := newPlay(t)
		p.states(Pending, 10, 10, Nothing, 0, 1)
		p.hears(News{Word: Has, N: 10, Unit: 10, Lease: kept}, Granted)
		p.now += kept - 200*ms
		p.hears(News{Word: Ended, N: 10, Lease: 200 * ms}, None)
		p.quiet(Pending, kept)
		p.quiet(Quiet, kept)
		p.now += 100 * ms
		if exits {
			p.hears(News{Word: Exited, N: 10}, None)
		} else {
			p.now += 100 * ms
		}
		p.states(Pending, 20, 10, Nothing, 0, 1)
	}
}

// A loss names its unit: one that is heard late ends no later unit.
func TestRules_ALateLossEndsNothing(t *testing.T) {
	p := newPlay(t)
	p.states(Pending, 10, 10, Nothing, 0, 1)
	p.hears(News{Word: Has, N: 10, Unit: 10, Lease: kept}, Granted)
	p.states(Pending, 20, 10, Unit, 0, 1)
	p.hears(News{Word: Has, N: 20, Unit: 20, Lease: kept}, Granted)
	p.hears(News{Word: Ended, N: 10, Lease: time.Second}, None)
	if p.c.Have() != Unit {
		t.Error("the unit is gone")
	}
}

// P11: a call for a place that nobody knew of is answered by the statement that removes it.
func TestRules_P11_AnUnknownCallIsCleanedUp(t *testing.T) {
	p := newPlay(t)
	p.states(Pending, 10, 10, Nothing, 0, 1)
	p.states(Quiet, 20, 10, Nothing, 0, 0)
	p.hears(News{Word: HasNot, N: 20}, None)
	p.quiet(Quiet, never)
	p.hears(News{Word: Called, N: 10, Lease: kept}, None)
	p.states(Quiet, 30, 10, Nothing, 0, 0)
}

// P9: a loss that is over does not shorten the time of a later one.
func TestRules_P9_AnEarlierOwnersExitIsNotThis(t *testing.T) {
	p := newPlay(t)
	p.states(Pending, 10, 10, Nothing, 0, 1)
	p.hears(News{Word: Has, N: 10, Unit: 10, Lease: kept}, Granted)
	p.hears(News{Word: Ended, N: 10}, None)
	p.states(Pending, 20, 10, Nothing, 0, 1)
	p.hears(News{Word: Has, N: 20, Unit: 20, Lease: kept}, Granted)
	p.hears(News{Word: Ended, N: 20, Lease: kept}, None)
	p.hears(News{Word: Exited, N: 10}, None)
	p.quiet(Pending, kept)
}

// What is older than what is known counts for nothing, also where it says that the client has the unit.
func TestRules_OldNewsGiveNothing(t *testing.T) {
	p := newPlay(t)
	p.states(Pending, 10, 10, Nothing, 0, 1)
	p.hears(News{Word: Waits, N: 10, Lease: time.Second}, None)
	p.quiet(Pending, time.Second) // it is confirmed when it is due, and not before
	p.now += time.Second
	p.states(Pending, 20, 10, Place, 1, 1)
	p.hears(News{Word: HasNot, N: 20}, None)
	p.hears(News{Word: Called, N: 10, Lease: kept}, None)
	if p.c.Have() != Nothing {
		t.Error("a call from before the answer that nothing is there")
	}
}

// After a turn there may be a place, so who gives up after it cleans up and does not release again.
func TestRules_P3_AfterATurnItCleansUp(t *testing.T) {
	p := newPlay(t)
	p.states(Pending, 10, 10, Nothing, 0, 1)
	p.hears(News{Word: Has, N: 10, Unit: 10, Lease: kept}, Granted)
	p.states(Pending, 20, 10, Unit, 0, 1)
	p.quiet(Quiet, never)
	p.hears(News{Word: Silence, N: 20}, None)
	p.states(Quiet, 30, 10, Nothing, 0, 0)
	p.hears(News{Word: HasNot, N: 30}, None)
	if !p.c.Settled() {
		t.Error("not settled")
	}
}

// P7: a Retry that comes while a statement is open is not forgotten over its answer.
func TestRules_P7_ARetryBesideAnAnswer(t *testing.T) {
	p := newPlay(t)
	p.states(Pending, 10, 10, Nothing, 0, 1)
	p.hears(News{Word: Retry}, None)
	p.hears(News{Word: Waits, N: 10, Lease: time.Second}, None)
	p.states(Pending, 20, 10, Place, 1, 1)
}

// enters asks at 10, waits, and is called: the unit is 10.
func (p *play) enters() {
	p.t.Helper()
	p.states(Pending, 10, 10, Nothing, 0, 1)
	p.hears(News{Word: Waits, N: 10, Lease: time.Second}, None)
	p.hears(News{Word: Called, N: 10, Lease: kept}, Granted)
}

// P7: the rhythm of a place ends with it. One turn after the other is stated immediately.
func TestRules_P7_ATurnAfterATurn(t *testing.T) {
	p := newPlay(t)
	p.enters()
	for n := uint64(11); n < 15; n++ {
		p.states(Pending, n, p.c.Grant.Unit, Unit, 0, 1)
		p.hears(News{Word: Waits, N: n, Lease: time.Second}, None)
		p.hears(News{Word: Called, N: n, Lease: kept}, Granted)
	}
	p.states(Pending, 15, 14, Unit, 0, 1)
	p.hears(News{Word: Called, N: 15, Lease: kept}, Granted) // before the answer
	p.states(Pending, 16, 15, Unit, 0, 1)
}

// While somebody relies on a unit no place and no other unit takes its stead.
func TestRules_P5_ARelianceIsNotReplaced(t *testing.T) {
	p := newPlay(t)
	p.states(Pending, 10, 10, Nothing, 0, 1)
	p.hears(News{Word: Waits, N: 10}, None)
	p.states(Pending, 11, 10, Place, 1, 1)
	p.hears(News{Word: Called, N: 10, Lease: kept}, Granted)
	p.hears(News{Word: Waits, N: 11, Lease: time.Second}, None) // of a master that was replaced
	p.hears(News{Word: Called, N: 11, Lease: kept}, None)
	p.states(Quiet, 12, 10, Unit, 0, 0)
}

// P8: a turn that had no effect is repeated as such. That its unit is missing is a loss.
func TestRules_P8_ATurnThatHadNoEffect(t *testing.T) {
	p := newPlay(t)
	p.enters()
	p.states(Pending, 11, 10, Unit, 0, 1)
	p.hears(News{Word: Failed, N: 11, Lease: 20 * ms}, None)
	p.now += 20 * ms
	p.states(Pending, 12, 10, Unit, 0, 1)
	p.hears(News{Word: Lost, N: 12}, Missing)
	p.states(Pending, 13, 13, Nothing, 0, 1)
}

// Nothing is stated while a release has no answer: only that says whether the unit was there.
func TestRules_P8_AReleaseIsAwaited(t *testing.T) {
	p := newPlay(t)
	p.enters()
	p.states(Quiet, 11, 10, Unit, 0, 0)
	p.quiet(Pending, never)
	p.hears(News{Word: Lost, N: 11}, Missing)
	p.states(Pending, 12, 12, Nothing, 0, 1)
}

// An ask after a release without an answer takes back what that may have left.
func TestRules_P8_AnAskAfterARelease(t *testing.T) {
	p := newPlay(t)
	p.enters()
	p.states(Quiet, 11, 10, Unit, 0, 0)
	p.hears(News{Word: Silence, N: 11}, None)
	p.states(Pending, 12, 10, Nothing, 0, 1)
	p.hears(News{Word: HasNot, N: 11}, None)
	p.hears(News{Word: Failed, N: 12, Lease: 20 * ms}, None)
	p.states(Quiet, 13, 10, Nothing, 0, 0)
	p.hears(News{Word: HasNot, N: 13}, None)
}

// P11: what has landed late, while a clean-up had no answer, is cleaned up by another one.
func TestRules_P11_WhatLandsBesideACleanUp(t *testing.T) {
	p := newPlay(t)
	p.states(Pending, 10, 10, Nothing, 0, 1)
	p.states(Quiet, 11, 10, Nothing, 0, 0)
	p.hears(News{Word: Has, N: 10, Unit: 10, Lease: kept}, None)
	p.hears(News{Word: HasNot, N: 11}, None) // perhaps from before
	p.states(Quiet, 12, 10, Nothing, 0, 0)
	p.hears(News{Word: HasNot, N: 12}, None)
	if !p.c.Settled() {
		t.Error("something is left")
	}
}

// A clean-up that has superseded a release is not superseded by another release.
func TestRules_P8_ACleanUpAfterARelease(t *testing.T) {
	p := newPlay(t)
	p.enters()
	p.states(Quiet, 11, 10, Unit, 0, 0)
	p.hears(News{Word: Silence, N: 11}, None)
	p.states(Pending, 12, 10, Nothing, 0, 1)
	p.states(Quiet, 13, 10, Nothing, 0, 0)
	p.quiet(Quiet, never)
	p.hears(News{Word: Silence, N: 13, Lease: 20 * ms}, None)
	p.states(Quiet, 14, 10, Nothing, 0, 0)
}

// A pause of one need is none of the next.
func TestRules_P8_ThePauseEndsWithAnAnswer(t *testing.T) {
	p := newPlay(t)
	n := uint64(10)
	for ; n < 14; n++ {
		p.states(Pending, n, 10, Nothing, 0, 1)
		p.hears(News{Word: Silence, N: n, Lease: time.Second}, None)
		p.now = max(p.now, p.c.due)
	}
	p.states(Quiet, n, 10, Nothing, 0, 0)
	p.hears(News{Word: Silence, N: n, Lease: time.Second}, None)
	p.states(Quiet, n+1, 10, Nothing, 0, 0)
	p.hears(News{Word: HasNot, N: n + 1}, None)
	p.hears(News{Word: Called, N: 10}, None)
	p.states(Quiet, n+2, 10, Nothing, 0, 0)
}

// What lasted long is no measure of what comes after it.
func TestRules_P8_OverIsOver(t *testing.T) {
	p := newPlay(t)
	p.enters()
	p.c = p.c.Lasts(p.now + 24*time.Hour)
	p.states(Quiet, 20, 10, Unit, 0, 0)
	p.hears(News{Word: HasNot, N: 20}, None)
	p.states(Pending, 30, 30, Nothing, 0, 1)
	p.hears(News{Word: Silence, N: 30}, None)
	p.now += time.Hour
	if _, s, _ := p.c.Next(Quiet, 40, p.now); s != nil {
		t.Errorf("it states %+v", *s)
	}
	p.hears(News{Word: Clock}, GivenUp)
}

// Whatever is heard after all was given up gives nothing, and what an answer then reports is cleaned up.
func TestRules_AnAnswerAfterAllWasGivenUp(t *testing.T) {
	for _, h := range []News{{Word: Waits, N: 10, Lease: time.Second}, {Word: Has, N: 10, Unit: 10, Lease: kept}, {Word: Called, N: 10, Lease: kept}} {
		p := newPlay(t)
		p.states(Pending, 10, 10, Nothing, 0, 1)
		p.hears(News{Word: Silence, N: 10, Lease: 20 * ms}, None)
		p.now = p.c.over
		p.hears(News{Word: Clock}, GivenUp)
		p.hears(h, None)
		p.states(Quiet, 11, 10, Nothing, 0, 0)
		p.hears(News{Word: HasNot, N: 11}, None)
		if !p.c.Settled() {
			t.Errorf("%+v: not settled", h)
		}
	}
}

// A call for a turn whose answer is on its way settles the release. With too little left of it, nothing waits for that answer.
func TestRules_P8_ACallBeforeTheAnswerOfATurn(t *testing.T) {
	for _, w := range []Demand{Pending, Quiet} {
		p := newPlay(t)
		p.enters()
		p.states(Pending, 20, 10, Unit, 0, 1)
		p.now += 1500 * ms
		p.hears(News{Word: Called, N: 20, Lease: kept}, None)
		if w == Pending {
			p.states(Pending, 30, 20, Unit, 1, 1)
		} else {
			p.states(Quiet, 30, 20, Unit, 0, 0)
		}
	}
}
