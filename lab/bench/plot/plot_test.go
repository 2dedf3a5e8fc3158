package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// random returns a plausible chart, with texts that need escaping in XML.
func random(r *rand.Rand) Chart {
	c := Chart{
		Title: `<&"> of "]]>`, Subtitle: strings.Repeat("words & more ", r.IntN(30)),
		X: Axis{Label: "processes", Log: r.IntN(2) == 0}, Y: Axis{Label: "acquisitions/s", Log: r.IntN(2) == 0},
	}
	size := math.Pow(10, float64(r.IntN(12)-4))
	for i := range 1 + r.IntN(Hues) {
		s := Series{Name: fmt.Sprint("a & b <", i, "\x00>"), Band: r.IntN(4) == 0, Dashed: r.IntN(5) == 0}
		for n := range 1 + r.IntN(9) {
			p := Point{X: math.Pow(4, float64(n)), Y: size * math.Exp(r.NormFloat64()*4)}
			if r.IntN(2) == 0 {
				p.Low, p.High = p.Y*r.Float64(), p.Y*(1+r.Float64())
			}
			if r.IntN(20) == 0 {
				p.Low = 0
			}
			s.Points = append(s.Points, p)
		}
		c.Series = append(c.Series, s)
	}
	if !c.Y.Log && r.IntN(3) == 0 {
		c.Series[0].Points[0] = Point{X: 1, Y: -size}
	}
	return c
}

// randomBars returns a chart of bars and its groups.
func randomBars(r *rand.Rand) (Chart, []string) {
	c := random(r)
	c.Series[0].Points[0] = Point{X: 1, Y: 1}
	groups := []string{"one", "two & three", strings.Repeat("a long name ", 3)}
	for i := range c.Series {
		points := c.Series[i].Points
		points = points[:min(len(points), len(groups))]
		for j := range points {
			points[j].X = float64(j)
		}
		c.Series[i].Points = points
	}
	return c, groups
}

func TestPlot_I1_WellFormed_I2_Inside(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		svg, err := Lines(random(r))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		inside(t, seed, svg)
		svg, err = Bars(randomBars(r))
		if err != nil {
			t.Fatalf("seed %d, bars: %v", seed, err)
		}
		inside(t, seed, svg)
		if t.Failed() {
			t.Fatalf("seed %d:\n%s", seed, svg)
		}
	}
}

// inside reads the whole picture and fails the test for anything outside it.
func inside(t *testing.T, seed uint64, svg []byte) {
	t.Helper()
	var high float64
	marks := 0
	in := func(what string, x, y float64) {
		if x < 0 || x > width || y < 0 || y > high {
			t.Errorf("seed %d: %s at %v, %v is outside of %v × %v", seed, what, x, y, width, high)
		}
	}
	for dec := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, svg)
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		at := map[string]string{}
		for _, a := range e.Attr {
			at[a.Name.Local] = a.Value
		}
		n := func(name string) float64 {
			v, err := strconv.ParseFloat(at[name], 64)
			if err != nil || !finite(v) {
				t.Errorf("seed %d: %s of %s is %q", seed, name, e.Name.Local, at[name])
			}
			return v
		}
		switch e.Name.Local {
		case "svg":
			high = n("height")
		case "text":
			in("text", n("x"), n("y"))
		case "line":
			in("line", n("x1"), n("y1"))
			in("line", n("x2"), n("y2"))
		case "circle":
			marks++
			in("circle", n("cx"), n("cy"))
		case "rect":
			marks++
			if at["x"] != "" {
				in("rect", n("x"), n("y"))
				in("rect", n("x")+n("width"), n("y")+n("height"))
			}
		case "path":
			marks++
			for _, place := range strings.FieldsFunc(at["d"], func(r rune) bool { return r == 'M' || r == 'L' || r == 'Z' }) {
				var x, y float64
				if _, err := fmt.Sscanf(place, "%g %g", &x, &y); err != nil {
					t.Errorf("seed %d: path %q: %v", seed, at["d"], err)
				}
				in("path", x, y)
			}
		}
	}
	if marks == 0 {
		t.Errorf("seed %d: nothing is drawn", seed)
	}
}

