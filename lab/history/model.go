package history

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// step is one operation for porcupine: hold takes the lock, or frees it.
type step struct {
	takes bool
	hold  *Hold
}

// leaseMutex is the specification: a lock that at most one hold has, and that only this hold frees. The state is the
// hold, nil if the lock is free.
var leaseMutex = porcupine.Model{
	Init: func() any { return (*Hold)(nil) },
	Step: func(state, input, _ any) (bool, any) {
		has, s := state.(*Hold), input.(step)
		if s.takes {
			return has == nil, s.hold
		}
		return has == s.hold, (*Hold)(nil)
	},
	DescribeOperation: func(input, _ any) string {
		if s := input.(step); s.takes {
			return fmt.Sprintf("%v takes", s.hold)
		}
		return fmt.Sprintf("%v frees", input.(step).hold)
	},
}

// checkTime bounds one porcupine check. It needs milliseconds for a correct history, and may take for ever to refute
// a wrong one.
const checkTime = 20 * time.Second

// segmentHolds is the minimum number of holds of a segment, except the last one.
const segmentHolds = 200

// exclusion checks with porcupine whether the claims of one key can be put in an order in which each hold takes a
// free lock, and names the pairs of claims that cannot.
func (j *judge) exclusion(key int, spans []*span) {
	double := j.overlaps(key, spans)
	for _, segment := range segments(spans) {
		legal := porcupine.CheckOperationsTimeout(leaseMutex, operations(segment), checkTime)
		if legal == porcupine.Illegal && double == 0 {
			j.found(DoubleHold, key, segment[0].from, "porcupine finds no order for the %d holds from here on", len(segment))
			return
		}
	}
}

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

// segments cuts the holds of a key where nobody has an exclusive claim. A request at such a moment may be moved after
// it, and a free before it: both only shorten times that are not claims.
func segments(spans []*span) (all [][]*span) {
	var segment []*span
	end := int64(math.MinInt64)
	for _, s := range spans {
		if s.exclusive < s.from {
			continue // no claim
		}
		if len(segment) >= segmentHolds && s.from > end {
			all = append(all, segment)
			segment = nil
		}
		segment = append(segment, s)
		end = max(end, s.exclusive)
	}
	if len(segment) > 0 {
		all = append(all, segment)
	}
	return all
}

// operations makes two operations of each hold: taking, between the call of the acquire and its return, and freeing,
// from the end of the claim on.
func operations(segment []*span) []porcupine.Operation {
	begin, end := segment[0].from-1, int64(math.MinInt64)
	for _, s := range segment {
		end = max(end, s.exclusive+1)
	}
	ops := make([]porcupine.Operation, 0, 2*len(segment))
	for _, s := range segment {
		over := max(s.exclusive, min(cmp.Or(s.Released, s.Told, end), end))
		ops = append(ops, porcupine.Operation{ClientId: int(s.Client), Input: step{true, s.Hold}, Call: max(s.Invoke, begin), Return: s.from})
		for range max(s.releases, 1) {
			ops = append(ops, porcupine.Operation{ClientId: int(s.Client), Input: step{false, s.Hold}, Call: s.exclusive, Return: over})
		}
	}
	return ops
}

// ms formats nanoseconds of the shared clock.
func ms(ns int64) time.Duration { return time.Duration(ns).Round(10 * time.Microsecond) }
