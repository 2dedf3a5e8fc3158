package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/anteroom/anteroom/lab/bench/library"
)

// renderFile makes the page of measurements, the blocks of docs/performance.md, and the charts, from a file of results.
func renderFile(file, docs string) error {
	results, err := readResults(file)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(docs, "reference/measurements.md"), []byte(page(results)), 0o644); err != nil {
		return err
	}
	performance := filepath.Join(docs, "performance.md")
	old, err := os.ReadFile(performance)
	if err != nil {
		return err
	}
	text, err := rewrite(string(old), results)
	if err != nil {
		return err
	}
	if err := os.WriteFile(performance, []byte(text), 0o644); err != nil {
		return err
	}
	return drawAll(filepath.Join(docs, "plots"), results)
}

// page is docs/reference/measurements.md.
func page(results []result) string {
	var b strings.Builder
	b.WriteString("# Measurements\n\n<!-- Written by `make bench`. -->\n" +
		"Medians of the rounds, in brackets the least and the greatest. [Performance](../performance.md) explains what they mean, " +
		"and how they were taken; compare only rows of one table.\n")
	group := ""
	for _, s := range scenarios() {
		some := of(results, s.name)
		if len(some) == 0 {
			continue
		}
		if s.group != group {
			group = s.group
			fmt.Fprintf(&b, "\n## %s\n", group)
		}
		fmt.Fprintf(&b, "\n### %s\n\n%s", s.title, markdown(table(some)))
	}
	fmt.Fprintf(&b, "\n## Where a peer is better\n\nEvery figure in which a peer beats Anteroom, fair or not, by more than 5 %%.\n\n%s", markdown(better(results)))
	fmt.Fprintf(&b, "\n## Libraries and settings\n\n%s", markdown(settings(results)))
	return b.String()
}

// table is one scenario: a row for each library, a column for each figure that any of them has and that is not zero for
// all.
func table(some []result) (rows [][]string) {
	heads := []string{"library"}
	var names []string
	for _, c := range columns {
		if slices.ContainsFunc(some, func(r result) bool { return r.Figures[c[0]] != 0 }) || c[0] == violations {
			names, heads = append(names, c[0]), append(heads, c[1])
		}
	}
	rows = [][]string{heads}
	for _, r := range some {
		row := []string{r.Library}
		for _, name := range names {
			row = append(row, r.cell(name, name == opsPerS))
		}
		rows = append(rows, row)
	}
	return rows
}

// cell formats a figure, "–" if it was not measured, with the least and the greatest of the rounds.
func (r result) cell(name string, spread bool) string {
	v, ok := r.Figures[name]
	if !ok {
		return "–"
	}
	text := format(name, v)
	if s, ok := r.Spread[name]; ok && spread {
		text += " (" + format(name, s[0]) + " to " + format(name, s[1]) + ")"
	}
	return text
}

