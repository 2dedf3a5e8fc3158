package scenario

import (
	"context"
	"fmt"
	"time"

	"github.com/anteroom/anteroom/lab/bench/growth"
	"github.com/anteroom/anteroom/lab/bench/library"
	"github.com/anteroom/anteroom/lab/bench/measure"
)

// renewedEvery is the longest time between two renewals of a lock of Anteroom's default
// configuration.
const renewedEvery = 10 * time.Second

// heldLocks is locks held and renewed by one process.
func heldLocks() []Scenario {
	var all []Scenario
	for _, n := range []int{1_000, 10_000, 100_000} {
		s := Scenario{
			Name: fmt.Sprintf("held-%d", n), Title: fmt.Sprintf("%d held locks, watchdog on", n),
			Libraries: []string{library.Anteroom}, Kind: library.Alone,
			Load: measure.Load{Goroutines: 64, Keys: n},
			// Each lock is renewed every 8 to 10 s, and checked every 5 s.
			For: 10500 * time.Millisecond, Rounds: 1, Limit: 3 * time.Minute,
			Measure: grow(growth.Held),
		}
		switch n {
		case 10_000:
			// The only peer that renews by itself.
			s.Libraries = append(s.Libraries, library.Rueidislock)
		case 100_000:
			s.Targets = []Target{
				{Of: library.Anteroom, Figure: growth.MoreRoutines, AtMost: 8},
				{Of: library.Anteroom, Figure: growth.HeapPerItem, AtMost: 1024},
				{Of: library.Anteroom, Figure: growth.CPU, AtMost: 10},
				{Of: library.Anteroom, Figure: growth.InTime, AtLeast: 100},
			}
		}
		all = append(all, s)
	}
	return all
}

// parkedGoroutines is goroutines that wait behind a local owner.
func parkedGoroutines() []Scenario {
	var all []Scenario
	for _, n := range []int{1_000, 10_000, 100_000} {
		s := Scenario{
			Name: fmt.Sprintf("parked-%d", n), Title: fmt.Sprintf("%d goroutines parked behind a local owner", n),
			Libraries: []string{library.AnteroomFair, library.Semaphore}, Kind: library.Short,
			Load: measure.Load{Goroutines: n, Keys: 1},
			For:  time.Second, Rounds: 1, Limit: 3 * time.Minute,
			Measure: grow(growth.Waiters),
		}
		if n == 100_000 {
			s.Libraries = append(s.Libraries, library.Mutex)
			s.For = 5500 * time.Millisecond // the watchdog checks once
			s.Targets = []Target{
				{Of: library.AnteroomFair, Figure: growth.HeapPerItem, AtMost: 1024},
				{Of: library.AnteroomFair, Figure: growth.OtherCommands, AtMost: 0.5}, // none
			}
		}
		all = append(all, s)
	}
	return all
}

// usedKeys is keys used once, one after another.
func usedKeys() []Scenario {
	var all []Scenario
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		all = append(all, Scenario{
			Name: fmt.Sprintf("keys-%d", n), Title: fmt.Sprintf("%d keys, each used once", n),
			Libraries: []string{library.Anteroom}, Kind: library.Alone,
			Load: measure.Load{Goroutines: 64, Keys: n},
			// Its duration is not fixed; this is for the estimate.
			For: time.Duration(n) * 40 * time.Microsecond, Rounds: 1, Limit: 5 * time.Minute,
			Measure: grow(growth.Keys),
		})
	}
	return all
}

// grow measures one size in a process of its own.
func grow(kind growth.Kind) func(context.Context, Round) (measure.Figures, error) {
	return func(ctx context.Context, r Round) (measure.Figures, error) {
		if r.Library.Name == library.Rueidislock && r.For > renewedEvery {
			// It extends every half of the lease instead of every third.
			r.For = r.For * 3 / 2
		}
		n := r.Scenario.Load.Keys
		if kind == growth.Waiters {
			n = r.Scenario.Load.Goroutines
		}
		return growth.Run(ctx, growth.Plan{
			Kind: kind, Library: r.Library.Name, Addr: r.Addr, Prefix: r.Prefix, N: n, For: r.For,
		}, r.Note)
	}
}
