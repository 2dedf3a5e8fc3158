package scenario

import (
	"context"
	"fmt"
	"time"

	"github.com/anteroom/anteroom/lab/bench/library"
	"github.com/anteroom/anteroom/lab/bench/measure"
)

// The budget of a result, for the curve over it.
const (
	BudgetHandoffs measure.Figure = "max_handoffs"
	BudgetTimeMS   measure.Figure = "max_handoff_time_ms"
)

// mostHandoffs is the greatest value of LockConfig.MaxHandoffs.
const mostHandoffs = 65535

// budgets varies the budget of hand-offs that a process has before another one gets its turn: as a number, at the
// default time; as a time, with as many hand-offs as possible; and the time again for a lock that is held for a
// millisecond, with Redis here and far. The points of a curve take part like libraries, so that their rounds are
// interleaved.
func budgets() []Scenario {
	var numbers, work []string
	for _, n := range []int{1, 10, 100, 1_000, 10_000, mostHandoffs} {
		numbers = append(numbers, library.Budget{Handoffs: n, Time: 20 * time.Millisecond}.Name())
	}
	for _, ms := range []time.Duration{2, 10, 20, 50, 100} {
		work = append(work, library.Budget{Handoffs: mostHandoffs, Time: ms * time.Millisecond}.Name())
	}
	curve := func(name, title string, hold time.Duration, points []string) Scenario {
		return Scenario{
			Name: name, Title: fmt.Sprintf("Two processes × 64 goroutines, one key, held %v: %s", hold, title),
			Libraries: points, Kind: library.Short, Processes: 2,
			Load: measure.Load{Goroutines: 64, Keys: 1, Hold: hold},
			Warm: 150 * time.Millisecond, For: 2100 * time.Millisecond, Rounds: 2,
			Measure: withBudget,
		}
	}
	far := curve("budget-far", "the time of hand-offs, Redis 1 ms away", time.Millisecond, work)
	far.Measure = throughProxy(withBudget)
	return []Scenario{
		curve("budget-handoffs", "the number of hand-offs", 0, numbers),
		curve("budget-work", "the time of hand-offs", time.Millisecond, work),
		far,
	}
}

// withBudget measures processes that do the same, and records the point on the curve.
func withBudget(ctx context.Context, r Round) (measure.Figures, error) {
	f, err := together(ctx, r)
	if err != nil {
		return nil, err
	}
	b, _ := library.BudgetOf(r.Library.Name)
	return f.Add(measure.Figures{BudgetHandoffs: float64(b.Handoffs), BudgetTimeMS: float64(b.Time.Milliseconds())}), nil
}
