package scenario

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/anteroom/anteroom/lab/bench/library"
	"github.com/anteroom/anteroom/lab/bench/measure"
)

// columns are the figures of a table after the rates, each with its header.
var columns = []struct {
	head string
	text func(r measure.Result) string
}{
	{"p50", duration(measure.P50US)},
	{"p99", duration(measure.P99US)},
	{"max", duration(measure.MaxUS)},
	{"least…most", fewestAndMost},
	{"cmds", number(measure.CommandsPerOp)},
	{"bytes", number(measure.BytesPerOp)},
	{"allocs", number(measure.AllocsPerOp)},
	{"cpu µs", number(measure.ClientCPUUSPerOp)},
	{"redis µs", number(measure.RedisCPUUSPerOp)},
	{"conns", number(measure.Connections)},
	{"violations", number(measure.Violations)},
	{"failed", failed},
}

// Print writes a table of the outcome, the settings, the notes and the verdicts.
func (o Outcome) Print(w io.Writer) {
	fmt.Fprintf(w, "\n%s (%s): %s, %.0f s\n\n", o.Scenario.Title, o.Scenario.Name, o.shape(), o.Took.Seconds())
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "library\tops/s\tspread\t× best peer\t× local\t")
	for _, c := range columns {
		fmt.Fprint(t, c.head, "\t")
	}
	fmt.Fprintln(t)
	for _, r := range o.Results {
		local := library.Mutex
		if r.Fair {
			local = library.Semaphore
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t", r.Library, number(measure.OpsPerS)(r), width(r),
			o.ratio(r.Library, library.Peers()...), o.ratio(r.Library, local))
		for _, c := range columns {
			fmt.Fprint(t, c.text(r), "\t")
		}
		fmt.Fprintln(t)
	}
	_ = t.Flush()
	fmt.Fprintln(w)
	o.printMore(w)
	for _, note := range o.Notes {
		fmt.Fprintln(w, "  note:", note)
	}
	for _, target := range o.Scenario.Targets {
		if target.Than == "" { // the others are judged at the end of the run
			fmt.Fprintln(w, " ", target.Judge(o.Scenario.Name, o.Results))
		}
	}
}

// shape describes what all libraries have in common.
func (o Outcome) shape() string {
	if len(o.Results) == 0 {
		return "nothing measured"
	}
	r := o.Results[0]
	return fmt.Sprintf("processes %d, goroutines %d, keys %d, hold %v; medians of %d rounds", r.Processes, r.Goroutines, r.Keys, r.Hold, r.Rounds)
}

// ratio returns how many times the rate of the best of others a library has.
func (o Outcome) ratio(library string, others ...string) string {
	v := Target{Of: library, Figure: measure.OpsPerS, Over: others, AtLeast: 1}.Judge(o.Scenario.Name, o.Results)
	if !v.Found {
		return "–"
	}
	return compact(v.Value)
}

// width returns the distance between the rates of the rounds, relative to the median.
func width(r measure.Result) string {
	s, rate := r.Spread[measure.OpsPerS], r.Figures[measure.OpsPerS]
	if rate == 0 {
		return "–"
	}
	return fmt.Sprintf("-%.0f+%.0f%%", 100*(rate-s[0])/rate, 100*(s[1]-rate)/rate)
}

func number(name measure.Figure) func(measure.Result) string {
	return func(r measure.Result) string {
		if v, ok := r.Figures[name]; ok {
			return compact(v)
		}
		return "–"
	}
}

func duration(name measure.Figure) func(measure.Result) string {
	return func(r measure.Result) string {
		us, ok := r.Figures[name]
		if !ok {
			return "–"
		}
		d := time.Duration(us * 1e3)
		for unit := time.Nanosecond; ; unit *= 10 {
			if d < 1000*unit {
				return d.Round(unit).String()
			}
		}
	}
}

func fewestAndMost(r measure.Result) string {
	least, ok := r.Figures[measure.MinPerGoroutine]
	if !ok {
		return "–"
	}
	return compact(least) + "…" + compact(r.Figures[measure.MaxPerGoroutine])
}

// failed formats how many acquisitions failed, and how many goroutines were stuck.
func failed(r measure.Result) string {
	text := number(measure.Failures)(r)
	if n := r.Figures[measure.Stuck]; n > 0 {
		text += fmt.Sprintf(" (%.0f stuck)", n)
	}
	return text
}

// compact formats three digits, with thousands separated.
func compact(v float64) string {
	if v > 0 && v < 0.01 {
		return strconv.FormatFloat(v, 'g', 2, 64)
	}
	if v < 1000 {
		text := strconv.FormatFloat(v, 'f', max(0, 2-digits(v)), 64)
		if v < 1 {
			text = strconv.FormatFloat(v, 'f', 3, 64)
		}
		if strings.Contains(text, ".") {
			text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
		}
		return text
	}
	text := strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// digits returns how many digits v has before the decimal point, beyond the first.
func digits(v float64) (n int) {
	for ; v >= 10; v /= 10 {
		n++
	}
	return n
}

// PrintSettings writes every configuration that took part, once.
func PrintSettings(w io.Writer, outcomes []Outcome) {
	fmt.Fprint(w, "\nThe libraries and their settings:\n\n")
	seen := map[string]bool{}
	for _, o := range outcomes {
		for _, r := range o.Results {
			line := fmt.Sprintf("  %s (%s): %s", r.Library, r.Version, r.Settings)
			if !seen[line] {
				seen[line] = true
				fmt.Fprintln(w, line)
			}
		}
	}
}
