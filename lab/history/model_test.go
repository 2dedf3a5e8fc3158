package history

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/anteroom/anteroom/internal/seeds"
)

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

// The three checks agree on any history: the pairs of claims, porcupine on the cut and shortened one, and porcupine
// on all of it, with acquires whose outcome is unknown and whose return is open.
func TestModel_AgreesWithThePairs(t *testing.T) {
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
		cut := true
		for _, s := range segments(spans) {
			cut = cut && porcupine.CheckOperations(leaseMutex, operations(s))
		}
		all := porcupine.CheckOperations(full.ToModel(), everything(spans, unknown))
		if pairs != cut || cut != all {
			t.Fatalf("pairs %v, porcupine on the cut history %v, on all of it %v", pairs, cut, all)
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

// A long history is cut, and a double hold in the middle of it is found by porcupine.
func TestModel_FindsADoubleHoldInALongHistory(t *testing.T) {
	for _, planted := range []bool{false, true} {
		s := &script{h: History{Locks: plantedLocks()}}
		for i := range 1500 {
			// Two processes in turn; each asks while the other still holds.
			proc := uint32(1 + i%2)
			early := 0
			if planted && i == 700 {
				early = 6
			}
			h := s.take(proc, 10*i-8, 10*i+1-early)
			s.free(proc, h, 10*i+7, 10*i+9)
		}
		h := s.h.Holds()
		var spans []*span
		for _, x := range h {
			from, to, _ := x.claim()
			spans = append(spans, &span{Hold: x, from: from, to: to, exclusive: to})
		}
		parts := segments(spans)
		illegal := 0
		for _, p := range parts {
			if !porcupine.CheckOperations(leaseMutex, operations(p)) {
				illegal++
			}
		}
		if want := map[bool]int{false: 0, true: 1}[planted]; illegal != want || len(parts) < 5 {
			t.Fatalf("planted %v: %d of %d segments are illegal, want %d", planted, illegal, len(parts), want)
		}
	}
	if fmt.Sprint(Checked) != "checked" {
		t.Fatal("names and kinds are out of step")
	}
}
