package scenario_test

import (
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/testredis"
	"github.com/anteroom/anteroom/lab/bench/crew"
	"github.com/anteroom/anteroom/lab/bench/growth"
	"github.com/anteroom/anteroom/lab/bench/handover"
	"github.com/anteroom/anteroom/lab/bench/library"
	"github.com/anteroom/anteroom/lab/bench/measure"
	"github.com/anteroom/anteroom/lab/bench/scenario"
)

// brief runs a scenario of the table with one library, for a moment.
func brief(t *testing.T, name, lib string, change func(*scenario.Scenario)) measure.Result {
	t.Helper()
	s, err := scenario.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	// Long enough for everybody to have a turn, including a goroutine that waits for those of a crowd, of 20 ms each,
	// while other scenarios use the processors.
	s.Libraries, s.Rounds, s.Warm, s.For = []string{lib}, 1, 100*time.Millisecond, 1500*time.Millisecond
	change(&s)
	o, err := scenario.Plan{}.Run(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return o.Results[0]
}

// Every way to measure other than measure.Round gives the figures that it exists for.
func TestSeveral_EachWayToMeasure(t *testing.T) {
	testredis.Start(t) // without a redis-server the test is skipped, and the skip counted
	as := func(*scenario.Scenario) {}
	few := func(s *scenario.Scenario) { s.Load.Keys, s.Load.Goroutines = 50, 50 }
	for _, c := range []struct {
		scenario, library string
		change            func(*scenario.Scenario)
		figures           []measure.Figure
	}{
		{"processes-4", library.Redislock, as, []measure.Figure{measure.OpsPerS, measure.CommandsPerOp, measure.Connections, crew.Turns, crew.LongestPause, crew.WorstP99}},
		{"one-each-4-hold-1ms", library.AnteroomDefaults, as, []measure.Figure{measure.OpsPerS, measure.CommandsPerOp, measure.MinPerProcess, crew.LongestTurns}},
		{"lone-rival", library.AnteroomFair, as, []measure.Figure{scenario.LoneOps, scenario.LoneP50, scenario.LoneMax, measure.RedisCPUUSPerOp}},
		{"budget-handoffs", library.Budget{Handoffs: 10, Time: 50 * time.Millisecond}.Name(), as, []measure.Figure{measure.OpsPerS, scenario.BudgetHandoffs, scenario.BudgetTimeMS}},
		{"handover-1ms", library.Anteroom, as, []measure.Figure{handover.P50, handover.RoundTrips, handover.ScriptTrips}},
		{"alone-1ms", library.Evalsha, as, []measure.Figure{measure.OpsPerS, handover.RoundTrip}},
		{"held-1000", library.Anteroom, few, []measure.Figure{growth.HeapPerItem, growth.RedisBytes}},
		{"parked-1000", library.Semaphore, few, []measure.Figure{growth.HandoffsPerS, growth.BareHeap}},
		{"keys-10000", library.Anteroom, few, []measure.Figure{measure.OpsPerS}},
	} {
		t.Run(c.scenario, func(t *testing.T) {
			t.Parallel()
			r := brief(t, c.scenario, c.library, c.change)
			for _, name := range c.figures {
				if v, ok := r.Figures[name]; !ok || v <= 0 {
					t.Errorf("%s is %v", name, v)
				}
			}
			if r.Figures[measure.Violations] != 0 {
				t.Errorf("%v violations", r.Figures[measure.Violations])
			}
		})
	}
}

// Through the proxy a lock and its unlock take at least two delayed round trips.
func TestDelayed_IsDelayed(t *testing.T) {
	testredis.Start(t) // without a redis-server the test is skipped, and the skip counted
	r := brief(t, "alone-1ms", library.Evalsha, func(*scenario.Scenario) {})
	least := float64(4 * scenario.OneWay.Microseconds())
	if v, ok := scenario.Value(r, scenario.TimePerOp); !ok || v < least {
		t.Errorf("a pair took %v µs, and %v are added", v, least)
	}
}

// The quick run has processes, and a second process that waits.
func TestTable_QuickHasProcesses(t *testing.T) {
	for _, name := range []string{"processes-4", "second-process"} {
		s, err := scenario.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		if !s.Quick || s.QuickFor < crew.Span && slices.ContainsFunc(s.Targets, func(t scenario.Target) bool { return t.Figure == crew.LeastShare }) {
			t.Errorf("%s: quick %v, for %v", name, s.Quick, s.QuickFor)
		}
	}
}
