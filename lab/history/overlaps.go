package history

import (
	"slices"
	"time"
)

// overlaps looks at each claim that begins and at those that last then. It returns how many begin though those leave too
// little, and no removal excuses it, and counts the others.
func (j *judge) overlaps(key int, spans []*span) (double int) {
	var open []*span
	for _, s := range spans {
		open = slices.DeleteFunc(open, func(o *span) bool { return o.to <= s.from })
		all, held, excused := max(j.h.Locks[key].Units, 1), s.units, s.units
		var with *span
		until := int64(0)
		for _, o := range open {
			switch {
			case !together(o.from, o.to, s.from, s.to):
				continue
			case together(o.from, o.exclusive, s.from, s.exclusive) || o.Proc == s.Proc:
				held, with = held+o.units, o
			}
			excused += o.units
			until = max(until, min(o.to, s.to))
		}
		switch {
		case held > all:
			double++
			j.found(DoubleHold, key, s.from, "%d of %d units are had: %v has had it for %v, and %v acquires it; they overlap for %v. %s. %s",
				held, all, with.Hold, ms(s.from-with.from), s.Hold, ms(min(with.to, s.to)-s.from), with.Story(), s.Story())
		case excused > all:
			j.v.Overlaps++
			j.v.Longest = max(j.v.Longest, time.Duration(until-s.from))
			j.v.Until = max(j.v.Until, until)
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
