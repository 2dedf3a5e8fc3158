package plot

// head draws title, subtitle and legend, and returns where the axes may begin.
func (p *picture) head(c *Chart) float64 {
	y := 28.0
	p.label(20, y, "title", "start", c.Title)
	for _, line := range wrapped(c.Subtitle, width-40) {
		y += 18
		p.label(20, y, "quiet", "start", line)
	}
	if len(c.Series) < 2 && c.Series[0].Name == "" {
		return y + 22
	}
	x := 20.0
	y += 24
	for i, s := range c.Series {
		entry := 34 + wide(s.Name, text)
		if x > 20 && x+entry > width-20 {
			x, y = 20, y+20
		}
		hue := s.hue(i)
		if s.Dashed {
			p.add(`<line class="line dash s%d" x1="%s" y1="%s" x2="%s" y2="%s"/>`, hue, num(x), num(y-4), num(x+16), num(y-4))
		} else {
			p.mark(hue, x+8, y-4, s.Name)
		}
		p.label(x+20, y, "", "start", s.Name)
		x += entry
	}
	return y + 20
}

// wrapped breaks a text into lines of that width.
func wrapped(s string, room float64) []string {
	var lines []string
	line, word := "", ""
	put := func() {
		switch {
		case word == "":
		case line == "":
			line = word
		case wide(line+" "+word, text) > room:
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
		word = ""
	}
	for _, r := range s {
		if r == ' ' || r == '\n' {
			put()
		} else {
			word += string(r)
		}
	}
	put()
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// verticals draws the grid of a horizontal axis, its numbers and its label below bottom.
func (p *picture) verticals(s scale, label string, top, bottom float64) {
	last := -1e9
	for _, t := range s.ticks {
		x := s.at(t)
		p.stroke("grid", x, top, x, bottom)
		// Numbers that would overlap are omitted; their grid lines stay.
		if half := wide(Number(t), text) / 2; x-half > last {
			p.label(x, bottom+16, "quiet", "middle", Number(t))
			last = x + half + 4
		}
	}
	p.label((s.from+s.to)/2, bottom+36, "", "middle", label)
}
