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

// leaseMutex is the specification: a lock that at most one hold has, and that only this hold frees. The state is the
// hold, nil if the lock is free.
var leaseMutex = porcupine.Model{
	Init: func() any { return (*Hold)(nil) },
	Step: func(state, input, _ any) (bool, any) {
		has, s := state.(*Hold), input.(step)
		if s.takes {
			return has == nil, s.hold
		}
		return has == s.hold, (*Hold)(nil)
	},
}

// maybe is an operation of the full model: an acquire whose outcome is unknown takes the lock or does not, and frees
// it at some time if it did.
type maybe struct{ step }

// full is leaseMutex with acquires whose outcome is unknown.
var full = porcupine.NondeterministicModel{
	Init: func() []any { return []any{(*Hold)(nil)} },
	Step: func(state, input, output any) []any {
		m, ok := input.(maybe)
		if !ok {
			if legal, next := leaseMutex.Step(state, input, output); legal {
				return []any{next}
			}
			return nil
		}
		next := []any{state}
		if legal, other := leaseMutex.Step(state, m.step, output); legal {
			next = append(next, other)
		}
		return next
	},
}

// The pairs of claims say of any history what porcupine says, which also has the acquires whose outcome is unknown and
// whose return is open.
func TestOverlaps_AgreeWithPorcupine(t *testing.T) {
	legal, illegal := 0, 0
	seeds.Each(t, 200, func(t *testing.T, rng *rand.Rand) {
		var spans []*span
		var unknown []*Hold
		for i := range 1 + rng.IntN(7) {
			invoke := rng.Int64N(61)
			h := &Hold{Proc: uint32(i + 1), ID: uint64(i + 1), Invoke: invoke, Outcome: Acquired}
			if rng.IntN(5) == 0 {
				h.Outcome = Unknown
				unknown = append(unknown, h)
				continue
			}
			h.Return = invoke + rng.Int64N(31)
			h.Release = h.Return + rng.Int64N(13)
			h.Released, h.How, h.releases = h.Release+rng.Int64N(6), Released, 1
			from, to, _ := h.claim()
			spans = append(spans, &span{Hold: h, from: from, to: to, exclusive: to})
		}
		sortSpans(spans)
		j := &judge{h: &History{Locks: plantedLocks()}}
		pairs := j.overlaps(0, spans) == 0
		all := porcupine.CheckOperations(full.ToModel(), everything(spans, unknown))
		if pairs != all {
			t.Fatalf("pairs %v, porcupine %v", pairs, all)
		}
		if pairs {
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
