package measure

import (
	"math/bits"
	"time"
)

const (
	// halves is log2 of the number of buckets per power of two. A bucket of 32 is at most
	// 1/32 of its value wide, and its middle is off by at most half of that.
	halves = 5
	// longest is log2 of the smallest time, in nanoseconds, that is too long to be distinguished: 18 minutes.
	longest = 40
	buckets = (longest - halves + 1) << halves
)

// Histogram counts times in buckets of fixed relative width. It is for one goroutine,
// and recording allocates nothing. The zero value is ready to use.
type Histogram struct {
	Counts [buckets]uint32
	Total  uint64
	Max    time.Duration // exact
}

// Record adds one time.
func (h *Histogram) Record(d time.Duration) {
	h.Counts[bucket(uint64(max(d, 0)))]++
	h.Total++
	h.Max = max(h.Max, d)
}

// bucket returns the place of v. The first 32 nanoseconds have one bucket each, every
// power of two above has 32.
func bucket(v uint64) int {
	if v < 1<<halves {
		return int(v)
	}
	if v >= 1<<longest {
		return buckets - 1
	}
	exp := bits.Len64(v) - 1 - halves // v >> exp is from 32 to 63
	return exp<<halves + int(v>>exp)
}

// middle returns the time that represents a bucket.
func middle(i int) time.Duration {
	if i < 2<<halves {
		return time.Duration(i)
	}
	exp := i>>halves - 1
	low := uint64(i-exp<<halves) << exp
	return time.Duration(low + 1<<exp/2)
}

// Add adds what another histogram has counted.
func (h *Histogram) Add(o *Histogram) {
	for i, n := range o.Counts {
		h.Counts[i] += n
	}
	h.Total += o.Total
	h.Max = max(h.Max, o.Max)
}

// Quantile returns the time that the share q of all did not exceed; 0 if nothing was counted.
func (h *Histogram) Quantile(q float64) time.Duration {
	if h.Total == 0 {
		return 0
	}
	left := uint64(q * float64(h.Total))
	for i, n := range h.Counts {
		if uint64(n) > left {
			return min(middle(i), h.Max)
		}
		left -= uint64(n)
	}
	return h.Max
}
