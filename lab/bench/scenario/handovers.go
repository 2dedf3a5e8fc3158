package scenario

import (
	"context"
	"time"

	"github.com/anteroom/anteroom/lab/bench/handover"
	"github.com/anteroom/anteroom/lab/bench/library"
	"github.com/anteroom/anteroom/lab/bench/measure"
)

// handovers is a lock that goes to and fro between two processes. Rounds are many, because the speed of a machine
// varies between rounds.
func handovers() []Scenario {
	direct := Scenario{
		Name: "handover", Title: "Hand-over between two processes",
		Libraries: []string{library.Anteroom, library.Redsync, library.Redislock, library.Rueidislock}, Kind: library.Short, Processes: 2,
		Load: measure.Load{Goroutines: 1, Keys: 1}, Placed: true,
		For: time.Second, Rounds: 6,
		Measure: handOver,
		Targets: []Target{
			{Of: library.Anteroom, Figure: handover.RoundTrips, AtMost: 1.3},
			{Of: library.Anteroom, Figure: handover.P50, Over: []string{library.Rueidislock}, AtMost: 0.75},
		},
	}
	anywhere := direct
	anywhere.Name, anywhere.Title, anywhere.Placed = "handover-anywhere", direct.Title+", wherever the kernel puts them", false
	anywhere.Libraries = []string{library.Anteroom, library.Redislock, library.Rueidislock}
	anywhere.Rounds, anywhere.Targets = 2, nil
	far := direct
	far.Name, far.Title = "handover-1ms", "Hand-over between two processes, Redis 1 ms away"
	far.Measure, far.Placed, far.Rounds = throughProxy(handOver), false, 2
	return []Scenario{direct, anywhere, far}
}

func handOver(ctx context.Context, r Round) (measure.Figures, error) {
	return handover.Run(ctx, handover.Plan{
		Library: r.Library.Name, Kind: r.Scenario.Kind, Addr: r.Addr, Key: r.Prefix + ":handover", For: r.For,
	}, r.Note)
}
