package lock

import (
	"testing"
	"time"
)

// A turn may be stated twice with nothing between: the first has made a place, which was called. The second is about
// another unit, so it waits neither for the answer to the first nor for the moment to say that again.
func TestRules_P3_TheNextTurnIsNoRepetition(t *testing.T) {
	for _, answered := range []bool{false, true} {
		p := newPlay(t)
		p.states(Pending, 10, 10, Nothing, 0, 1)
		p.hears(News{Word: Has, N: 10, Unit: 10, Lease: kept}, Granted)
		p.states(Pending, 20, 10, Unit, 0, 1)
		if answered {
			p.hears(News{Word: Waits, N: 20, Lease: time.Second}, None)
		}
		p.hears(News{Word: Called, N: 20, Lease: kept}, Granted)
		p.states(Pending, 30, 20, Unit, 0, 1)
	}
}

// P8: a turn that was not carried out is repeated, be it as a release where nobody waits any more: an ask or a clean-up
// would give the unit back as well, but could not say that it had been lost.
func TestRules_P8_ATurnThatFailedIsRepeated(t *testing.T) {
	for demand, want := range map[Demand]int{Pending: 1, Quiet: 0} {
		for _, unanswered := range []bool{false, true} {
			p := newPlay(t)
			p.states(Pending, 10, 10, Nothing, 0, 1)
			p.hears(News{Word: Has, N: 10, Unit: 10, Lease: kept}, Granted)
			p.states(Pending, 20, 10, Unit, 0, 1)
			p.quiet(Pending, never)
			p.hears(News{Word: Failed, N: 20, Lease: 20 * ms}, None)
			p.now += 20 * ms
			if unanswered {
				p.states(Pending, 30, 10, Unit, 0, 1)
				p.hears(News{Word: Silence, N: 30, Lease: 20 * ms}, None)
				p.states(demand, 40, 10, Nothing, 0, want)
				continue
			}
			p.states(demand, 30, 10, Unit, 0, want)
			p.hears(News{Word: Lost, N: 30}, Missing)
		}
	}
}

// P11: a call that is not believed is answered by a confirmation.
func TestRules_P11_ACallThatIsNotBelievedAsks(t *testing.T) {
	for _, n := range []uint64{5, 10, 21} {
		p := newPlay(t)
		p.states(Pending, 10, 10, Nothing, 0, 1)
		p.hears(News{Word: Waits, N: 10, Lease: time.Second}, None)
		p.now += time.Second
		p.states(Pending, 20, 10, Place, 1, 1)
		p.hears(News{Word: Waits, N: 20, Lease: time.Second}, None)
		p.hears(News{Word: Called, N: n, Lease: kept}, None)
		p.states(Pending, 30, 10, Place, 1, 1)
	}
}

// P4: where answers are so slow that a whole lease leaves too little, who waits enters with that: the next renewal would
// leave no more, and nobody else could enter meanwhile.
func TestRules_P4_NoRenewalGivesMoreThanALease(t *testing.T) {
	p := newPlay(t)
	p.c.Lease, p.c.Call = 100*ms, 100*ms
	p.states(Pending, 10, 10, Nothing, 0, 1)
	p.now += 70 * ms
	p.hears(News{Word: Has, N: 10, Unit: 10, Lease: 100 * ms}, Granted)

	p = newPlay(t) // nothing is left of a lease, so that it must be renewed
	p.c.Lease, p.c.Call = 100*ms, 100*ms
	p.states(Pending, 10, 10, Nothing, 0, 1)
	p.now += 95 * ms
	p.hears(News{Word: Has, N: 10, Unit: 10, Lease: 100 * ms}, None)
	p.states(Pending, 11, 10, Unit, 1, 1)
}

// P4: a unit with too little left is renewed immediately, however long the place could have waited.
func TestRules_P4_TheRenewalDoesNotWaitForThePlace(t *testing.T) {
	p := newPlay(t)
	p.states(Pending, 10, 10, Nothing, 0, 1)
	p.hears(News{Word: Waits, N: 10, Lease: 20 * time.Second}, None)
	p.now += 1500 * ms
	p.hears(News{Word: Called, N: 10, Lease: kept}, None)
	p.states(Pending, 11, 10, Unit, 1, 1)
	p.now += 1500 * ms
	p.hears(News{Word: Has, N: 11, Unit: 10, Lease: kept}, None)
	p.states(Pending, 12, 10, Unit, 1, 1)
}
