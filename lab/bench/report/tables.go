package report

import (
	"slices"
	"strings"

	"github.com/anteroom/anteroom/lab/bench/library"
	"github.com/anteroom/anteroom/lab/bench/measure"
	"github.com/anteroom/anteroom/lab/bench/plot"
	"github.com/anteroom/anteroom/lab/bench/scenario"
)

// rows writes a Markdown table whose columns, except the first, are right-aligned.
type rows struct{ strings.Builder }

func newRows(head ...string) *rows {
	t := &rows{}
	t.row(head...)
	t.WriteString("|---|" + strings.Repeat("---:|", len(head)-1) + "\n")
	return t
}

// newList is a table of words, all left-aligned.
func newList(head ...string) *rows {
	t := &rows{}
	t.row(head...)
	t.WriteString(strings.Repeat("|---", len(head)) + "|\n")
	return t
}

func (t *rows) row(cells ...string) { t.WriteString("| " + strings.Join(cells, " | ") + " |\n") }

// columns of the table of a scenario, besides rate and ratio.
var columns = []struct {
	head string
	name measure.Figure
}{
	{"wait p50", measure.P50US},
	{"p99", measure.P99US},
	{"max", measure.MaxUS},
	{"commands/op", measure.CommandsPerOp},
	{"bytes/op", measure.BytesPerOp},
	{"allocs/op", measure.AllocsPerOp},
	{"client CPU/op", measure.ClientCPUUSPerOp},
	{"Redis CPU/op", measure.RedisCPUUSPerOp},
	{"violations", measure.Violations},
}

// table is one scenario: a row for each library.
func table(s set, args []string) string {
	if len(args) != 1 || len(s.of(args[0])) == 0 {
		return ""
	}
	some := s.of(args[0])
	head := []string{"library", "acquisitions/s (least to greatest)", "× best peer", "least…most served"}
	for _, c := range columns {
		head = append(head, c.head)
	}
	t := newRows(head...)
	for _, r := range some {
		cells := []string{
			r.Library, cell(r, measure.OpsPerS) + spread(r, measure.OpsPerS), some.ratio(r, measure.OpsPerS, library.Peers()),
			cell(r, measure.MinPerGoroutine) + "…" + cell(r, measure.MaxPerGoroutine),
		}
		for _, c := range columns {
			if c.name == measure.ClientCPUUSPerOp || c.name == measure.RedisCPUUSPerOp {
				cells = append(cells, cell(r, c.name)+unit(r, c.name, " µs"))
				continue
			}
			cells = append(cells, cell(r, c.name))
		}
		t.row(cells...)
	}
	return t.String()
}

// unit is appended to a figure that is present.
func unit(r measure.Result, name measure.Figure, text string) string {
	if _, ok := r.Figures[name]; ok {
		return text
	}
	return ""
}

// ratio formats how many times the best of others a result's figure is.
func (s set) ratio(r measure.Result, name measure.Figure, others []string) string {
	best := 0.0
	for _, o := range s {
		if slices.Contains(others, o.Library) {
			best = max(best, o.Figures[name])
		}
	}
	v, ok := r.Figures[name]
	if best == 0 || !ok {
		return "–"
	}
	return plot.Number(v / best)
}

// matrix is one figure of several scenarios: a row for each library, a column for each scenario.
func matrix(s set, args []string) string {
	if len(args) < 2 {
		return ""
	}
	name, scenarios := measure.Figure(args[0]), args[1:]
	var libraries []string
	for _, sc := range scenarios {
		some := s.of(sc)
		if len(some) == 0 {
			return ""
		}
		for _, r := range some {
			if !slices.Contains(libraries, r.Library) {
				libraries = append(libraries, r.Library)
			}
		}
	}
	t := newRows(append([]string{string(name)}, scenarios...)...)
	for _, lib := range libraries {
		cells := []string{lib}
		for _, sc := range scenarios {
			r, ok := s.get(sc, lib)
			if !ok {
				cells = append(cells, "–")
				continue
			}
			cells = append(cells, cell(r, name)+spread(r, name))
		}
		t.row(cells...)
	}
	return t.String()
}

// choice is matrix for some libraries, named in the first argument, separated by commas.
func choice(s set, args []string) string {
	if len(args) < 1 {
		return ""
	}
	chosen := strings.Split(args[0], ",")
	var some set
	for _, name := range chosen {
		for _, r := range s {
			if r.Library == name {
				some = append(some, r)
			}
		}
	}
	return matrix(some, args[1:])
}

// own is the figures that only this scenario has: a row for each figure, a column for each library.
func own(s set, args []string) string {
	if len(args) != 1 || len(s.of(args[0])) == 0 {
		return ""
	}
	some := s.of(args[0])
	head := []string{"figure"}
	var names []measure.Figure
	for _, r := range some {
		head = append(head, r.Library)
		for name := range r.Figures {
			if !slices.Contains(names, name) && !scenario.Common(name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	t := newRows(head...)
	for _, name := range names {
		cells := []string{"`" + string(name) + "`"}
		for _, r := range some {
			cells = append(cells, cell(r, name)+spread(r, name))
		}
		t.row(cells...)
	}
	return t.String()
}

// targets is the targets of all scenarios, and what was measured.
func targets(s set, _ []string) string {
	t := newList("scenario", "demanded", "measured", "")
	n := 0
	for _, sc := range scenario.Table() {
		if len(s.of(sc.Name)) == 0 {
			continue
		}
		for _, target := range sc.Targets {
			v := target.Judge(sc.Name, s)
			verdict, found := "**missed**", "not found"
			if v.Met {
				verdict = "met"
			}
			switch {
			case v.Found && v.Against != "":
				found = plot.Number(v.Value) + " × " + v.Against
			case v.Found:
				found = text(target.Figure, v.Value)
			}
			t.row(sc.Title, demand(target), found, verdict)
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return t.String()
}

// demand formats a target, if possible without the code's names.
func demand(t scenario.Target) string { return strings.ReplaceAll(t.String(), "_", " ") }

// settings lists each configuration that took part, grouped by library.
func settings(s set, _ []string) string {
	if len(s) == 0 {
		return ""
	}
	var libraries []string
	rows := map[string][]string{}
	for _, r := range s {
		if _, varied := library.BudgetOf(r.Library); varied || strings.Contains(r.Settings, "otherwise") {
			continue
		}
		if !slices.Contains(libraries, r.Library) {
			libraries = append(libraries, r.Library)
		}
		if row := r.Version + " | " + r.Settings; !slices.Contains(rows[r.Library], row) {
			rows[r.Library] = append(rows[r.Library], row)
		}
	}
	t := newList("library", "version", "settings")
	for _, lib := range libraries {
		for _, row := range rows[lib] {
			t.row(lib, row)
		}
	}
	return t.String()
}