// settings lists each configuration that took part, once.
func settings(results []result) (rows [][]string) {
	rows = [][]string{{"library", "version", "settings"}}
	for _, r := range results {
		row := []string{r.Library, r.Version, r.Settings}
		if !slices.ContainsFunc(rows, func(have []string) bool { return slices.Equal(have, row) }) {
			rows = append(rows, row)
		}
	}
	slices.SortStableFunc(rows[1:], func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	return rows
}

// better lists every figure in which a peer is better than the better of Anteroom, fair or not, and by more than
// noise.
func better(results []result) (rows [][]string) {
	rows = [][]string{{"scenario", "figure: Anteroom, the peer"}}
	ours := []string{library.Anteroom, library.AnteroomFair, library.AnteroomDefaults, library.AnteroomFull, library.AnteroomRWMutex, library.AnteroomSemaphore}
	theirs := append([]string{library.RedissonScripts, library.RedissonPermits}, peers...)
	for _, s := range scenarios() {
		var found []string
		for _, c := range columns {
			more := strings.HasSuffix(c[0], "per_s")
			best := func(libraries []string) (value float64, whose string) {
				for _, name := range libraries {
					v, ok := figure(results, s.name, name, c[0])
					if ok && (whose == "" || more && v > value || !more && v < value) {
						value, whose = v, name
					}
				}
				return value, whose
			}
			a, us := best(ours)
			b, them := best(theirs)
			if us == "" || them == "" || slices.Contains([]string{roundTrip, failures, stuck, violations}, c[0]) {
				continue
			}
			if more && b > 1.05*a || !more && 1.05*b < a {
				found = append(found, fmt.Sprintf("%s: %s, %s %s", c[1], format(c[0], a), format(c[0], b), them))
			}
		}
		if len(found) > 0 {
			rows = append(rows, []string{s.title, strings.Join(found, "; ")})
		}
	}
	return rows
}

// A block of a document is between two marks, the first of which names a figure and the scenarios whose table it is:
//
//	<!-- bench:begin p99_us one-each-4-hold-1ms one-each-16-hold-1ms -->
//	…
//	<!-- bench:end -->
const (
	blockBegin = "<!-- bench:begin "
	blockHead  = " -->\n"
	blockEnd   = "<!-- bench:end -->"
)

// rewrite regenerates every block of a document. Nothing outside of blocks is changed.
func rewrite(document string, results []result) (string, error) {
	var b strings.Builder
	for rest := document; ; {
		before, tail, found := strings.Cut(rest, blockBegin)
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		name, tail, headed := strings.Cut(tail, blockHead)
		_, tail, ended := strings.Cut(tail, blockEnd)
		words := strings.Fields(name)
		if !headed || !ended || len(words) < 2 {
			return "", fmt.Errorf("the block %q has no end, or no scenario", name)
		}
		rows, err := matrix(results, words[0], words[1:])
		if err != nil {
			return "", err
		}
		b.WriteString(blockBegin + name + blockHead + markdown(rows) + blockEnd)
		rest = tail
	}
}

// matrix is one figure: a row for each library, a column for each scenario.
func matrix(results []result, name string, names []string) ([][]string, error) {
	rows := [][]string{{head(name)}}
	var libraries []string
	for _, s := range names {
		some := of(results, s)
		if len(some) == 0 {
			return nil, fmt.Errorf("the scenario %q has no results", s)
		}
		rows[0] = append(rows[0], s)
		for _, r := range some {
			if !slices.Contains(libraries, r.Library) {
				libraries = append(libraries, r.Library)
			}
		}
	}
	for _, lib := range libraries {
		row := []string{lib}
		for _, s := range names {
			cell := "–"
			for _, r := range of(results, s) {
				if r.Library == lib {
					cell = r.cell(name, true)
				}
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// markdown formats a table, the first column to the left.
func markdown(rows [][]string) string {
	var b strings.Builder
	for i, row := range rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			b.WriteString("|---|" + strings.Repeat("---|", len(row)-1) + "\n")
		}
	}
	return b.String()
}

// text formats a table for a terminal.
func text(rows [][]string) string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(t, "  "+strings.Join(row, "\t"))
	}
	_ = t.Flush() // a Builder does not fail
	return b.String()
}

// head is the name of a figure in a table.
func head(name string) string {
	for _, c := range columns {
		if c[0] == name {
			return c[1]
		}
	}
	return name
}

// format formats a figure with its unit, which its name implies.
func format(name string, v float64) string {
	switch {
	case strings.HasSuffix(name, "_us") && v >= 1e6:
		return number(v/1e6) + " s"
	case strings.HasSuffix(name, "_us") && v >= 1e3:
		return number(v/1e3) + " ms"
	case strings.HasSuffix(name, "_us") || strings.Contains(name, "_us_per"):
		return number(v) + " µs"
	case strings.Contains(name, "percent"):
		return number(v) + " %"
	case strings.Contains(name, "bytes"):
		return number(v) + " B"
	}
	return number(v)
}

// number formats three digits, with thousands separated.
func number(v float64) string {
	if v < 1000 {
		v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64) // what was formatted parses
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	text := strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
