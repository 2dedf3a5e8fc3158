package scenario

import (
	"context"
	"fmt"
	"time"

	"github.com/anteroom/anteroom/bench/library"
	"github.com/anteroom/anteroom/bench/measure"
)

// What a scenario's budget is, for the curve over it.
const (
	BudgetHandoffs measure.Figure = "max_handoffs"
	BudgetTimeMS   measure.Figure = "max_handoff_time_ms"
)

// mostHandoffs is the greatest value of LockConfig.MaxHandoffs.
const mostHandoffs = 65535

// budgets is the budget of hand-offs that a process has before another one gets its
// turn: first as a number, at the default time, then as a time, with as many hand-offs
// as can be; and the time again for a lock that is held for a millisecond.
func budgets() []Scenario {
	var all []Scenario
	add := func(name string, b library.Budget, hold time.Duration) {
		s := Scenario{
			Name: name, Title: fmt.Sprintf("Two processes × 64 goroutines, one key, held %v, MaxHandoffs %d, MaxHandoffTime %v", hold, b.Handoffs, b.Time),
			Libraries: []string{library.AnteroomFair}, Kind: library.Short, Processes: 2,
			Load: measure.Load{Goroutines: 64, Keys: 1, Hold: hold},
			Warm: 300 * time.Millisecond, For: 2200 * time.Millisecond, Rounds: 1,
			Settings: fmt.Sprintf("MaxHandoffs %d, MaxHandoffTime %v", b.Handoffs, b.Time),
		}
		measured := together(&b)
		s.Measure = func(ctx context.Context, r Round) (measure.Figures, error) {
			f, err := measured(ctx, r)
			if err != nil {
				return nil, err
			}
			return f.Add(measure.Figures{
				BudgetHandoffs: float64(b.Handoffs), BudgetTimeMS: float64(b.Time.Milliseconds()),
			}), nil
		}
		all = append(all, s)
	}
	for _, n := range []int{1, 10, 100, 1_000, 3_000, 10_000, mostHandoffs} {
		add(fmt.Sprintf("budget-handoffs-%d", n), library.Budget{Handoffs: n, Time: 50 * time.Millisecond}, 0)
	}
	for _, ms := range []int{1, 2, 5, 10, 20, 100} {
		add(fmt.Sprintf("budget-time-%dms", ms), library.Budget{Handoffs: mostHandoffs, Time: time.Duration(ms) * time.Millisecond}, 0)
	}
	for _, ms := range []int{2, 10, 20, 50, 100} {
		add(fmt.Sprintf("budget-work-%dms", ms), library.Budget{Handoffs: mostHandoffs, Time: time.Duration(ms) * time.Millisecond}, time.Millisecond)
	}
	return all
}
