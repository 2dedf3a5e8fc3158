package scenario_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/internal/testredis"
	"github.com/anteroom/anteroom/lab/bench/library"
	"github.com/anteroom/anteroom/lab/bench/measure"
	"github.com/anteroom/anteroom/lab/bench/scenario"
)

func TestMain(m *testing.M) {
	_ = os.Setenv("GORACE", "atexit_sleep_ms=1") // of the children, which end often
	child.Run(scenario.Roles())
	goleak.VerifyTestMain(m)
}

// TestTable: names are unique, and every scenario can be run and judged.
func TestTable(t *testing.T) {
	names := map[string]bool{}
	for _, s := range scenario.Table() {
		if names[s.Name] || s.Name == "" || strings.ContainsAny(s.Name, " \t") || s.Title == "" {
			t.Errorf("name %q, title %q", s.Name, s.Title)
		}
		names[s.Name] = true
		if len(s.Libraries) == 0 || s.For <= 0 || s.Measure == nil && (s.Load.Goroutines < 1 || s.Load.Keys < 1) {
			t.Errorf("%s cannot be run: %+v", s.Name, s)
		}
		for _, lib := range s.Libraries {
			if _, err := library.For(lib, s.Kind); err != nil {
				t.Errorf("%s: %v", s.Name, err)
			}
		}
		for _, target := range s.Targets {
			for _, lib := range append(slices.Clone(target.Over), target.Of) {
				if !slices.Contains(s.Libraries, lib) {
					t.Errorf("%s: %v is about %s, which takes no part", s.Name, target, lib)
				}
			}
			if _, err := scenario.Find(target.Than); target.Than != "" && (err != nil || len(target.Over) > 0) {
				t.Errorf("%s: %v compares with %v and %q", s.Name, target, target.Over, target.Than)
			}
			if (target.AtLeast > 0) == (target.AtMost > 0) {
				t.Errorf("%s: %v has not one bound", s.Name, target)
			}
		}
		if found, err := scenario.Find(s.Name); err != nil || found.Title != s.Title {
			t.Errorf("%s is not found: %v", s.Name, err)
		}
	}
	if _, err := scenario.Find("no such"); err == nil {
		t.Error("a scenario that there is not")
	}
}

// TestPlan_RoundsAreInterleaved is I1.
func TestPlan_RoundsAreInterleaved(t *testing.T) {
	testredis.Start(t) // without a redis-server the test is skipped, and the skip counted
	var seen []string
	s := scenario.Scenario{
		Name: "s", Libraries: []string{library.Mutex, library.Semaphore, library.Nothing}, For: time.Second, Rounds: 4,
		Measure: func(_ context.Context, r scenario.Round) (measure.Figures, error) {
			seen = append(seen, fmt.Sprint(r.Number, " ", r.Library.Name))
			r.Note("said")
			if r.For != time.Second || r.Addr == "" || !strings.HasSuffix(r.Prefix, fmt.Sprint(r.Number)) {
				t.Errorf("%+v", r)
			}
			return measure.Figures{measure.OpsPerS: float64(len(seen))}, nil
		},
	}
	o, err := scenario.Plan{}.Run(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"0 sync.Mutex", "0 x/sync/semaphore", "0 nothing", "1 x/sync/semaphore", "1 nothing", "1 sync.Mutex",
		"2 nothing", "2 sync.Mutex", "2 x/sync/semaphore", "3 sync.Mutex", "3 x/sync/semaphore", "3 nothing",
	}
	if !slices.Equal(seen, want) {
		t.Errorf("%q", seen)
	}
	// sync.Mutex was number 1, 6, 8 and 10.
	if r := o.Results[0]; r.Library != library.Mutex || r.Figures[measure.OpsPerS] != 7 || r.Rounds != 4 {
		t.Errorf("%+v", r)
	}
	if !slices.Equal(o.Notes, []string{"sync.Mutex: said", "x/sync/semaphore: said", "nothing: said"}) {
		t.Errorf("%q", o.Notes)
	}
	seen = nil
	if _, err := (scenario.Plan{Rounds: 1, Libraries: regexp.MustCompile("^s")}).Run(t.Context(), s); err != nil || len(seen) != 1 {
		t.Errorf("of one library: %q, %v", seen, err)
	}
	s.Measure = func(context.Context, scenario.Round) (measure.Figures, error) { return nil, errors.New("broken") }
	if _, err := (scenario.Plan{}).Run(t.Context(), s); err == nil || !strings.Contains(err.Error(), "s, sync.Mutex: broken") {
		t.Errorf("an error is told as %v", err)
	}
}

