package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/anteroom/anteroom/lab/bench/crew"
	"github.com/anteroom/anteroom/lab/bench/library"
	"github.com/anteroom/anteroom/lab/bench/measure"
)

// shared are the libraries that exclude other processes.
var shared = []string{library.AnteroomFair, library.Anteroom, library.Redsync, library.Redislock, library.Rueidislock}

// processes is one key that goroutines of several processes want.
func processes() []Scenario {
	var all []Scenario
	for _, n := range []int{1, 4, 8, 16, 32, 64} {
		s := Scenario{
			Name:      fmt.Sprintf("processes-%d", n),
			Title:     fmt.Sprintf("%d × 16 goroutines, one key", n),
			Libraries: shared, Kind: library.Short, Processes: n,
			Load: measure.Load{Goroutines: 16, Keys: 1},
			Warm: 400 * time.Millisecond, For: 1500 * time.Millisecond, Rounds: 2,
			Measure: together,
		}
		switch n {
		case 1:
			s.For = 600 * time.Millisecond
		case 4:
			// A turn of Anteroom is up to 20 ms, and a hundred are needed for the judgement.
			s.For, s.Quick, s.QuickFor, s.QuickRounds = 5500*time.Millisecond, true, 800*time.Millisecond, 1
			s.QuickWarm, s.QuickLibraries = 300*time.Millisecond, []string{library.AnteroomFair, library.Redislock, library.Rueidislock}
			s.Targets = []Target{
				{Of: library.AnteroomFair, Figure: measure.OpsPerS, Over: library.Peers(), AtLeast: 20},
				{Of: library.AnteroomFair, Figure: MostToLeastProcess, AtMost: 2},
			}
		case 16:
			s.For, s.Rounds = 5500*time.Millisecond, 1 // as with 4: turns of 20 ms go round many times
		case 8, 32, 64:
			// Only how Anteroom grows.
			s.Libraries, s.Rounds = []string{library.AnteroomFair}, 1
			if n == 64 {
				s.For = 16 * time.Second // five times round
			}
		}
		if n == 16 || n == 64 {
			// Every process is served: the first figure is missing if one is not.
			s.Targets = []Target{
				{Of: library.AnteroomFair, Figure: MostToLeastProcess, AtMost: 1.3},
				{Of: library.AnteroomFair, Figure: crew.LongestTurns, AtMost: float64(n + 1)},
			}
		}
		all = append(all, s)
	}
	return all
}

// together measures processes that do the same.
func together(ctx context.Context, r Round) (measure.Figures, error) {
	goroutines := slices.Repeat([]int{r.Scenario.Load.Goroutines}, r.Scenario.Processes)
	out, end, err := r.crew(ctx, goroutines)
	if err != nil {
		return nil, err
	}
	return out.Figures().Add(end), nil
}

// Where Anteroom is measured for long, so that it has a hundred turns, peers are measured for enough: each of their
// acquisitions is a turn of its own.
const (
	long   = 4 * time.Second
	enough = 1500 * time.Millisecond
)

// crew runs the processes, and adds the figures of the server.
func (r Round) crew(ctx context.Context, goroutines []int) (out crew.Outcome, f measure.Figures, err error) {
	probe, err := measure.NewProbe(r.Addr)
	if err != nil {
		return out, nil, err
	}
	defer probe.Close()
	span := r.For
	if slices.Contains(library.Peers(), r.Library.Name) && span > long {
		span = enough
	}
	var begin, end measure.Reading
	var beginErr, endErr error
	out, err = crew.Run(ctx, crew.Plan{
		Library: r.Library.Name, Kind: r.Scenario.Kind, Addr: r.Addr,
		Goroutines: goroutines, Hold: r.Scenario.Load.Hold, Prefix: r.Prefix, Warm: r.Warm, For: span,
	}, func() { begin, beginErr = probe.Read() }, func() { end, endErr = probe.Read() })
	if err := errors.Join(err, beginErr, endErr); err != nil {
		return out, nil, err
	}
	sum := out.Sum()
	if sum.Failure != "" {
		r.Note(sum.Failure)
	}
	return out, end.PerOp(begin, sum.Ops, r.Library.Sends), nil
}
