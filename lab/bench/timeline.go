package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// timeline draws a lease whose holder is cut off from Redis, with the defaults of a lock: not measured, but to scale.
func timeline(folder string) error {
	const (
		lease, period, margin = 30.0, 10.0, 1.5
		cut                   = 2.4 * period // the connection ends
		last                  = 2 * period   // the last renewal that Redis confirmed
		notice, free          = last + lease - margin, last + lease
		left, scale, width    = 90, 11.0, 780
	)
	x := func(t float64) float64 { return left + scale*t }
	var b strings.Builder
	text := func(at, y float64, anchor, s string) {
		fmt.Fprintf(&b, `<text x="%.0f" y="%.0f" text-anchor="%s">%s</text>`+"\n", at, y, anchor, s)
	}
	bar := func(from, to, y float64, color string) {
		fmt.Fprintf(&b, `<rect x="%.1f" y="%.0f" width="%.1f" height="22" fill="%s"/>`+"\n", x(from), y, scale*(to-from), color)
	}
	rule := func(t, from, to float64, color, dash string) {
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%.0f" x2="%.1f" y2="%.0f" stroke="%s" stroke-dasharray="%s"/>`+"\n", x(t), from, x(t), to, color, dash)
	}
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d 230" font-family="sans-serif" font-size="12">`+"\n", width)
	fmt.Fprintf(&b, `<rect width="%d" height="230" fill="white"/>`+"\n", width)
	text(left-10, 71, "end", "process A")
	text(left-10, 121, "end", "Redis")
	text(left-10, 171, "end", "process B")
	bar(0, notice, 55, "#8fcfae")
	bar(notice, free, 55, "#e3b23c")
	bar(0, free, 105, "#9aa5b1")
	bar(free, 59, 105, "#6f7b88")
	bar(0, free, 155, "#e8ebee")
	bar(free, 59, 155, "#8fcfae")
	text(x(6), 71, "middle", "holds, may work")
	text(x(25), 121, "middle", "the lock is A's")
	text(x(54.5), 121, "middle", "B's")
	text(x(25), 171, "middle", "waits in line")
	text(x(54.5), 171, "middle", "holds")
	for _, t := range []float64{0, period, last} {
		fmt.Fprintf(&b, `<path d="M%.1f 79 v24 m-4 -7 l4 7 l4 -7" stroke="black" fill="none"/>`+"\n", x(t)+1)
	}
	text(x(period)+6, 95, "start", "renewal")
	rule(cut, 30, 103, "#b3261e", "4 3")
	text(x(cut), 24, "middle", "A is cut off")
	rule(notice, 30, 79, "black", "none")
	text(x(notice)-4, 46, "end", "A's contexts end: 28.5 s after its last renewal")
	rule(free, 79, 155, "black", "4 3")
	text(x(free)+6, 95, "start", "1.5 s later Redis lets B in")
	for t := 0; t <= 50; t += 10 {
		rule(float64(t), 185, 191, "black", "none")
		text(x(float64(t)), 205, "middle", fmt.Sprintf("%d s", t))
	}
	fmt.Fprintf(&b, "<line x1=\"%d\" y1=\"185\" x2=\"%.0f\" y2=\"185\" stroke=\"black\"/>\n", left, x(59))
	b.WriteString("</svg>\n")
	return os.WriteFile(filepath.Join(folder, "time.svg"), []byte(b.String()), 0o644)
}
