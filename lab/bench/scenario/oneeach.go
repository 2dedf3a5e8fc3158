package scenario

import (
	"fmt"
	"time"

	"github.com/anteroom/anteroom/lab/bench/library"
	"github.com/anteroom/anteroom/lab/bench/measure"
)

// oneEach is one key that many processes want, each with a single goroutine, as pods do. No process has anybody of
// its own to hand the lock to, so every acquisition is a change of process: what matters is how many of the others a
// release disturbs, and whether all of them get their turn.
func oneEach() []Scenario {
	var all []Scenario
	for _, hold := range []time.Duration{0, time.Millisecond} {
		for _, n := range []int{4, 16, 64} {
			all = append(all, Scenario{
				Name:  oneEachName(n, hold),
				Title: fmt.Sprintf("%d processes × 1 goroutine, one key, held %v", n, hold),
				// Anteroom on the client that most programs have.
				Libraries: []string{library.AnteroomDefaults, library.Redsync, library.Redislock, library.Rueidislock},
				Kind:      library.Short, Processes: n,
				Load: measure.Load{Goroutines: 1, Keys: 1, Hold: hold},
				// Held for 1 ms, the lock goes round 64 processes about 20 times: one turn more or less is 5 %.
				Warm: 400 * time.Millisecond, For: 2 * time.Second, Rounds: 2,
				Measure: together, Targets: oneEachTargets(n, hold),
			})
		}
	}
	return all
}

func oneEachName(processes int, hold time.Duration) string {
	return fmt.Sprintf("one-each-%d-hold-%v", processes, hold)
}

// oneEachTargets demand the same price and the same share whatever the number of processes. Rates are demanded where
// the lock is held for no time: otherwise the hold bounds them.
func oneEachTargets(processes int, hold time.Duration) []Target {
	const of = library.AnteroomDefaults
	all := []Target{
		{Of: of, Figure: measure.CommandsPerOp, AtMost: 2.1},
		{Of: of, Figure: MostToLeastProcess, AtMost: 1.11}, // least to most of at least 0.9
	}
	if hold == 0 && processes >= 16 {
		all = append(all, Target{Of: of, Figure: measure.OpsPerS, Over: []string{library.Rueidislock}, AtLeast: 2})
	}
	if hold == 0 && processes == 64 {
		all = append(all, Target{Of: of, Figure: measure.OpsPerS, Than: oneEachName(16, hold), AtLeast: 0.75})
	}
	return all
}
