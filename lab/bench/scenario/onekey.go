package scenario

import (
	"fmt"
	"slices"
	"time"

	"github.com/anteroom/anteroom/lab/bench/library"
	"github.com/anteroom/anteroom/lab/bench/measure"
)

// contenders are all libraries except those that differ only without contention.
var contenders = slices.DeleteFunc(library.All(), func(name string) bool {
	return name == library.AnteroomDefaults || name == library.EvalshaDefaults
})

// oneKey is many goroutines of one process that want one key, held for no time and for a millisecond.
func oneKey() []Scenario {
	var all []Scenario
	for _, hold := range []time.Duration{0, time.Millisecond} {
		for _, n := range []int{1, 8, 64, 1000} {
			if n == 1 && hold == 0 {
				continue // that is the scenario alone
			}
			s := Scenario{
				Name:      fmt.Sprintf("one-key-%d-hold-%s", n, hold),
				Title:     fmt.Sprintf("%d goroutines, one key, one process, held %v", n, hold),
				Libraries: contenders, Kind: library.Short,
				Load: measure.Load{Goroutines: n, Keys: 1, Hold: hold},
				Warm: 150 * time.Millisecond, For: 400 * time.Millisecond,
				Quick: n == 64 && hold == 0,
			}
			switch {
			case n == 1:
				s.Kind = library.Alone
			case n == 1000 || n == 64 && hold > 0:
				s.Kind = library.Long
			}
			if n == 1000 {
				// A peer takes seconds to give each of a thousand a turn.
				s.For, s.Rounds = time.Second, 3
			}
			if n == 64 && hold == 0 {
				s.Targets = contended
			}
			all = append(all, s)
		}
	}
	return all
}

// contended are the targets for 64 goroutines on one key.
var contended = []Target{
	{Of: library.AnteroomFair, Figure: measure.OpsPerS, Over: library.Peers(), AtLeast: 100},
	{Of: library.AnteroomFair, Figure: measure.OpsPerS, Over: []string{library.Semaphore}, AtLeast: 0.9},
	{Of: library.AnteroomFullFair, Figure: measure.OpsPerS, Over: []string{library.Semaphore}, AtLeast: 0.5},
	{Of: library.AnteroomFair, Figure: MostToLeast, AtMost: 1.2},
	{Of: library.Anteroom, Figure: measure.OpsPerS, Over: []string{library.Mutex}, AtLeast: 0.5},
}
