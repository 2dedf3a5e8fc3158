package heap

import (
	"math"
	"math/rand/v2"
	"testing"

	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/internal/seeds"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type thing struct{ place int32 }

func (t *thing) Place() *int32 { return &t.place }

// TestHeap_AgainstAMap compares a heap with a plain map under random operations.
func TestHeap_AgainstAMap(t *testing.T) {
	seeds.Each(t, 100, func(t *testing.T, rng *rand.Rand) {
		var h Heap[*thing]
		model := map[*thing]int64{}
		all := []*thing{new(thing)}
		moment := func() int64 { return rng.Int64N(100) }
		for range rng.IntN(301) {
			x := all[rng.IntN(len(all))]
			switch op := rng.IntN(11); {
			case op < 5:
				x = new(thing)
				all = append(all, x)
				fallthrough
			case op < 7:
				model[x] = moment()
				h.Set(x, model[x])
			case op < 9:
				h.Remove(x) // sometimes one that was removed already
				delete(model, x)
			case op < 10:
				h.SetAll(func(x *thing) int64 {
					model[x] = moment()
					return model[x]
				})
			default:
				h.Clip()
			}
			check(t, &h, model)
		}
		last := int64(math.MinInt64)
		for h.Len() > 0 {
			x, at := h.First()
			if at < last {
				t.Fatal("drained out of order")
			}
			last = at
			h.Remove(x)
		}
	})
}

func check(t *testing.T, h *Heap[*thing], model map[*thing]int64) {
	least := int64(math.MaxInt64)
	for x, at := range model {
		least = min(least, at)
		if p := int(x.place) - 1; p < 0 || p >= len(h.slots) || h.slots[p].item != x || h.slots[p].at != at {
			t.Fatal("an item is not where it says")
		}
	}
	if h.Len() != len(model) {
		t.Fatalf("%d items, want %d", h.Len(), len(model))
	}
	n := 0
	for x, at := range h.All() {
		if n++; model[x] != at {
			t.Fatal("All says another moment")
		}
	}
	if n != len(model) {
		t.Fatalf("All yields %d items, want %d", n, len(model))
	}
	if h.Len() == 0 {
		return
	}
	if _, at := h.First(); at != least {
		t.Fatal("the top is not the first")
	}
}
