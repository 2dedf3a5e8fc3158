package plot

import "strings"

// Lines draws a chart whose series are lines.
func Lines(c Chart) ([]byte, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	var p picture
	top := p.head(&c) + 22
	bottom := top + 270
	var xs, ys []float64
	for _, s := range c.Series {
		for _, pt := range s.Points {
			xs, ys = append(xs, pt.X), append(ys, pt.Y)
			if pt.spread() {
				ys = append(ys, pt.Low, pt.High)
			}
		}
	}
	x := newScale(c.X, xs, left+8, right-8)
	y := newScale(c.Y, ys, bottom, top)
	p.verticals(x, c.X.Label, top, bottom)
	p.label(20, top-14, "", "start", c.Y.Label)
	for _, t := range y.ticks {
		p.stroke("grid", left, y.at(t), right, y.at(t))
		p.label(left-8, y.at(t)+4, "quiet", "end", Number(t))
	}
	p.stroke("axis", left, bottom, right, bottom)
	for i, s := range c.Series {
		p.series(s, s.hue(i), x, y)
	}
	return p.svg(&c, bottom+50), nil
}

// series draws one line: what lies below first.
func (p *picture) series(s Series, hue int, x, y scale) {
	if s.Band {
		p.band(s, hue, x, y)
	}
	var path []string
	for _, pt := range s.Points {
		path = append(path, num(x.at(pt.X))+" "+num(y.at(pt.Y)))
	}
	class := "line"
	if s.Dashed {
		class += " dash"
	}
	if len(path) > 1 {
		p.add(`<path class="%s s%d" d="M%s"/>`, class, hue, strings.Join(path, "L"))
	}
	if s.Dashed {
		return
	}
	for _, pt := range s.Points {
		if pt.spread() && !s.Band {
			p.whisker(hue, x.at(pt.X), y.at(pt.Low), x.at(pt.X), y.at(pt.High))
		}
		p.mark(hue, x.at(pt.X), y.at(pt.Y), strings.TrimSpace(s.Name+" at "+Number(pt.X)+": "+figures(pt)))
	}
}

// band is the area between the lows and the highs.
func (p *picture) band(s Series, hue int, x, y scale) {
	var up, down []string
	for i := range s.Points {
		high, low := s.Points[i], s.Points[len(s.Points)-1-i]
		up = append(up, num(x.at(high.X))+" "+num(y.at(top(high))))
		down = append(down, num(x.at(low.X))+" "+num(y.at(foot(low))))
	}
	p.add(`<path class="band f%d" d="M%sL%sZ"/>`, hue, strings.Join(up, "L"), strings.Join(down, "L"))
}

// top and foot are the ends of a spread, or the value if there is none.
func top(p Point) float64 {
	if p.spread() {
		return p.High
	}
	return p.Y
}

func foot(p Point) float64 {
	if p.spread() {
		return p.Low
	}
	return p.Y
}

// figures formats a value and its spread.
func figures(p Point) string {
	if !p.spread() {
		return Number(p.Y)
	}
	return Number(p.Y) + " (" + Number(p.Low) + " to " + Number(p.High) + ")"
}