// TestTarget_Judge: what is compared with what; a missing figure is not met.
func TestTarget_Judge(t *testing.T) {
	of := func(name string, f measure.Figures) measure.Result {
		return measure.Summarize(measure.Setup{Library: name, Goroutines: 2, Processes: 1}, []measure.Figures{f})
	}
	results := []measure.Result{
		of("a", measure.Figures{measure.OpsPerS: 1000, measure.CommandsPerOp: 2.5, measure.MinPerGoroutine: 10, measure.MaxPerGoroutine: 12}),
		of("b", measure.Figures{measure.OpsPerS: 10, measure.MinPerGoroutine: 0, measure.MaxPerGoroutine: 12}),
		of("c", measure.Figures{measure.OpsPerS: 5}),
		measure.Summarize(measure.Setup{Scenario: "small", Library: "b"}, []measure.Figures{{measure.OpsPerS: 20}}),
	}
	for _, c := range []struct {
		target  scenario.Target
		value   float64
		found   bool
		met     bool
		against string
	}{
		{scenario.Target{Of: "a", Figure: measure.OpsPerS, Over: []string{"c", "b"}, AtLeast: 100}, 100, true, true, "b"},
		{scenario.Target{Of: "a", Figure: measure.OpsPerS, Over: []string{"c", "b"}, AtLeast: 101}, 100, true, false, "b"},
		{scenario.Target{Of: "a", Figure: measure.OpsPerS, Over: []string{"d", "c"}, AtLeast: 100}, 200, true, true, "c"},
		{scenario.Target{Of: "a", Figure: measure.OpsPerS, Over: []string{"d"}, AtLeast: 100}, 0, false, false, ""},
		{scenario.Target{Of: "d", Figure: measure.OpsPerS, Over: []string{"a"}, AtLeast: 1}, 0, false, false, ""},
		{scenario.Target{Of: "b", Figure: scenario.TimePerOp, Over: []string{"c"}, AtMost: 0.5}, 0.5, true, true, "c"},
		{scenario.Target{Of: "b", Figure: scenario.TimePerOp, Over: []string{"c", "a"}, AtMost: 99}, 100, true, false, "a"},
		{scenario.Target{Of: "a", Figure: measure.CommandsPerOp, AtMost: 2.5}, 2.5, true, true, ""},
		{scenario.Target{Of: "b", Figure: measure.CommandsPerOp, AtMost: 2.5}, 0, false, false, ""},
		{scenario.Target{Of: "a", Figure: scenario.MostToLeast, AtMost: 1.1}, 1.2, true, false, ""},
		{scenario.Target{Of: "b", Figure: scenario.MostToLeast, AtMost: 1.1}, 0, false, false, ""},
		{scenario.Target{Of: "b", Figure: measure.OpsPerS, Than: "small", AtLeast: 0.75}, 0.5, true, false, "small"},
		{scenario.Target{Of: "b", Figure: measure.OpsPerS, Than: "none", AtLeast: 0.75}, 0, false, false, ""},
	} {
		v := c.target.Judge("", results)
		if v.Found != c.found || v.Met != c.met || c.found && (v.Value != c.value || v.Against != c.against) {
			t.Errorf("%v: %+v", c.target, v)
		}
		if said := strings.HasPrefix(v.String(), "met"); said != c.met {
			t.Errorf("%+v is told as %q", v, v)
		}
	}
}

// TestOutcome_Print: the table has the ratios, and what is missing is a dash.
func TestOutcome_Print(t *testing.T) {
	setup := func(name string, fair bool) measure.Setup {
		return measure.Setup{Scenario: "s", Library: name, Fair: fair, Goroutines: 64, Processes: 1, Keys: 1}
	}
	o := scenario.Outcome{
		Scenario: scenario.Scenario{Name: "s", Title: "The title", Targets: []scenario.Target{{Of: library.Redsync, Figure: measure.OpsPerS, AtLeast: 5}}},
		Results: []measure.Result{
			measure.Summarize(setup(library.AnteroomFair, true), []measure.Figures{{measure.OpsPerS: 123_456, measure.MaxUS: 1234.5}}),
			measure.Summarize(setup(library.Redsync, false), []measure.Figures{{measure.OpsPerS: 1000}, {measure.OpsPerS: 2000}, {measure.OpsPerS: 1500}}),
			measure.Summarize(setup(library.Semaphore, true), []measure.Figures{{measure.OpsPerS: 100_000, measure.Stuck: 2, measure.Failures: 1}}),
		},
		Notes: []string{"something"},
	}
	var buf bytes.Buffer
	o.Print(&buf)
	lines := map[string][]string{}
	for line := range strings.Lines(buf.String()) {
		if f := strings.Fields(line); len(f) > 0 {
			lines[f[0]] = f
		}
	}
	for name, want := range map[string]string{
		library.AnteroomFair: "anteroom-fair 123,456 -0+0% 82.3 1.23 – – 1.23ms –",
		library.Redsync:      "redsync 1,500 -33+33% 1 – – – – –",
		library.Semaphore:    "x/sync/semaphore 100,000 -0+0% 66.7 1 – – – – – – – – – – – 1 (2 stuck)",
		"met":                "met redsync: ops_per_s ≥ 5: 1,500",
		"note:":              "note: something",
	} {
		if got := strings.Join(lines[name], " "); !strings.HasPrefix(got, want) {
			t.Errorf("%q, not %q", got, want)
		}
	}
}
