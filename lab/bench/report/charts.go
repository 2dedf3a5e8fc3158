package report

import (
	"fmt"
	"math"

	"github.com/anteroom/anteroom/lab/bench/library"
	"github.com/anteroom/anteroom/lab/bench/measure"
	"github.com/anteroom/anteroom/lab/bench/plot"
)

// Chart is one picture of a document.
type Chart struct {
	File string
	// Draw returns the picture; false if results are missing.
	Draw func(results []measure.Result) (svg []byte, there bool, err error)
}

// hues are the same in every chart. The full configurations are not drawn.
var hues = map[string]int{
	library.Anteroom: 1, library.AnteroomFair: 6, library.AnteroomDefaults: 1,
	library.Redsync: 2, library.Redislock: 3, library.Rueidislock: 4,
	library.Semaphore: 5, library.Mutex: 7, library.Evalsha: 8,
}

// drawn is the order of the series.
var drawn = []string{
	library.Anteroom, library.AnteroomDefaults, library.AnteroomFair, library.Redsync, library.Redislock, library.Rueidislock,
	library.Evalsha, library.Mutex, library.Semaphore,
}

// group is a scenario as a group of bars.
type group struct{ name, scenario string }

// bars draws one figure of some scenarios. It needs at least one of them.
func bars(file, title, subtitle, label string, name measure.Figure, log bool, groups ...group) Chart {
	return Chart{File: file, Draw: func(results []measure.Result) ([]byte, bool, error) {
		s := set(results)
		var names []string
		var there []group
		for _, g := range groups {
			if len(s.of(g.scenario)) > 0 {
				names, there = append(names, g.name), append(there, g)
			}
		}
		c := plot.Chart{Title: title, Subtitle: subtitle, Y: plot.Axis{Label: label, Log: log}}
		for _, lib := range drawn {
			if lib == library.AnteroomDefaults && len(c.Series) > 0 {
				continue // drawn where the tuned client was not measured: two bars of one hue say less than one
			}
			one := plot.Series{Name: lib, Hue: hues[lib]}
			for i, g := range there {
				r, ok := s.get(g.scenario, lib)
				p, is := point(r, name, float64(i))
				if ok && is && (!log || p.Y > 0) {
					one.Points = append(one.Points, p)
				}
			}
			if len(one.Points) > 0 {
				c.Series = append(c.Series, one)
			}
		}
		if len(c.Series) == 0 {
			return nil, false, nil
		}
		svg, err := plot.Bars(c, names)
		return svg, true, err
	}}
}

// curve is one line of a chart: a figure over a family (set.series).
type curve struct {
	name, family, library string
	figure                measure.Figure
	hue                   int
	per                   float64 // divisor of the figure for another unit; 0: none
}

// lines draws curves; flat, if above zero, is a target as a dashed line. With said, the subtitle has the slope of the
// first curve in log-log.
func lines(file, title, subtitle string, x, y plot.Axis, flat float64, said bool, curves ...curve) Chart {
	return Chart{File: file, Draw: func(results []measure.Result) ([]byte, bool, error) {
		c := plot.Chart{Title: title, Subtitle: subtitle, X: x, Y: y}
		least, most := math.Inf(1), 0.0
		for _, cv := range curves {
			a := axes[cv.family]
			one := plot.Series{Name: cv.name, Hue: cv.hue}
			for _, p := range a.points(set(results).series(cv.family, cv.library, a.x), cv.figure) {
				if cv.per > 0 {
					p.Y, p.Low, p.High = p.Y/cv.per, p.Low/cv.per, p.High/cv.per
				}
				if y.Log && p.Y <= 0 {
					continue // not drawn on such an axis; the table has it
				}
				one.Points = append(one.Points, p)
				least, most = min(least, p.X), max(most, p.X)
			}
			if len(one.Points) > 0 {
				c.Series = append(c.Series, one)
			}
		}
		if len(c.Series) == 0 || least == most {
			return nil, false, nil
		}
		if v, ok := slope(c.Series[0].Points); ok && said {
			c.Subtitle += fmt.Sprintf("; slope of %s in log-log: %.2f", c.Series[0].Name, v)
		}
		if flat > 0 {
			c.Series = append(c.Series, plot.Series{Name: "target", Hue: 8, Dashed: true, Points: []plot.Point{{X: least, Y: flat}, {X: most, Y: flat}}})
		}
		svg, err := plot.Lines(c)
		return svg, true, err
	}}
}
