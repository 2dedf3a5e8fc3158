package main

import (
	"math/bits"
	"time"
)

// tally is what the goroutines of one process saw in a window, or those of several after add. It can be sent as JSON.
type tally struct {
	Ops                       uint64 // acquisitions
	Wait, Writes              histogram
	Least, Most               uint64 // acquisitions of the least and most served goroutine
	Processes                 int
	LeastProcess, MostProcess uint64

	Elapsed, CPU time.Duration
	Objects      uint64
	Heap         uint64 // bytes that were allocated

	Violations, Failures, Stuck uint64
	Failure                     string // the first one
}

// take adds what one goroutine saw, if it is back.
func (t *tally) take(w *worker) {
	if !w.back.Load() {
		t.Stuck++
		t.Least = 0
		return
	}
	t.Ops += w.wait.Total
	t.Least, t.Most = min(t.Least, w.wait.Total), max(t.Most, w.wait.Total)
	t.Wait.add(&w.wait)
	t.Writes.add(&w.writes)
	t.Violations += w.violations
	t.Failures += w.failures
	if t.Failure == "" && w.failure != nil {
		t.Failure = w.failure.Error()
	}
}

// add adds the tally of another process for the same window.
func (t *tally) add(o *tally) {
	if t.Processes == 0 {
		*t = *o
		return
	}
	t.Ops += o.Ops
	t.Wait.add(&o.Wait)
	t.Writes.add(&o.Writes)
	t.Least, t.Most = min(t.Least, o.Least), max(t.Most, o.Most)
	t.Processes += o.Processes
	t.LeastProcess, t.MostProcess = min(t.LeastProcess, o.LeastProcess), max(t.MostProcess, o.MostProcess)
	t.Elapsed = max(t.Elapsed, o.Elapsed)
	t.CPU += o.CPU
	t.Objects += o.Objects
	t.Heap += o.Heap
	t.Violations += o.Violations
	t.Failures += o.Failures
	t.Stuck += o.Stuck
	if t.Failure == "" {
		t.Failure = o.Failure
	}
}

// figures returns the round's figures. Without acquisitions there is no wait and nothing per acquisition.
func (t *tally) figures(goroutines int) figures {
	n := float64(t.Ops)
	f := figures{
		opsPerS:    n / t.Elapsed.Seconds(),
		violations: float64(t.Violations), failures: float64(t.Failures), stuck: float64(t.Stuck),
	}
	if t.Least > 0 && goroutines > 1 {
		f[mostToLeast] = float64(t.Most) / float64(t.Least)
	}
	if t.Processes > 1 && t.LeastProcess > 0 {
		f[mostToLeastProcess] = float64(t.MostProcess) / float64(t.LeastProcess)
	}
	if t.Ops == 0 {
		return f
	}
	if t.Writes.Total > 0 {
		f[writeP50], f[writeP99] = micros(t.Writes.quantile(0.5)), micros(t.Writes.quantile(0.99))
	}
	if goroutines == 1 && t.Processes == 1 {
		f[pair] = 1e6 * t.Elapsed.Seconds() / n
	}
	return f.add(figures{
		p50: micros(t.Wait.quantile(0.5)), p99: micros(t.Wait.quantile(0.99)), longest: micros(t.Wait.Max),
		allocsPerOp: float64(t.Objects) / n, heapPerOp: float64(t.Heap) / n, clientCPU: micros(t.CPU) / n,
	})
}

const (
	// halves is log2 of the number of buckets per power of two. A bucket of 32 is at most 1/32 of its value wide, and
	// its middle is off by at most half of that.
	halves = 5
	// tooLong is log2 of the smallest time, in nanoseconds, that is too long to be distinguished: 18 minutes.
	tooLong = 40
	buckets = (tooLong - halves + 1) << halves
)

// histogram counts times in buckets of fixed relative width: a quantile is off by less than 3 %, the maximum is
// exact. It is for one goroutine, and recording allocates nothing. The zero value is ready to use.
type histogram struct {
	Counts [buckets]uint32
	Total  uint64
	Max    time.Duration
}

func (h *histogram) record(d time.Duration) {
	h.Counts[bucket(uint64(max(d, 0)))]++
	h.Total++
	h.Max = max(h.Max, d)
}

// bucket returns the place of v. The first 32 nanoseconds have one bucket each, every power of two above has 32.
func bucket(v uint64) int {
	if v < 1<<halves {
		return int(v)
	}
	if v >= 1<<tooLong {
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
	return time.Duration(uint64(i-exp<<halves)<<exp + 1<<exp/2)
}

func (h *histogram) add(o *histogram) {
	for i, n := range o.Counts {
		h.Counts[i] += n
	}
	h.Total += o.Total
	h.Max = max(h.Max, o.Max)
}

// quantile returns the time that the share q of all did not exceed; 0 if nothing was counted.
func (h *histogram) quantile(q float64) time.Duration {
	left := uint64(q * float64(h.Total))
	for i, n := range h.Counts {
		if uint64(n) > left {
			return min(middle(i), h.Max)
		}
		left -= uint64(n)
	}
	return h.Max
}
