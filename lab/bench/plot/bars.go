package plot

import (
	"fmt"
	"math"
)

// Bars draws a chart whose series are horizontal bars in groups: groups are the names of the groups, and the X of a
// point is the number of its group. The lengths are along Y; a logarithmic axis has no zero, so each bar has its
// number. A series may lack groups.
func Bars(c Chart, groups []string) ([]byte, error) {
	c.X = Axis{}
	if err := c.check(); err != nil {
		return nil, err
	}
	var lengths []float64
	for _, s := range c.Series {
		for _, pt := range s.Points {
			if g := int(pt.X); float64(g) != pt.X || g < 0 || g >= len(groups) {
				return nil, fmt.Errorf("plot: series %q: there is no group %v", s.Name, pt.X)
			}
			lengths = append(lengths, pt.Y)
			if pt.spread() {
				lengths = append(lengths, pt.Low, pt.High)
			}
		}
	}
	if c.Y.Log {
		// If the axis began at the smallest value, that bar would have no length.
		lengths = append(lengths, decadeBelow(lengths))
	}
	var p picture
	start := p.head(&c) + 2
	indent := 20.0
	for _, g := range groups {
		indent = max(indent, min(28+wide(g, text), 260))
	}
	// The space at the right is for the number of the longest bar.
	y := newScale(c.Y, lengths, indent, right-70)
	var bars picture
	bottom := start
	for g, name := range groups {
		bottom = bars.group(c.Series, g, name, y, bottom+6)
	}
	p.verticals(y, c.Y.Label, start, bottom)
	p.stroke("axis", y.from, start, y.from, bottom)
	p.Write(bars.Bytes())
	return p.svg(&c, bottom+50), nil
}

// decadeBelow returns the power of ten below all values that are above zero.
func decadeBelow(values []float64) float64 {
	least := math.Inf(1)
	for _, v := range values {
		if v > 0 {
			least = min(least, v)
		}
	}
	return math.Pow(10, math.Ceil(math.Log10(least)-1))
}

// group draws the bars of group g below at, and returns where they end.
func (p *picture) group(series []Series, g int, name string, y scale, at float64) float64 {
	const thick, gap = 13.0, 3.0
	begin := at
	for i, s := range series {
		for _, pt := range s.Points {
			if int(pt.X) != g {
				continue
			}
			hue, end := s.hue(i), y.at(pt.Y)
			p.add(`<rect class="bar f%d" x="%s" y="%s" width="%s" height="%s"><title>%s</title></rect>`, hue,
				num(y.from), num(at), num(max(end-y.from, 1)), num(thick), escape(name+", "+s.Name+": "+figures(pt)))
			if pt.spread() {
				p.add(`<path class="axis" d="M%s %sL%s %s"/>`, num(y.at(pt.Low)), num(at+thick/2), num(y.at(pt.High)), num(at+thick/2))
				end = y.at(pt.High)
			}
			p.label(end+5, at+thick-2.5, "", "start", Number(pt.Y))
			at += thick + gap
		}
	}
	at = max(at, begin+thick+gap)
	p.label(y.from-8, (begin+at)/2+3, "", "end", name)
	return at + 6
}
