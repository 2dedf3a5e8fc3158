package measure

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"
)

// Setup is the configuration of a measurement.
type Setup struct {
	Scenario, Library string
	Version, Settings string
	Goroutines        int // of each process
	Processes, Keys   int
	Hold              time.Duration
	Fair, Local       bool
}

// Result is the result of several rounds of one library in one scenario.
type Result struct {
	Setup
	Rounds int
	// Figures are medians of the rounds; for violations, failures and stuck goroutines sums; for max_us the maximum.
	Figures Figures
	// Spread has the minimum and the maximum of each figure.
	Spread map[Figure][2]float64
}

// Summarize makes a Result of rounds. If some rounds lack a figure, it is the median of those that have it.
func Summarize(s Setup, rounds []Figures) Result {
	r := Result{Setup: s, Rounds: len(rounds), Figures: Figures{}, Spread: map[Figure][2]float64{}}
	all := map[Figure][]float64{}
	for _, f := range rounds {
		for name, v := range f {
			all[name] = append(all[name], v)
		}
	}
	for name, values := range all {
		slices.Sort(values)
		least, greatest := values[0], values[len(values)-1]
		r.Spread[name] = [2]float64{least, greatest}
		switch name {
		case Violations, Failures, Stuck:
			sum := 0.0
			for _, v := range values {
				sum += v
			}
			r.Figures[name] = sum
		case MaxUS:
			r.Figures[name] = greatest
		default:
			r.Figures[name] = median(values)
		}
	}
	return r
}

// median of sorted values.
func median(sorted []float64) float64 {
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}

// MarshalJSON writes one flat object: the setup, the present figures, the rest.
func (r Result) MarshalJSON() ([]byte, error) {
	o := object{}
	o.add("scenario", r.Scenario)
	o.add("library", r.Library)
	o.add("goroutines", r.Goroutines)
	o.add("processes", r.Processes)
	o.add("keys", r.Keys)
	o.add("hold_us", r.Hold.Microseconds())
	o.add("fair", r.Fair)
	for _, name := range names(r.Figures) {
		if slices.Contains(notFigures, string(name)) {
			return nil, fmt.Errorf("%s, %s: a figure is called %s, which the setup has", r.Scenario, r.Library, name)
		}
		o.add(string(name), round(r.Figures[name]))
	}
	o.add("rounds", r.Rounds)
	o.add("version", r.Version)
	o.add("settings", r.Settings)
	o.add("spread", spread(r.Spread))
	return o.end()
}

// names returns the present figures, in the order of results.json.
func names[V any](m map[Figure]V) []Figure {
	var known, others []Figure
	for name := range m {
		if !slices.Contains(order, name) {
			others = append(others, name)
		}
	}
	for _, name := range order {
		if _, ok := m[name]; ok {
			known = append(known, name)
		}
	}
	slices.Sort(others)
	return append(known, others...)
}

// round keeps five digits: more are noise and make the file unreadable.
func round(v float64) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 5, 64), 64)
	if err != nil {
		return v
	}
	return r
}

type spread map[Figure][2]float64

func (s spread) MarshalJSON() ([]byte, error) {
	o := object{}
	for _, name := range names(s) {
		if s[name][0] != s[name][1] {
			o.add(string(name), [2]float64{round(s[name][0]), round(s[name][1])})
		}
	}
	return o.end()
}

// object writes a JSON object whose keys keep their order.
type object struct {
	buf bytes.Buffer
	err error
}

func (o *object) add(key string, value any) {
	text, err := json.Marshal(value)
	if err != nil && o.err == nil {
		o.err = err
	}
	sep := byte(',')
	if o.buf.Len() == 0 {
		sep = '{'
	}
	o.buf.WriteByte(sep)
	name, _ := json.Marshal(key) // a string always encodes
	o.buf.Write(name)
	o.buf.WriteByte(':')
	o.buf.Write(text)
}

func (o *object) end() ([]byte, error) {
	if o.buf.Len() == 0 {
		o.buf.WriteByte('{')
	}
	o.buf.WriteByte('}')
	return o.buf.Bytes(), o.err
}

// WriteJSON writes results as one array, an object a line.
func WriteJSON(w io.Writer, results []Result) error {
	var buf bytes.Buffer
	buf.WriteString("[")
	for i, r := range results {
		text, err := json.Marshal(r)
		if err != nil {
			return err
		}
		if i > 0 {
			buf.WriteByte(',')
		}
		buf.WriteString("\n  ")
		buf.Write(text)
	}
	buf.WriteString("\n]\n")
	_, err := w.Write(buf.Bytes())
	return err
}
