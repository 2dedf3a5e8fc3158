package measure_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/anteroom/anteroom/lab/bench/library"
	"github.com/anteroom/anteroom/lab/bench/measure"
)

// TestGuard_SeesEveryOverlap is I2: of all orders in which three can enter and leave, a guard reports exactly those
// in which two are inside at the same time, and is free after all of them.
func TestGuard_SeesEveryOverlap(t *testing.T) {
	const people = 3
	var g measure.Guard
	seen := map[bool]int{}
	// state: 0 outside, 1 inside, 2 gone.
	var orders func(steps []int, state [people]int)
	orders = func(steps []int, state [people]int) {
		if len(steps) == 2*people {
			alone, overlap, inside := true, false, 0
			state = [people]int{}
			for _, who := range steps {
				if state[who]++; state[who] == 1 {
					alone = g.Enter(uint32(who+1)) && alone
					inside++
					overlap = overlap || inside > 1
				} else {
					alone = g.Leave(uint32(who+1)) && alone
					inside--
				}
			}
			if alone == overlap {
				t.Errorf("order %v: overlap %v, reported %v", steps, overlap, !alone)
			}
			seen[overlap]++
			if !g.Enter(9) || !g.Leave(9) {
				t.Fatalf("order %v: somebody is still there", steps)
			}
			return
		}
		for who := range people {
			if state[who] < 2 {
				state[who]++
				orders(append(steps[:len(steps):len(steps)], who), state)
				state[who]--
			}
		}
	}
	orders(nil, [people]int{})
	if seen[false] != 6 || seen[true] != 90-6 {
		t.Errorf("%d orders without and %d with an overlap, not 6 and 84", seen[false], seen[true])
	}
}

// TestTeam_FindsPlantedViolations: a lock that does not exclude is detected, one that does is not accused.
func TestTeam_FindsPlantedViolations(t *testing.T) {
	load := measure.Load{Goroutines: 4, Keys: 1, Hold: 100 * time.Microsecond}
	w := measure.Window{Warm: time.Millisecond, For: 300 * time.Millisecond}
	for name, excludes := range map[string]bool{library.Nothing: false, library.Mutex: true, library.Semaphore: true} {
		got := load.Muster(t.Context(), open(t, name)).Run(w)
		if got.Ops == 0 {
			t.Errorf("%s: nothing was done", name)
		}
		if excluded := got.Violations == 0; excluded != excludes {
			t.Errorf("%s: %d violations in %d acquisitions", name, got.Violations, got.Ops)
		}
	}
}

// TestTeam_KeysHaveTheirOwnGuards: holders of different keys may be inside at the same time.
func TestTeam_KeysHaveTheirOwnGuards(t *testing.T) {
	load := measure.Load{Goroutines: 8, Keys: 50, Hold: 100 * time.Microsecond}
	got := load.Muster(t.Context(), open(t, library.Mutex)).Run(measure.Window{For: 200 * time.Millisecond})
	if got.Ops == 0 || got.Violations != 0 {
		t.Errorf("%d violations in %d acquisitions", got.Violations, got.Ops)
	}
}

func TestMapGuards_AreShared(t *testing.T) {
	path := filepath.Join(t.TempDir(), "guards")
	var maps [2][]measure.Guard
	for i := range maps {
		guards, unmap, err := measure.MapGuards(path, 10)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := unmap(); err != nil {
				t.Error(err)
			}
		}()
		maps[i] = guards
	}
	if !maps[0][7].Enter(1) || maps[1][7].Enter(2) {
		t.Error("the second process did not see the first")
	}
	if maps[0][7].Leave(1) {
		t.Error("the first process did not see the second")
	}
	if !maps[1][7].Leave(2) || !maps[0][7].Enter(1) || !maps[0][8].Enter(1) {
		t.Error("the guards are not free again, or are one")
	}
}
