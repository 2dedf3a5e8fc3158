package plot

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// scale maps the values of one axis to coordinates.
type scale struct {
	log      bool
	min, max float64
	from, to float64 // where min and max are drawn
	ticks    []float64
}

// at returns the coordinate of v. Values beyond the axis are drawn at its end; that can only be the low end of a
// spread, if it is zero on a logarithmic axis.
func (s scale) at(v float64) float64 {
	v = min(max(v, s.min), s.max)
	lo, hi := s.min, s.max
	if s.log {
		v, lo, hi = math.Log10(v), math.Log10(lo), math.Log10(hi)
	}
	return s.from + (s.to-s.from)*(v-lo)/(hi-lo)
}

// newScale creates an axis that covers values, drawn between from and to.
func newScale(a Axis, values []float64, from, to float64) scale {
	s := scale{log: a.Log, from: from, to: to, min: math.Inf(1), max: math.Inf(-1)}
	for _, v := range append(values, a.Ticks...) {
		if a.Log && v <= 0 {
			continue
		}
		s.min, s.max = min(s.min, v), max(s.max, v)
	}
	if a.Log {
		s.logTicks()
	} else {
		s.linearTicks()
	}
	if len(a.Ticks) > 0 {
		s.ticks = a.Ticks
	}
	return s
}

// linearTicks widens the axis to round numbers, about five of them.
func (s *scale) linearTicks() {
	s.min = min(s.min, 0)
	if s.max <= s.min {
		s.max = s.min + 1
	}
	step := math.Pow(10, math.Floor(math.Log10((s.max-s.min)/5)))
	for _, factor := range []float64{1, 2, 5, 10} {
		if (s.max-s.min)/(step*factor) <= 6 {
			step *= factor
			break
		}
	}
	first, last := math.Floor(s.min/step+1e-9), math.Ceil(s.max/step-1e-9)
	for i := first; i <= last; i++ {
		s.ticks = append(s.ticks, i*step)
	}
	s.min, s.max = first*step, last*step
}

// logTicks widens the axis to 1, 2 or 5 times a power of ten. Over many decades only
// the powers are numbered.
func (s *scale) logTicks() {
	var rungs []float64
	first, last := int(math.Floor(math.Log10(s.min))), int(math.Ceil(math.Log10(s.max)))
	for e := first; e <= last; e++ {
		for _, factor := range []float64{1, 2, 5} {
			// Parsed, because a computed power may differ from the number that it represents.
			v, _ := strconv.ParseFloat(fmt.Sprintf("%ge%d", factor, e), 64)
			rungs = append(rungs, v)
		}
	}
	low, high := rungs[0], rungs[len(rungs)-1]
	for _, v := range rungs {
		if v <= s.min {
			low = v
		}
		if v >= s.max {
			high = min(high, v)
		}
	}
	if high <= low {
		high = low * 10
	}
	s.min, s.max = low, high
	few := math.Log10(high/low) <= 2.5
	for _, v := range rungs {
		if v >= low && v <= high && (few || isPower(v)) {
			s.ticks = append(s.ticks, v)
		}
	}
}

func isPower(v float64) bool { return strings.HasPrefix(strconv.FormatFloat(v, 'e', -1, 64), "1e") }

// Number formats v briefly: three digits, with k, M or G from 10,000 on.
func Number(v float64) string {
	size := math.Abs(v)
	for _, unit := range []struct {
		from, factor float64
		suffix       string
	}{{1e9, 1e9, "G"}, {1e6, 1e6, "M"}, {1e4, 1e3, "k"}} {
		// 999,600 is 1 M and not 1000 k.
		if size >= unit.from*0.9995 {
			return trimmed(v/unit.factor) + " " + unit.suffix
		}
	}
	if size >= 999.5 {
		n := strconv.FormatFloat(math.Round(v), 'f', 0, 64)
		return n[:len(n)-3] + "," + n[len(n)-3:]
	}
	return trimmed(v)
}

// trimmed has three digits, without zeros at the end.
func trimmed(v float64) string {
	if v == 0 {
		return "0"
	}
	digits := max(0, 2-int(math.Floor(math.Log10(math.Abs(v)*1.0000001))))
	text := strconv.FormatFloat(v, 'f', min(digits, 6), 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}
