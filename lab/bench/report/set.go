package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/anteroom/anteroom/lab/bench/measure"
	"github.com/anteroom/anteroom/lab/bench/plot"
	"github.com/anteroom/anteroom/lab/bench/scenario"
)

// set is a set of results to choose from.
type set []measure.Result

// of returns the results of a scenario.
func (s set) of(scenario string) set {
	var some set
	for _, r := range s {
		if r.Scenario == scenario {
			some = append(some, r)
		}
	}
	return some
}

// get returns one result.
func (s set) get(scenario, library string) (measure.Result, bool) {
	i := slices.IndexFunc(s, func(r measure.Result) bool { return r.Scenario == scenario && r.Library == library })
	if i < 0 {
		return measure.Result{}, false
	}
	return s[i], true
}

// series returns the results of a family by x: those of a library in all scenarios whose name is the family's and a
// number; or, without a library, all of one scenario.
func (s set) series(family, library string, x func(measure.Result) float64) set {
	var some set
	for _, r := range s {
		if library == "" && r.Scenario == family || library != "" && r.Library == library && strings.HasPrefix(r.Scenario, family+"-") {
			some = append(some, r)
		}
	}
	slices.SortFunc(some, func(a, b measure.Result) int { return cmp.Compare(x(a), x(b)) })
	return some
}

// point returns a figure and its spread as a point of a chart.
func point(r measure.Result, name measure.Figure, x float64) (plot.Point, bool) {
	v, ok := scenario.Value(r, name)
	if !ok {
		return plot.Point{}, false
	}
	p := plot.Point{X: x, Y: v, Low: v, High: v}
	if s, ok := r.Spread[name]; ok && s[0] <= v && v <= s[1] {
		p.Low, p.High = s[0], s[1]
	}
	return p, true
}

// text formats a figure with its unit, which its name implies.
func text(name measure.Figure, v float64) string {
	n := string(name)
	switch {
	case strings.HasSuffix(n, "_us") || name == scenario.TimePerOp:
		return micros(v)
	case strings.Contains(n, "percent"):
		return plot.Number(v) + " %"
	case strings.HasSuffix(n, "_bytes") || strings.Contains(n, "bytes_per_item"):
		n := plot.Number(v)
		if last := n[len(n)-1]; last >= '0' && last <= '9' {
			n += " "
		}
		return n + "B"
	case strings.HasSuffix(n, "_s") && !strings.HasSuffix(n, "per_s"):
		return plot.Number(v) + " s"
	}
	return plot.Number(v)
}

// micros formats a time given in microseconds.
func micros(v float64) string {
	switch {
	case v < 1:
		return fmt.Sprintf("%s ns", plot.Number(v*1e3))
	case v < 1e3:
		return plot.Number(v) + " µs"
	case v < 1e6:
		return plot.Number(v/1e3) + " ms"
	}
	return plot.Number(v/1e6) + " s"
}

// cell formats a figure of a result, "–" if it was not measured.
func cell(r measure.Result, name measure.Figure) string {
	v, ok := scenario.Value(r, name)
	if !ok {
		return "–"
	}
	return text(name, v)
}

// spread formats the minimum and the maximum of the rounds.
func spread(r measure.Result, name measure.Figure) string {
	s, ok := r.Spread[name]
	if !ok || s[0] == s[1] {
		return ""
	}
	return " (" + text(name, s[0]) + " to " + text(name, s[1]) + ")"
}
