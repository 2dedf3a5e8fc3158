package report

import (
	"math"
	"strings"

	"github.com/anteroom/anteroom/lab/bench/measure"
	"github.com/anteroom/anteroom/lab/bench/plot"
	"github.com/anteroom/anteroom/lab/bench/scenario"
)

// slope fits a line to the logarithms: how fast y grows with x. 1 is proportional, 0 constant. It needs two points,
// and y above zero.
func slope(points []plot.Point) (float64, bool) {
	var n, sx, sy, sxx, sxy float64
	for _, p := range points {
		if p.X <= 0 || p.Y <= 0 {
			return 0, false
		}
		x, y := math.Log(p.X), math.Log(p.Y)
		n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	if d := n*sxx - sx*sx; n >= 2 && d > 0 {
		return (n*sxy - sx*sy) / d, true
	}
	return 0, false
}

// axis is what grows in a family of scenarios.
type axis struct {
	head    string
	x       func(measure.Result) float64
	figures []measure.Figure
}

// points are a figure along the axis.
func (a axis) points(some set, name measure.Figure) []plot.Point {
	var points []plot.Point
	for _, r := range some {
		if p, ok := point(r, name, a.x(r)); ok {
			points = append(points, p)
		}
	}
	return points
}

// growing is a family: a row for each size, with the slopes below. Its arguments are the family and the library, if
// there is one.
func growing(s set, args []string) string {
	if len(args) == 0 {
		return ""
	}
	a, ok := axes[args[0]]
	some := s.series(args[0], strings.Join(args[1:], " "), a.x)
	if !ok || len(some) < 2 {
		return ""
	}
	head := []string{a.head}
	for _, name := range a.figures {
		head = append(head, "`"+string(name)+"`")
	}
	t := newRows(head...)
	for _, r := range some {
		cells := []string{plot.Number(a.x(r))}
		for _, name := range a.figures {
			cells = append(cells, cell(r, name))
		}
		t.row(cells...)
	}
	cells := []string{"slope in log-log"}
	for _, name := range a.figures {
		if v, ok := slope(a.points(some, name)); ok {
			cells = append(cells, plot.Number(math.Round(v*100)/100))
		} else {
			cells = append(cells, "–")
		}
	}
	t.row(cells...)
	return t.String()
}

func byKeys(r measure.Result) float64       { return float64(r.Keys) }
func byGoroutines(r measure.Result) float64 { return float64(r.Goroutines) }
func byProcesses(r measure.Result) float64  { return float64(r.Processes) }

func by(name measure.Figure) func(measure.Result) float64 {
	return func(r measure.Result) float64 { v, _ := scenario.Value(r, name); return v }
}
