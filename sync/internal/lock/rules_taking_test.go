package lock

import (
	"testing"
	"time"
)

// inLine is a conversation whose statement 10 has made a place.
func inLine(t *testing.T) *play {
	p := newPlay(t)
	p.states(OutOfTurn, 10, 10, Nothing, 0, 1)
	p.hears(News{Word: Waits, N: 10, Lease: time.Second}, None)
	p.now += 10 * ms
	return p
}

// Who takes the lock has it taken for the place, immediately, and the lease counts from that statement.
func TestRules_Taking_ForThePlace(t *testing.T) {
	p := inLine(t)
	p.states(OutOfTurn, 20, 10, Place, 1, 2)
	p.hears(News{Word: Has, N: 20, Unit: 20, Lease: time.Hour}, Granted)
	if g := p.c.Grant; g.Unit != 20 || g.Sent != 10*ms {
		t.Errorf("granted %+v", g)
	}
	p.states(Quiet, 30, 20, Unit, 0, 0)
	p.hears(News{Word: Silence, N: 30}, None)
	p.now += 30 * time.Minute
	p.states(Quiet, 40, 20, Unit, 0, 0) // the unit may be there for an hour
	p.hears(News{Word: Clock}, None)
}

// Only a place whose number is known is named: after an answer to its last statement.
func TestRules_Taking_OnlyForANumberThatIsKnown(t *testing.T) {
	p := inLine(t)
	p.now += time.Second
	p.states(Pending, 20, 10, Place, 1, 1)
	p.quiet(OutOfTurn, never)
	p.hears(News{Word: Silence, N: 20}, None)
	p.states(OutOfTurn, 30, 10, Place, 1, 1)
	p.hears(News{Word: Waits, N: 20, Lease: time.Second}, None)
	p.quiet(OutOfTurn, never)
	p.hears(News{Word: Waits, N: 30, Lease: time.Second}, None)
	p.states(OutOfTurn, 40, 30, Place, 1, 2)
	p.hears(News{Word: Silence, N: 40}, None)
	p.states(OutOfTurn, 50, 10, Place, 1, 1)
}

// Until it is known what became of it, the place is confirmed and not left: what was taken would go with that.
func TestRules_Taking_FirstItMustBeKnown(t *testing.T) {
	for name, h := range map[string]News{
		"it had an effect": {Word: Has, N: 40, Unit: 20, Lease: time.Hour},
		"it had none":      {Word: Waits, N: 40, Lease: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			p := inLine(t)
			p.states(OutOfTurn, 20, 10, Place, 1, 2)
			p.quiet(Quiet, time.Second)
			p.hears(News{Word: Silence, N: 20}, None)
			p.states(Quiet, 30, 10, Place, 1, 1)
			p.hears(News{Word: Silence, N: 30, Lease: 20 * ms}, None)
			p.now += 20 * ms
			p.states(Quiet, 40, 10, Place, 1, 1)
			if h.Word == Waits {
				p.hears(h, None)
				p.states(Quiet, 50, 10, Nothing, 0, 0)
				return
			}
			p.hears(h, Granted)
			p.states(Quiet, 50, 20, Unit, 0, 0)
		})
	}
}

// One that had no effect leaves nothing to learn.
func TestRules_Taking_WithoutEffect(t *testing.T) {
	p := inLine(t)
	p.states(OutOfTurn, 20, 10, Place, 1, 2)
	p.hears(News{Word: Failed, N: 20, Lease: 20 * ms}, None)
	p.quiet(OutOfTurn, 30*ms)
	p.states(Quiet, 30, 10, Nothing, 0, 0)
}

// What became of it is not asked for ever: after the life of the place that is left as any other.
func TestRules_Taking_NobodyAsksForEver(t *testing.T) {
	p := inLine(t)
	p.states(OutOfTurn, 20, 10, Place, 1, 2)
	p.hears(News{Word: Silence, N: 20}, None)
	end := p.now + time.Minute
	for n := uint64(30); ; n++ {
		c, s, until := p.c.Next(Quiet, n, p.now)
		if p.c = c; s == nil {
			if p.now = until; p.now > end {
				t.Fatal("the place is still confirmed")
			}
			continue
		}
		if s.Have != Place {
			break
		}
		p.hears(News{Word: Failed, N: n, Lease: 20 * ms}, None)
	}
	p.now += 40 * time.Second
	p.hears(News{Word: Clock}, GivenUp)
}

// It is known to have had no effect also where something was stated since.
func TestRules_Taking_WithoutEffectSaysALateAnswer(t *testing.T) {
	p := inLine(t)
	p.states(OutOfTurn, 20, 10, Place, 1, 2)
	p.now += time.Second
	p.states(OutOfTurn, 30, 10, Place, 1, 1)
	p.hears(News{Word: Failed, N: 20, Lease: 20 * ms}, None)
	p.hears(News{Word: Silence, N: 30}, None)
	p.states(Quiet, 40, 10, Nothing, 0, 0)
}
