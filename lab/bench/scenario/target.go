package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/anteroom/anteroom/lab/bench/measure"
)

// Figures derived from others.
const (
	// TimePerOp is the average time of one acquisition and its release, for a single goroutine.
	TimePerOp measure.Figure = "us_per_op"
	// MostToLeast is the acquisitions of the most served goroutine divided by those of the least served one.
	MostToLeast measure.Figure = "most_to_least_goroutine"
	// MostToLeastProcess is the same for processes.
	MostToLeastProcess measure.Figure = "most_to_least_process"
)

// value returns a figure of r, and whether there is one.
func value(r measure.Result, name measure.Figure) (float64, bool) {
	over := func(a, b float64) (float64, bool) { return a / b, b > 0 }
	f := r.Figures
	switch name {
	case TimePerOp:
		return over(1e6*float64(r.Goroutines*r.Processes), f[measure.OpsPerS])
	case MostToLeast:
		return over(f[measure.MaxPerGoroutine], f[measure.MinPerGoroutine])
	case MostToLeastProcess:
		return over(f[measure.MaxPerProcess], f[measure.MinPerProcess])
	}
	v, ok := f[name]
	return v, ok
}

// Verdict is a target and its result.
type Verdict struct {
	Target Target
	// Value is the figure, or its ratio; Found reports whether it could be computed.
	Value float64
	Found bool
	Met   bool
	// Against is the library, or the scenario, to which Value is a ratio, "" for none.
	Against string
}

// Judge compares a target with the results of its scenario, by name. A target whose figure is missing is not met.
func (t Target) Judge(scenario string, all []measure.Result) Verdict {
	v := Verdict{Target: t, Against: t.Than}
	results := resultsOf(scenario, all)
	v.Value, v.Found = t.of(results, t.Of)
	if v.Found && t.Than != "" {
		var base float64
		if base, v.Found = t.of(resultsOf(t.Than, all), t.Of); v.Found {
			v.Found = base > 0
			v.Value /= base
		}
	}
	if v.Found && len(t.Over) > 0 {
		best := 0.0
		for _, name := range t.Over {
			if x, ok := t.of(results, name); ok && (v.Against == "" || t.better(x, best)) {
				best, v.Against = x, name
			}
		}
		if v.Found = best > 0; v.Found {
			v.Value /= best
		}
	}
	v.Met = v.Found && (t.AtLeast > 0 && v.Value >= t.AtLeast || t.AtMost > 0 && v.Value <= t.AtMost)
	return v
}

func resultsOf(scenario string, all []measure.Result) (some []measure.Result) {
	for _, r := range all {
		if r.Scenario == scenario {
			some = append(some, r)
		}
	}
	return some
}

func (t Target) of(results []measure.Result, library string) (float64, bool) {
	i := slices.IndexFunc(results, func(r measure.Result) bool { return r.Library == library })
	if i < 0 {
		return 0, false
	}
	return value(results[i], t.Figure)
}

// better reports which of two figures to compare with is the harder one to meet.
func (t Target) better(a, b float64) bool {
	if t.AtMost > 0 {
		return a < b
	}
	return a > b
}

// String describes the target.
func (t Target) String() string {
	text := t.Of + ": " + string(t.Figure)
	bound := fmt.Sprintf(" ≥ %g", t.AtLeast)
	if t.AtMost > 0 {
		bound = fmt.Sprintf(" ≤ %g", t.AtMost)
	}
	switch len(t.Over) {
	case 0:
		if t.Than != "" {
			return text + bound + " × that of " + t.Than
		}
		return text + bound
	case 1:
		return text + bound + " × " + t.Over[0]
	}
	return text + bound + " × the best of " + strings.Join(t.Over, ", ")
}

// String describes the target, its result, and whether it is met.
func (v Verdict) String() string {
	switch {
	case !v.Found:
		return "MISSED  " + v.Target.String() + ": not found"
	case !v.Met:
		return fmt.Sprintf("MISSED  %v: %s%s", v.Target, compact(v.Value), v.against())
	}
	return fmt.Sprintf("met     %v: %s%s", v.Target, compact(v.Value), v.against())
}

func (v Verdict) against() string {
	if len(v.Target.Over) < 2 {
		return ""
	}
	return " × " + v.Against
}
