package plot

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// The picture, in its own units.
const (
	width  = 760.0
	left   = 78.0 // of the axes
	right  = width - 22
	text   = 12.0 // font sizes
	titles = 16.0
)

// style has what does not depend on the background, and then the colours for a light and for a dark one. They are
// plain rules, since not every viewer supports variables.
var style = `
text { font: 12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
.title { font-size: 16px; font-weight: 600; }
.grid, .axis { stroke-width: 1; }
.axis { fill: none; }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; }
.dash { stroke-dasharray: 6 4; }
.whisker { fill: none; stroke-width: 1.5; }
.band { opacity: 0.18; }
` + light.rules() + "@media (prefers-color-scheme: dark) {\n" + dark.rules() + "}\n"

// colours are those for one background.
type colours struct {
	ground, ink, quiet, grid string
	hues                     [Hues]string
}

var (
	light = colours{
		"#ffffff", "#1f2328", "#59636e", "#d8dee4",
		[Hues]string{"#0969da", "#bc4c00", "#1a7f37", "#8250df", "#cf222e", "#1b7c83", "#9a6700", "#6e7781"},
	}
	dark = colours{
		"#0d1117", "#e6edf3", "#9198a1", "#2a313c",
		[Hues]string{"#4493f8", "#f0883e", "#3fb950", "#ab7df8", "#f85149", "#39c5cf", "#d29922", "#9198a1"},
	}
)

// rules are the colours as CSS.
func (c colours) rules() string {
	css := fmt.Sprintf("text { fill: %s; }\ntext.quiet { fill: %s; }\n.ground { fill: %s; }\n.grid { stroke: %s; }\n.axis { stroke: %s; }\n",
		c.ink, c.quiet, c.ground, c.grid, c.quiet)
	for i, hue := range c.hues {
		css += fmt.Sprintf(".f%d { fill: %s; } .s%d { stroke: %s; }\n", i, hue, i, hue)
	}
	return css
}

// picture collects elements.
type picture struct{ bytes.Buffer }

// svg wraps the drawn elements into a document of that height.
func (p *picture) svg(c *Chart, height float64) []byte {
	var out picture
	out.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %s %s" width="%s" height="%s" role="img">`, num(width), num(height), num(width), num(height))
	out.add(`<title>%s</title>`, escape(c.Title))
	if c.Subtitle != "" {
		out.add(`<desc>%s</desc>`, escape(c.Subtitle))
	}
	out.add(`<style>%s</style>`, style)
	out.add(`<rect class="ground" width="%s" height="%s" rx="6"/>`, num(width), num(height))
	out.Write(p.Bytes())
	out.add(`</svg>`)
	return out.Bytes()
}

// add writes one line.
func (p *picture) add(format string, args ...any) {
	fmt.Fprintf(p, format, args...)
	p.WriteByte('\n')
}

// label writes text; anchor is start, middle or end.
func (p *picture) label(x, y float64, class, anchor, s string) {
	if class != "" {
		class = ` class="` + class + `"`
	}
	if anchor != "start" {
		class += ` text-anchor="` + anchor + `"`
	}
	p.add(`<text x="%s" y="%s"%s>%s</text>`, num(x), num(y), class, escape(s))
}

func (p *picture) stroke(class string, x1, y1, x2, y2 float64) {
	p.add(`<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`, class, num(x1), num(y1), num(x2), num(y2))
}

// whisker draws a spread from (x1, y1) to (x2, y2), with a bar across each end.
func (p *picture) whisker(hue int, x1, y1, x2, y2 float64) {
	dx, dy := 3.0, 0.0
	if y1 == y2 {
		dx, dy = 0, 3
	}
	p.add(`<path class="whisker s%d" d="M%s %sL%s %sM%s %sL%s %sM%s %sL%s %s"/>`, hue,
		num(x1), num(y1), num(x2), num(y2),
		num(x1-dx), num(y1-dy), num(x1+dx), num(y1+dy), num(x2-dx), num(y2-dy), num(x2+dx), num(y2+dy))
}

// mark draws a point; its shape is that of the hue.
func (p *picture) mark(hue int, x, y float64, title string) {
	const r = 4.0
	shape := fmt.Sprintf(`<circle cx="%s" cy="%s" r="%s"`, num(x), num(y), num(r))
	polygon := func(points ...float64) {
		shape = `<path d="M`
		for i := 0; i < len(points); i += 2 {
			if i > 0 {
				shape += "L"
			}
			shape += num(x+points[i]*r) + " " + num(y+points[i+1]*r)
		}
		shape += `Z"`
	}
	switch hue % 4 {
	case 1:
		polygon(-0.9, -0.9, 0.9, -0.9, 0.9, 0.9, -0.9, 0.9)
	case 2:
		polygon(0, -1.2, 1.2, 0.9, -1.2, 0.9)
	case 3:
		polygon(0, -1.3, 1.3, 0, 0, 1.3, -1.3, 0)
	}
	p.add(`%s class="f%d"><title>%s</title>%s`, shape, hue, escape(title), closing(shape))
}

func closing(shape string) string {
	if shape[1] == 'c' {
		return "</circle>"
	}
	return "</path>"
}

// num formats a coordinate: hundredths are enough, and the same everywhere.
func num(v float64) string {
	s := strconv.FormatFloat(v, 'f', 2, 64)
	for s[len(s)-1] == '0' {
		s = s[:len(s)-1]
	}
	if s[len(s)-1] == '.' {
		s = s[:len(s)-1]
	}
	if s == "-0" {
		return "0"
	}
	return s
}

// escape escapes a text for XML; characters that XML does not allow become U+FFFD.
func escape(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) // a bytes.Buffer does not fail
	return b.String()
}

// wide estimates the width of a text: there is no font, and a generous estimate only leaves space.
func wide(s string, size float64) float64 { return float64(utf8.RuneCountInString(s)) * size * 0.6 }
