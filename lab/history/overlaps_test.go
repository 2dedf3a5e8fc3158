package history

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/anteroom/anteroom/internal/seeds"
)

// step is one operation for porcupine: hold takes the lock, or frees it.
type step struct {
	takes bool
	hold  *Hold
}

// leased is the specification of a lock with so many units, a Mutex with one: those who have some have no more in all, and
// nobody else gives them back. The state is who has some, up to 64.
func leased(all int64, of map[uint64]*Hold) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return uint64(0) },
		Step: func(state, input, _ any) (bool, any) {
			has, s := state.(uint64), input.(step)
			if !s.takes {
				return has&(1<<s.hold.ID) > 0, has &^ (1 << s.hold.ID)
			}
			sum := s.hold.Units
			for id, h := range of {
				if has&(1<<id) > 0 {
					sum += h.Units
				}
			}
			return sum <= all, has | 1<<s.hold.ID
		},
	}
}

// maybe is an operation of the full model: an acquire whose outcome is unknown takes the lock or does not, and frees
// it at some time if it did.
type maybe struct{ step }

// full is l with acquires whose outcome is unknown.
func full(l porcupine.Model) porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{l.Init()} },
		Step: func(state, input, output any) []any {
			m, ok := input.(maybe)
			if !ok {
				if legal, next := l.Step(state, input, output); legal {
					return []any{next}
				}
				return nil
			}
			next := []any{state}
			if legal, other := l.Step(state, m.step, output); legal {
				next = append(next, other)
			}
			return next
		},
	}
	return m.ToModel()
}

// The claims say of any history what porcupine says, which also has the acquires whose outcome is unknown and
// whose return is open.
func TestOverlaps_AgreeWithPorcupine(t *testing.T) {
	legal, illegal := 0, 0
	seeds.Each(t, 600, func(t *testing.T, rng *rand.Rand) {
		units, of := 1+rng.Int64N(4), map[uint64]*Hold{}
		var spans []*span
		var unknown []*Hold
		for i := range 1 + rng.IntN(7) {
			invoke := rng.Int64N(61)
			h := &Hold{Proc: uint32(i + 1), ID: uint64(i), Invoke: invoke, Outcome: Acquired, Units: 1 + rng.Int64N(units)}
			of[h.ID] = h
			if rng.IntN(5) == 0 {
				h.Outcome = Unknown
				unknown = append(unknown, h)
				continue
			}
			h.Return = invoke + rng.Int64N(31)
			h.Release = h.Return + rng.Int64N(13)
			h.Released, h.How, h.releases = h.Release+rng.Int64N(6), Released, 1
			from, to, _ := h.claim()
			spans = append(spans, &span{Hold: h, units: h.Units, from: from, to: to, exclusive: to})
		}
		sortSpans(spans)
		j := &judge{h: &History{Locks: []Lock{{Units: units}}}}
		alone := j.overlaps(0, spans) == 0
		all := porcupine.CheckOperations(full(leased(units, of)), everything(spans, unknown))
		if alone != all {
			t.Fatalf("of %d units: claims %v, porcupine %v", units, alone, all)
		}
		if alone {
			legal++
		} else {
			illegal++
		}
	})
	if legal == 0 || illegal == 0 {
		t.Fatalf("%d legal histories, %d others", legal, illegal)
	}
	t.Logf("%d legal histories, %d others", legal, illegal)
}

// everything is a history as recorded: nothing is shortened, and open outcomes have no end.
func everything(spans []*span, unknown []*Hold) (ops []porcupine.Operation) {
	for _, s := range spans {
		ops = append(ops,
			porcupine.Operation{Input: step{true, s.Hold}, Call: s.Invoke, Return: s.from},
			porcupine.Operation{Input: step{false, s.Hold}, Call: s.exclusive, Return: s.Released})
	}
	for _, h := range unknown {
		for _, takes := range []bool{true, false} {
			ops = append(ops, porcupine.Operation{Input: maybe{step{takes, h}}, Call: h.Invoke, Return: math.MaxInt64})
		}
	}
	return ops
}
