package scenario

import (
	"context"
	"time"

	"github.com/anteroom/anteroom/bench/handover"
	"github.com/anteroom/anteroom/bench/library"
	"github.com/anteroom/anteroom/bench/measure"
)

// handovers is a lock that goes to and fro between two processes.
func handovers() []Scenario {
	direct := Scenario{
		Name: "handover", Title: "Hand-over between two processes",
		Libraries: []string{library.Anteroom, library.Redsync, library.Redislock, library.Rueidislock}, Kind: library.Short, Processes: 2,
		Load: measure.Load{Goroutines: 1, Keys: 1},
		For:  time.Second, Rounds: 2,
		Measure: handOver,
		Targets: []Target{{Of: library.Anteroom, Figure: handover.RoundTrips, AtMost: 2.5}},
	}
	awake := direct
	awake.Name, awake.Title, awake.Awake = "handover-awake", direct.Title+", while no processor sleeps", true
	far := direct
	far.Name, far.Title = "handover-1ms", "Hand-over between two processes, Redis 1 ms away"
	far.Measure = throughProxy(handOver)
	return []Scenario{direct, awake, far}
}

func handOver(ctx context.Context, r Round) (measure.Figures, error) {
	return handover.Run(ctx, handover.Plan{
		Library: r.Library.Name, Kind: r.Scenario.Kind, Addr: r.Addr, Key: r.Prefix + ":handover", For: r.For,
	}, r.Note)
}
