package scenario

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/anteroom/anteroom/lab/bench/measure"
)

// inTable are the figures that the table of every scenario shows.
var inTable = []measure.Figure{
	measure.OpsPerS, measure.P50US, measure.P99US, measure.MaxUS, measure.MinPerGoroutine, measure.MaxPerGoroutine,
	measure.CommandsPerOp, measure.ExecutedPerOp, measure.BytesPerOp, measure.AllocsPerOp, measure.AllocBytesPerOp,
	measure.ClientCPUUSPerOp, measure.RedisCPUUSPerOp, measure.Connections, measure.Violations, measure.Failures, measure.Stuck,
}

// printMore writes the figures that only this scenario has: a row for each, a column for each library, with the
// minimum and the maximum of the rounds.
func (o Outcome) printMore(w io.Writer) {
	var own []measure.Figure
	for _, r := range o.Results {
		for name := range r.Figures {
			if !Common(name) && !slices.Contains(own, name) {
				own = append(own, name)
			}
		}
	}
	if len(own) == 0 {
		return
	}
	slices.Sort(own)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "figure\t")
	for _, r := range o.Results {
		fmt.Fprint(t, r.Library, "\t")
	}
	fmt.Fprintln(t)
	for _, name := range own {
		fmt.Fprint(t, name, "\t")
		for _, r := range o.Results {
			text := number(name)(r)
			if s, ok := r.Spread[name]; ok && s[0] < s[1] {
				text += fmt.Sprintf(" (%s…%s)", compact(s[0]), compact(s[1]))
			}
			fmt.Fprint(t, text, "\t")
		}
		fmt.Fprintln(t)
	}
	_ = t.Flush()
	fmt.Fprintln(w)
}

// Common reports whether a figure is in the table of every scenario.
func Common(name measure.Figure) bool { return slices.Contains(inTable, name) }
