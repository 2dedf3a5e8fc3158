package promise

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"
)

// Distribution summarizes the samples of one library and one kind of loss, for one of the two kinds of notification.
type Distribution struct {
	Library   string
	Loss      string
	ByContext bool

	Early   int // lost before anything was done; not in the other counts
	N       int // lost leases
	Untold  int // of these: never notified during the measurement
	Judged  int // of these: those about which something is promised
	Broken  int // of these: those with an answer that breaks the promise
	Revived int // of these: "held" after "lost"

	figures []time.Duration // of those that were notified, sorted
}

// Collect computes the distributions of the two kinds of notification from samples.
func Collect(library, loss string, samples []Sample) (byContext, byQuestion Distribution) {
	byContext = Distribution{Library: library, Loss: loss, ByContext: true}
	byQuestion = Distribution{Library: library, Loss: loss}
	for _, s := range samples {
		d := &byQuestion
		if s.ByContext {
			d = &byContext
		}
		d.add(s)
	}
	slices.Sort(byContext.figures)
	slices.Sort(byQuestion.figures)
	return byContext, byQuestion
}

func (d *Distribution) add(s Sample) {
	if s.Early {
		d.Early++
		return
	}
	d.N++
	if s.Judged {
		d.Judged++
	}
	if s.Broken {
		d.Broken++
	}
	if s.Revived {
		d.Revived++
	}
	if s.Told {
		d.figures = append(d.figures, s.Figure)
	} else {
		d.Untold++
	}
}

// At returns the q-quantile of the figures: 0 is the minimum, 0.5 the median, 1 the maximum. Without figures it is 0.
func (d Distribution) At(q float64) time.Duration {
	if len(d.figures) == 0 {
		return 0
	}
	return d.figures[int(q*float64(len(d.figures)-1)+0.5)]
}

// Told names the kind of notification.
func (d Distribution) Told() string {
	if d.ByContext {
		return "context"
	}
	return "question"
}

// quantiles are the columns of a table.
var quantiles = []float64{0, 0.5, 0.99, 1}

// Print writes the distributions as a Markdown table, in milliseconds.
func Print(w io.Writer, all []Distribution) {
	fmt.Fprintln(w, "| library | loss | told by | n | min | median | p99 | max | broken | never | early |")
	fmt.Fprintln(w, "|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|")
	for _, d := range all {
		fmt.Fprintf(w, "| %s | %s | %s | %d |", d.Library, d.Loss, d.Told(), d.N)
		for _, q := range quantiles {
			fmt.Fprintf(w, " %s |", milliseconds(d.At(q)))
		}
		fmt.Fprintf(w, " %s | %d | %d |\n", d.broken(), d.Untold, d.Early)
	}
}

// PrintSpread writes several runs of the same measurement as one table: the minimum and the maximum of all, and the
// ranges of the runs' medians and p99.
func PrintSpread(w io.Writer, runs [][]Distribution) {
	fmt.Fprintln(w, "| library | loss | told by | n | min | median | p99 | max | broken | never |")
	fmt.Fprintln(w, "|---|---|---|--:|--:|--:|--:|--:|--:|--:|")
	for row, d := range runs[0] {
		total := Distribution{}
		lowest, highest := make([]time.Duration, len(quantiles)), make([]time.Duration, len(quantiles))
		for i, q := range quantiles {
			var at []time.Duration
			for _, run := range runs {
				at = append(at, run[row].At(q))
			}
			lowest[i], highest[i] = slices.Min(at), slices.Max(at)
		}
		for _, run := range runs {
			total.N += run[row].N
			total.Judged += run[row].Judged
			total.Broken += run[row].Broken
			total.Untold += run[row].Untold
		}
		fmt.Fprintf(w, "| %s | %s | %s | %d | %s | %s … %s | %s … %s | %s | %s | %d |\n", d.Library, d.Loss, d.Told(), total.N,
			milliseconds(lowest[0]), milliseconds(lowest[1]), milliseconds(highest[1]),
			milliseconds(lowest[2]), milliseconds(highest[2]), milliseconds(highest[3]), total.broken(), total.Untold)
	}
}

// broken is a dash if nothing was promised.
func (d Distribution) broken() string {
	if d.Judged == 0 {
		return "–"
	}
	return strconv.Itoa(d.Broken)
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f", float64(d.Microseconds())/1000)
}
