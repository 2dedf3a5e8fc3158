package main

import (
	"math/bits"
	"sync/atomic"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
)

// meter is an Observer that counts for the live line and forwards everything to the Observer that it wraps, the
// Collector behind /metrics. It costs a lock some atomic adds and no allocation.
type meter struct {
	anteroom.Observer
	acquired, handOffs, renewals atomic.Int64
	waits                        [buckets]atomic.Int64
}

// Acquired counts an acquired lock and its wait.
func (m *meter) Acquired(class string, o anteroom.Outcome, wait time.Duration) {
	m.Observer.Acquired(class, o, wait)
	if outcome, _ := o.AcquireLabels(); outcome != "acquired" {
		return
	}
	m.acquired.Add(1)
	if o == anteroom.OutcomeHandedOff {
		m.handOffs.Add(1)
	}
	m.waits[bucketOf(wait)].Add(1)
}

// Renewed counts successful renewals.
func (m *meter) Renewed(class string, o anteroom.Outcome, left time.Duration) {
	m.Observer.Renewed(class, o, left)
	if o == anteroom.OutcomeRenewed || o == anteroom.OutcomeReacquired {
		m.renewals.Add(1)
	}
}

// stats returns the current counters. They are read one by one, so one may be an event ahead of another.
func (m *meter) stats() stats {
	s := stats{Acquisitions: m.acquired.Load(), HandOffs: m.handOffs.Load(), Renewals: m.renewals.Load()}
	for i := range m.waits {
		s.Waits[i] = m.waits[i].Load()
	}
	return s
}

// stats are the figures of one process since its start, or the sum of several.
type stats struct {
	Acquisitions int64          `json:"acquisitions"`
	HandOffs     int64          `json:"handOffs"`
	Renewals     int64          `json:"renewals"`
	Waiters      int64          `json:"waiters"` // now, not since the beginning
	Waits        [buckets]int64 `json:"waits"`   // acquisitions by waiting time, see bucketOf
}

// add adds o's figures.
func (s *stats) add(o stats) {
	s.Acquisitions += o.Acquisitions
	s.HandOffs += o.HandOffs
	s.Renewals += o.Renewals
	s.Waiters += o.Waiters
	for i, n := range o.Waits {
		s.Waits[i] += n
	}
}

// since returns the increase since before; Waiters stay as they are.
func (s stats) since(before stats) stats {
	s.Acquisitions -= before.Acquisitions
	s.HandOffs -= before.HandOffs
	s.Renewals -= before.Renewals
	for i, n := range before.Waits {
		s.Waits[i] -= n
	}
	return s
}

// p99 returns a wait that 99 of 100 acquisitions did not exceed, at most a quarter too high, and 0 without
// acquisitions.
func (s stats) p99() time.Duration {
	var all int64
	for _, n := range s.Waits {
		all += n
	}
	over := all / 100 // this many may be slower
	for i := buckets - 1; i >= 0; i-- {
		if s.Waits[i] == 0 {
			continue
		}
		if over -= s.Waits[i]; over < 0 {
			return bucketEnd(i)
		}
	}
	return 0
}

// Waits are counted in buckets of microseconds, four to each power of two.
const buckets = 128

// bucketOf returns the bucket of a wait. The last one, from about two hours on, has no upper end.
func bucketOf(d time.Duration) int {
	us := uint64(max(d.Microseconds(), 0))
	if us < 4 {
		return int(us)
	}
	e := bits.Len64(us) - 1
	return min(4*(e-1)+int(us>>(e-2)&3), buckets-1)
}

// bucketEnd returns the exclusive upper end of a bucket.
func bucketEnd(i int) time.Duration {
	if i < 4 {
		return time.Duration(i+1) * time.Microsecond
	}
	return time.Duration(4+i%4+1) << (i/4 - 1) * time.Microsecond
}
