package history

import (
	"slices"
	"time"
)

// overlaps looks at each pair of concurrent claims. It returns how many of them no removal excuses, and counts the
// others.
func (j *judge) overlaps(key int, spans []*span) (double int) {
	var open []*span
	for _, s := range spans {
		open = slices.DeleteFunc(open, func(o *span) bool { return o.to <= s.from })
		for _, o := range open {
			if !together(o.from, o.to, s.from, s.to) {
				continue
			}
			if !together(o.from, o.exclusive, s.from, s.exclusive) && o.Proc != s.Proc {
				j.v.Overlaps++
				j.v.Longest = max(j.v.Longest, time.Duration(min(o.to, s.to)-s.from))
				j.v.Until = max(j.v.Until, min(o.to, s.to))
				continue
			}
			double++
			j.found(DoubleHold, key, s.from, "%v has had it for %v, and %v acquires it; they overlap for %v. %s. %s",
				o.Hold, ms(s.from-o.from), s.Hold, ms(min(o.to, s.to)-s.from), o.Story(), s.Story())
		}
		open = append(open, s)
	}
	return double
}

// together reports whether two claims share a moment. A claim may be a single moment; touching is not sharing, and a
// claim whose end is before its beginning is none.
func together(aFrom, aTo, bFrom, bTo int64) bool {
	return aFrom <= aTo && bFrom <= bTo && aFrom < bTo && bFrom < aTo
}

// ms formats nanoseconds of the shared clock.
func ms(ns int64) time.Duration { return time.Duration(ns).Round(10 * time.Microsecond) }
