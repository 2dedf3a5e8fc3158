package main

import (
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/anteroom/anteroom/lab/bench/library"
)

// chart is one picture: a figure of some scenarios, a mark for each library.
type chart struct {
	file, title, unit, figure string
	per                       float64 // divisor of the figure for this unit
	log                       bool
	// groups are scenarios, each with its name below the axis.
	groups [][2]string
}

func charts() []chart {
	each := [][2]string{
		{"4 processes", "one-each-4-hold-1ms"}, {"16 processes", "one-each-16-hold-1ms"}, {"64 processes", "one-each-64-hold-1ms"},
	}
	return []chart{
		{"many-processes", "One key, one goroutine in each process, held for 1 ms", "acquisitions/s", opsPerS, 1, false, each},
		{"many-processes-wait", "One key, one goroutine in each process, held for 1 ms: the wait that 99 % do not exceed", "ms", p99, 1e3, true, each},
		{"one-key-1ms", "One key, one process, held for 1 ms", "acquisitions/s", opsPerS, 1, false, [][2]string{
			{"1 goroutine", "one-key-1-hold-1ms"}, {"8 goroutines", "one-key-8-hold-1ms"}, {"64 goroutines", "one-key-64-hold-1ms"}, {"1,000 goroutines", "one-key-1000-hold-1ms"},
		}},
		{"uncontended", "One goroutine locks and unlocks, nobody else wants the key", "µs for both", pair, 1, true, [][2]string{
			{"Redis on the same machine", "alone"}, {"Redis some ms away", "alone-far"},
		}},
		{"removal", "10,000 locks held: the time from a removal until its holder is notified, median", "ms", removalP50, 1e3, true, [][2]string{
			{"DEL", "removed-by-DEL"},
			{"DEL, far", "removed-by-DEL-far"},
			{"RENAME", "removed-by-RENAME"},
			{"SET", "removed-by-SET"},
			{"killed, DEL", "removed-by-DEL-after-KILL"},
			{"FLUSHALL", "removed-by-FLUSHALL"},
			{"eviction", "removed-by-eviction"},
		}},
	}
}

// drawn are the libraries in the order of their marks.
var drawn = []string{
	library.Anteroom, library.AnteroomDefaults, library.AnteroomFull, library.AnteroomLinger, library.AnteroomFair,
	library.Redsync, library.Redislock, library.Rueidislock,
}

// drawAll writes all charts whose results are there into a folder.
func drawAll(folder string, results []result) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for _, c := range charts() {
		p, err := c.plot(results)
		if err == nil && p != nil {
			err = p.Save(18*vg.Centimeter, 9*vg.Centimeter, filepath.Join(folder, c.file+".svg"))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.file, err)
		}
	}
	return timeline(folder)
}

// marks are the points of one library, each with its least and greatest round.
type marks struct {
	plotter.XYs
	plotter.YErrors
}

// plot returns the picture; nil if no results are there.
func (c chart) plot(results []result) (*plot.Plot, error) {
	p := plot.New()
	p.BackgroundColor = color.White
	p.Title.Text, p.Y.Label.Text = c.title, c.unit
	p.Legend.Top = true
	if c.log {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	var names []string
	var measured []string
	for _, g := range c.groups {
		names = append(names, g[0])
		for _, r := range of(results, g[1]) {
			measured = append(measured, r.Library)
		}
	}
	libraries := slices.DeleteFunc(slices.Clone(drawn), func(name string) bool {
		variant := name == library.AnteroomDefaults || name == library.AnteroomFull
		return !slices.Contains(measured, name) || variant && slices.Contains(measured, library.Anteroom)
	})
	empty := true
	for i, name := range libraries {
		var m marks
		for at, g := range c.groups {
			for _, r := range of(results, g[1]) {
				v, ok := r.Figures[c.figure]
				if r.Library != name || !ok || c.log && v <= 0 {
					continue
				}
				v /= c.per
				low, high := v, v
				if s, ok := r.Spread[c.figure]; ok {
					low, high = s[0]/c.per, s[1]/c.per
				}
				// The marks of one scenario stand beside each other.
				x := float64(at) + 0.7*(float64(i)+0.5)/float64(len(libraries)) - 0.35
				m.XYs = append(m.XYs, plotter.XY{X: x, Y: v})
				m.YErrors = append(m.YErrors, struct{ Low, High float64 }{low - v, high - v})
			}
		}
		if len(m.XYs) == 0 {
			continue
		}
		empty = false
		points, err := plotter.NewScatter(m.XYs)
		if err != nil {
			return nil, err
		}
		bars, err := plotter.NewYErrorBars(m)
		if err != nil {
			return nil, err
		}
		points.GlyphStyle = draw.GlyphStyle{Color: plotutil.DarkColors[i], Shape: plotutil.DefaultGlyphShapes[i], Radius: vg.Points(4)}
		bars.Color = points.Color
		p.Add(points, bars)
		p.Legend.Add(name, points)
	}
	if empty {
		return nil, nil
	}
	p.Add(plotter.NewGrid())
	p.NominalX(names...)
	p.X.Min, p.X.Max = -0.5, 1.35*float64(len(names))-0.5 // the legend is beside the marks
	if !c.log {
		p.Y.Min, p.Y.Max = 0, 1.1*p.Y.Max
	}
	return p, nil
}
