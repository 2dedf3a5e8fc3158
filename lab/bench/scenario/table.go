package scenario

import (
	"fmt"
	"slices"
	"time"

	"github.com/anteroom/anteroom/lab/bench/library"
	"github.com/anteroom/anteroom/lab/bench/measure"
)

// Table returns all scenarios, in the order of runs and output.
func Table() []Scenario {
	return slices.Concat(
		alone(),
		oneKey(),
		manyKeys(),
		processes(),
		oneEach(),
		rivals(),
		handovers(),
		delayed(),
		heldLocks(),
		parkedGoroutines(),
		usedKeys(),
		budgets(),
	)
}

// Find returns the scenario of that name.
func Find(name string) (Scenario, error) {
	all := Table()
	if i := slices.IndexFunc(all, func(s Scenario) bool { return s.Name == name }); i >= 0 {
		return all[i], nil
	}
	return Scenario{}, fmt.Errorf("no scenario is called %q", name)
}

// alone is one undisturbed goroutine: the price over two bare script calls. On an otherwise idle machine, most of it
// is the time that processors take to wake up for an answer; so it is also measured while they do not sleep, and
// wherever the kernel puts client and Redis.
func alone() []Scenario {
	s := Scenario{
		Name: "alone", Title: "One goroutine, lock and unlock",
		Libraries: append(library.All(), library.Nothing), Kind: library.Alone,
		Load: measure.Load{Goroutines: 1, Keys: 1}, Placed: true,
		// Many short rounds: a difference of a tenth has to show, and a machine's speed changes within seconds.
		Warm: 50 * time.Millisecond, For: 120 * time.Millisecond, Rounds: 21, Quick: true,
		Targets: []Target{
			{Of: library.Anteroom, Figure: TimePerOp, Over: []string{library.Evalsha}, AtMost: 1.10},
			{Of: library.AnteroomDefaults, Figure: TimePerOp, Over: []string{library.EvalshaDefaults}, AtMost: 1.15},
			// Two, plus what a connection sends besides in the same time.
			{Of: library.Anteroom, Figure: measure.CommandsPerOp, AtMost: 2.02},
		},
	}
	awake := s
	awake.Name, awake.Title, awake.Awake = "alone-awake", s.Title+", while no processor sleeps", true
	awake.Libraries = []string{
		library.Anteroom, library.AnteroomDefaults, library.AnteroomFull, library.Redsync, library.Redislock, library.Rueidislock,
		library.Evalsha, library.EvalshaDefaults,
	}
	awake.Targets = s.Targets[:2]
	anywhere := s
	anywhere.Name, anywhere.Title, anywhere.Placed = "alone-anywhere", s.Title+", wherever the kernel puts it", false
	anywhere.Libraries = []string{library.Anteroom, library.Redsync, library.Redislock, library.Rueidislock, library.Evalsha}
	anywhere.Rounds, anywhere.Quick, anywhere.Targets = 11, false, nil
	return []Scenario{s, awake, anywhere}
}
