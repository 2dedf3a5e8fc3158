package crew

import (
	"sort"
	"time"

	"github.com/anteroom/anteroom/lab/bench/measure"
)

// The figures of several processes, in addition to those of every scenario.
const (
	// LeastShare is the smallest share, in percent, that any process had of the acquisitions in any Span.
	LeastShare measure.Figure = "least_share_2s_percent"
	// Turns is the number of turns in the window.
	Turns measure.Figure = "turns"
	// GoroutineRatio is the acquisitions of the most served goroutine of a process divided by those of the least
	// served, in the process where that is greatest; a goroutine that was never served counts as served once.
	GoroutineRatio measure.Figure = "most_to_least_within_process"
	// LongestPause is the longest time that any process was without the lock.
	LongestPause measure.Figure = "longest_without_us"
	// LongestTurns is the greatest number of turns that others had while some process had none. If all take turns, that
	// is one less than there are processes.
	LongestTurns measure.Figure = "longest_without_turns"
	// WorstP99 is the 99th percentile of the waits in the process where it is longest.
	WorstP99 measure.Figure = "worst_process_p99_us"
)

// Span is the time over which shares are computed.
const Span = 2 * time.Second

// step is the distance between the beginnings of spans.
const step = 100 * time.Millisecond

// Figures returns the figures of the round.
func (o Outcome) Figures() measure.Figures {
	sum := o.Sum()
	f := sum.Figures()
	for i := range o.Tallies {
		t := &o.Tallies[i]
		f[GoroutineRatio] = max(f[GoroutineRatio], ratio(t.Most, t.Least))
		f[WorstP99] = max(f[WorstP99], float64(t.Wait.Quantile(0.99).Nanoseconds())/1e3)
	}
	if !o.Whole {
		return f // no figures about turns if some are missing
	}
	turns, without := o.turns()
	f[Turns], f[LongestTurns] = float64(turns), float64(without)
	f[LongestPause] = float64(o.longestPause()) / 1e3
	if share, ok := o.leastShare(Span); ok {
		f[LeastShare] = 100 * share
	}
	return f
}

func ratio(most, least uint64) float64 { return float64(most) / float64(max(least, 1)) }

// leastShare returns the smallest share that any process had in any span; false if the window has no whole span or a
// span has no acquisitions.
func (o Outcome) leastShare(span time.Duration) (least float64, ok bool) {
	curves := make([]curve, len(o.Tallies))
	for i, t := range o.Turns {
		end := o.To
		if i+1 < len(o.Turns) {
			end = o.Turns[i+1].At
		}
		curves[t.Proc].add(t.At, end, float64(t.Ops))
	}
	least = 1
	for at := o.From; at+int64(span) <= o.To; at += int64(step) {
		parts, sum := make([]float64, len(curves)), 0.0
		for p := range curves {
			parts[p] = curves[p].at(at+int64(span)) - curves[p].at(at)
			sum += parts[p]
		}
		if sum == 0 {
			return 0, false
		}
		ok = true
		for _, part := range parts {
			least = min(least, part/sum)
		}
	}
	return least, ok
}

// turns returns the number of turns that began within the window, and the greatest number of them in a row of which
// some process had none.
func (o Outcome) turns() (n, without int) {
	last := make([]int, len(o.Tallies)) // n when the process' last turn ended
	for _, t := range o.Turns {
		if t.At < o.From || t.At >= o.To {
			continue
		}
		without = max(without, n-last[t.Proc])
		n++
		last[t.Proc] = n
	}
	for _, l := range last {
		without = max(without, n-l)
	}
	return n, without
}

// longestPause returns the longest time within the window in which a process had no turn.
func (o Outcome) longestPause() (longest int64) {
	last := make([]int64, len(o.Tallies)) // when the process' last turn ended
	for p := range last {
		last[p] = o.From
	}
	for i, t := range o.Turns {
		end := o.To
		if i+1 < len(o.Turns) {
			end = o.Turns[i+1].At
		}
		longest = max(longest, min(t.At, o.To)-last[t.Proc])
		last[t.Proc] = max(min(end, o.To), last[t.Proc])
	}
	for p := range last {
		longest = max(longest, o.To-last[p])
	}
	return longest
}

// curve is the number of acquisitions of a process by time. Within a turn the acquisitions are spread evenly.
type curve struct {
	from, to []int64
	sum      []float64 // before each turn
	total    float64
}

func (c *curve) add(from, to int64, ops float64) {
	c.from, c.to, c.sum = append(c.from, from), append(c.to, to), append(c.sum, c.total)
	c.total += ops
}

// at returns the number of acquisitions before a time.
func (c *curve) at(at int64) float64 {
	i := sort.Search(len(c.from), func(i int) bool { return c.from[i] > at }) - 1
	if i < 0 {
		return 0
	}
	next := c.total
	if i+1 < len(c.sum) {
		next = c.sum[i+1]
	}
	if at >= c.to[i] {
		return next
	}
	return c.sum[i] + (next-c.sum[i])*float64(at-c.from[i])/float64(c.to[i]-c.from[i])
}
