package scenario

import (
	"context"
	"time"

	"github.com/anteroom/anteroom/lab/bench/crew"
	"github.com/anteroom/anteroom/lab/bench/library"
	"github.com/anteroom/anteroom/lab/bench/measure"
)

// The figures of a process that is alone against a crowd.
const (
	LoneOps measure.Figure = "lone_ops_per_s"
	LoneP50 measure.Figure = "lone_p50_us"
	LoneP99 measure.Figure = "lone_p99_us"
	LoneMax measure.Figure = "lone_max_us"
)

// rivals is a process with many waiters, and another one that wants the same key.
func rivals() []Scenario {
	return []Scenario{{
		Name: "second-process", Title: "64 goroutines, one key, and a second process with as many",
		Libraries: shared, Kind: library.Short, Processes: 2,
		Load: measure.Load{Goroutines: 64, Keys: 1},
		Warm: 400 * time.Millisecond, For: 2200 * time.Millisecond, Rounds: 2,
		Quick: true, QuickWarm: 300 * time.Millisecond, QuickFor: 2100 * time.Millisecond, QuickRounds: 1,
		QuickLibraries: []string{library.AnteroomFair, library.Anteroom, library.Rueidislock},
		Measure:        together,
		Targets: []Target{
			{Of: library.AnteroomFair, Figure: measure.OpsPerS, Over: library.Peers(), AtLeast: 50},
			{Of: library.AnteroomFair, Figure: crew.LeastShare, AtLeast: 30},
			{Of: library.Anteroom, Figure: crew.LeastShare, AtLeast: 30},
		},
	}, {
		Name: "lone-rival", Title: "64 goroutines, one key, and a second process with one goroutine",
		Libraries: shared, Kind: library.Short, Processes: 2,
		Load: measure.Load{Goroutines: 64, Keys: 1},
		Warm: 400 * time.Millisecond, For: 1500 * time.Millisecond, Rounds: 1,
		Settings: "one goroutine in the second process",
		Measure:  loneRival,
	}}
}

// loneRival measures what the only goroutine of a second process gets.
func loneRival(ctx context.Context, r Round) (measure.Figures, error) {
	out, end, err := r.crew(ctx, []int{r.Scenario.Load.Goroutines, 1})
	if err != nil {
		return nil, err
	}
	lone := out.Tallies[1].Figures()
	f := out.Figures().Add(end, measure.Figures{LoneOps: lone[measure.OpsPerS]})
	for to, from := range map[measure.Figure]measure.Figure{LoneP50: measure.P50US, LoneP99: measure.P99US, LoneMax: measure.MaxUS} {
		if v, ok := lone[from]; ok {
			f[to] = v
		}
	}
	return f, nil
}
