package main

import (
	"fmt"
	"slices"
	"strings"
)

// target is a demand on a scenario's results, set beforehand.
type target struct {
	of, figure string
	over       []string // the libraries by whose best the figure is divided; nil: the figure itself
	than       string   // the scenario by whose figure of the same library it is divided, instead of over
	// atLeast or atMost is the bound; the other one is 0.
	atLeast, atMost float64
}

// judge returns the figure or its ratio, and to what it is a ratio. A target whose figure is missing is not met.
func (t target) judge(scenario string, results []result) (value float64, against string, met bool) {
	value, found := figure(results, scenario, t.of, t.figure)
	base := 1.0
	if t.than != "" {
		base, _ = figure(results, t.than, t.of, t.figure)
		against = t.than
	}
	for i, name := range t.over {
		v, _ := figure(results, scenario, name, t.figure)
		if i == 0 || v > 0 && (t.atMost > 0 && v < base || t.atLeast > 0 && v > base) {
			base, against = v, name
		}
	}
	if !found || base == 0 {
		return 0, "", false
	}
	value /= base
	return value, against, t.atLeast > 0 && value >= t.atLeast || t.atMost > 0 && value <= t.atMost
}

func (t target) String() string {
	words := fmt.Sprintf("%s: %s ≥ %g", t.of, head(t.figure), t.atLeast)
	if t.atMost > 0 {
		words = fmt.Sprintf("%s: %s ≤ %g", t.of, head(t.figure), t.atMost)
	}
	switch {
	case t.than != "":
		return words + " × that of " + t.than
	case len(t.over) > 1:
		return words + " × the best of " + strings.Join(t.over, ", ")
	case len(t.over) == 1:
		return words + " × " + t.over[0]
	}
	return words
}

// verdicts is the targets of the measured scenarios, and what was measured.
func verdicts(results []result) (rows [][]string) {
	rows = [][]string{{"scenario", "demanded", "measured", ""}}
	for _, s := range scenarios() {
		if len(of(results, s.name)) == 0 {
			continue
		}
		for _, t := range s.targets {
			if !slices.ContainsFunc(results, func(r result) bool { return r.Scenario == s.name && r.Library == t.of }) {
				continue // not in this run
			}
			value, against, met := t.judge(s.name, results)
			said := map[bool]string{true: "met", false: "**missed**"}[met]
			measured := format(t.figure, value)
			if against != "" {
				measured = number(value) + " × " + against
			}
			rows = append(rows, []string{s.title, t.String(), measured, said})
		}
	}
	return rows
}