func TestPlot_I3_RefusesWhatItCannotDraw(t *testing.T) {
	one := func(p Point, log bool) Chart {
		return Chart{Y: Axis{Log: log}, Series: []Series{{Name: "a", Points: []Point{p}}}}
	}
	for name, c := range map[string]Chart{
		"no values":        {Series: []Series{{Name: "a"}}},
		"no series":        {},
		"not a number":     one(Point{Y: math.NaN()}, false),
		"infinite":         one(Point{X: math.Inf(1)}, false),
		"zero on log":      one(Point{Y: 0}, true),
		"spread elsewhere": one(Point{Y: 5, Low: 6, High: 7}, false),
		"hue":              {Series: []Series{{Hue: Hues + 1, Points: []Point{{}}}}},
		"tick":             {X: Axis{Log: true, Ticks: []float64{0}}, Series: []Series{{Points: []Point{{X: 1}}}}},
	} {
		if _, err := Lines(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := Bars(one(Point{X: 1, Y: 1}, false), []string{"only"}); err == nil {
		t.Error("a bar without a group: no error")
	}
}

// small is the chart of the golden file.
func small() Chart {
	return Chart{
		Title: "A small chart", Subtitle: "median of 3 rounds; whiskers: least and greatest",
		X: Axis{Label: "goroutines", Log: true, Ticks: []float64{1, 8, 64}},
		Y: Axis{Label: "acquisitions/s", Log: true},
		Series: []Series{
			{Name: "one", Points: []Point{{1, 900, 800, 950}, {8, 5000, 5000, 5000}, {64, 61000, 50000, 70000}}},
			{Name: "target", Hue: 8, Dashed: true, Points: []Point{{X: 1, Y: 2000}, {X: 64, Y: 2000}}},
		},
	}
}

// ANTEROOM_UPDATE=1 rewrites the golden file; look at it before committing.
func TestPlot_I4_Golden(t *testing.T) {
	got, err := Lines(small())
	if err != nil {
		t.Fatal(err)
	}
	const name = "testdata/small.svg"
	if os.Getenv("ANTEROOM_UPDATE") != "" {
		if err := os.WriteFile(name, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the chart differs from %s:\n%s", name, got)
	}
}

// No bar has zero length, however small its value.
func TestBars_BeginBelowTheLeast(t *testing.T) {
	for least, want := range map[float64]float64{2: 1, 1: 0.1, 9.9: 1, 150: 100, 0.03: 0.01} {
		if got := decadeBelow([]float64{1e6, least, 0}); math.Abs(got/want-1) > 1e-9 {
			t.Errorf("below %v is %v, want %v", least, got, want)
		}
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.004: "0.004", 0.25: "0.25", 1: "1", 9.876: "9.88", 64: "64", 999.4: "999", 1000: "1,000", 6200: "6,200",
		9999: "10 k", 64000: "64 k", 812345: "812 k", 999600: "1 M", 1090000: "1.09 M", 3e9: "3 G", -1500: "-1,500",
	} {
		if got := Number(v); got != want {
			t.Errorf("Number(%v) = %q, want %q", v, got, want)
		}
	}
}

// An axis has few numbers, in order, and covers all values.
func TestScale(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		lo := math.Exp(r.NormFloat64() * 8)
		hi := lo * (1 + math.Exp(r.NormFloat64()*4))
		for _, log := range []bool{false, true} {
			s := newScale(Axis{Log: log}, []float64{hi, lo}, 0, 100)
			if s.min > lo || s.max < hi || len(s.ticks) < 2 || len(s.ticks) > 40 {
				t.Fatalf("axis over %v to %v, log %v: %+v", lo, hi, log, s)
			}
			if !log && len(s.ticks) > 8 {
				t.Fatalf("axis over %v to %v has ticks %v", lo, hi, s.ticks)
			}
			last := -1.0
			for _, tick := range s.ticks {
				if at := s.at(tick); at <= last || at < 0 || at > 100+1e-9 {
					t.Fatalf("axis over %v to %v, log %v: tick %v is at %v after %v", lo, hi, log, tick, at, last)
				} else {
					last = at
				}
			}
		}
	}
}
