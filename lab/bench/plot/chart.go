package plot

import (
	"errors"
	"fmt"
	"math"
)

// Axis is one axis of a chart.
type Axis struct {
	// Label says what is counted and in which unit, for example "acquisitions/s".
	Label string
	// Log makes the axis logarithmic. A linear one begins at zero, unless there are negative values.
	Log bool
	// Ticks are the numbered places of the axis. Defaults to round numbers. Ticks beyond the values extend the axis.
	Ticks []float64
}

// Point is one value. Low and High are the minimum and the maximum measured; equal ones are no spread.
type Point struct{ X, Y, Low, High float64 }

// Series is one line of a chart, or the bars of one colour.
type Series struct {
	Name string
	// Hue is the number of the colour and of the mark, from 1 to Hues, so that a library looks the same in every
	// chart. 0 means the series' place in the chart.
	Hue int
	// Points are in the order of the line. The X of a bar is the number of its group.
	Points []Point
	// Band draws the spread as an area instead of whiskers.
	Band bool
	// Dashed marks a reference, such as a target, rather than a measurement.
	Dashed bool
}

// Hues is how many colours there are.
const Hues = 8

// Chart is what line and bar charts have in common.
type Chart struct {
	Title    string
	Subtitle string
	X, Y     Axis
	Series   []Series
}

// check rejects what cannot be drawn truthfully (I3).
func (c *Chart) check() error {
	values := 0
	for _, s := range c.Series {
		if s.Hue < 0 || s.Hue > Hues {
			return fmt.Errorf("plot: series %q has hue %d; there are %d", s.Name, s.Hue, Hues)
		}
		for _, p := range s.Points {
			values++
			if err := c.Y.fits(p.Y); err != nil {
				return fmt.Errorf("plot: series %q: %w", s.Name, err)
			}
			if err := c.X.fits(p.X); err != nil {
				return fmt.Errorf("plot: series %q: %w", s.Name, err)
			}
			if !finite(p.Low) || !finite(p.High) || p.spread() && (p.Low > p.Y || p.High < p.Y) {
				return fmt.Errorf("plot: series %q: the spread %v to %v is not around %v", s.Name, p.Low, p.High, p.Y)
			}
		}
	}
	if values == 0 {
		return errors.New("plot: no values")
	}
	for _, a := range []Axis{c.X, c.Y} {
		for _, t := range a.Ticks {
			if err := a.fits(t); err != nil {
				return fmt.Errorf("plot: tick: %w", err)
			}
		}
	}
	return nil
}

func (a Axis) fits(v float64) error {
	if !finite(v) {
		return fmt.Errorf("%v is not a number", v)
	}
	if a.Log && v <= 0 {
		return fmt.Errorf("%v has no place on a logarithmic axis", v)
	}
	return nil
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// spread reports whether p has one.
func (p Point) spread() bool { return p.High > p.Low }

// hue returns the number of the colour of the series at place i, from 0.
func (s Series) hue(i int) int {
	if s.Hue > 0 {
		return s.Hue - 1
	}
	return i % Hues
}
