package main

import (
	"testing"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
)

func TestBucketsHoldTheirWaits(t *testing.T) {
	last := 0
	for d := time.Duration(0); d < 3*time.Hour; d += d/16 + time.Microsecond {
		i := bucketOf(d)
		if i < last || i >= buckets {
			t.Fatalf("bucket %d of %v after %d", i, d, last)
		}
		last = i
		if i == buckets-1 {
			continue // has no end
		}
		if end := bucketEnd(i); d >= end || d >= 4*time.Microsecond && end > d+d/4+time.Microsecond {
			t.Fatalf("%v is in the bucket that ends at %v", d, end)
		}
	}
	if last != buckets-1 {
		t.Fatalf("the last bucket seen is %d", last)
	}
	if i := bucketOf(-time.Second); i != 0 {
		t.Errorf("a negative wait is in bucket %d", i)
	}
}

func TestMeterCountsAndPassesOn(t *testing.T) {
	inner := &meter{Observer: anteroom.NopObserver{}}
	m := &meter{Observer: inner}
	for n := range 200 {
		wait := time.Millisecond
		if n%100 == 0 {
			wait = time.Second // one in a hundred: just outside the p99
		}
		m.Acquired("c", anteroom.OutcomeHandedOff, wait)
	}
	before := m.stats()
	m.Acquired("c", anteroom.OutcomeGranted, 2*time.Second)
	m.Acquired("c", anteroom.OutcomeRefused, time.Hour)
	m.Renewed("c", anteroom.OutcomeRenewed, time.Second)
	m.Renewed("c", anteroom.OutcomeReacquired, time.Second)
	m.Renewed("c", anteroom.OutcomeFailed, 0)

	if p := before.p99(); p < time.Millisecond || p > 1250*time.Microsecond {
		t.Errorf("p99 %v, want about 1ms", p)
	}
	s := m.stats()
	if s != inner.stats() {
		t.Error("the wrapped observer was told something else")
	}
	if s.Acquisitions != 201 || s.HandOffs != 200 || s.Renewals != 2 {
		t.Errorf("%d acquisitions, %d hand-offs, %d renewals", s.Acquisitions, s.HandOffs, s.Renewals)
	}
	second := s.since(before)
	if p := second.p99(); second.Acquisitions != 1 || p < 2*time.Second || p > 2500*time.Millisecond {
		t.Errorf("since then %d acquisitions, p99 %v", second.Acquisitions, p)
	}
	var both stats
	both.add(before)
	both.add(second)
	if both != s {
		t.Error("the parts do not add up to the whole")
	}
	if p := (stats{}).p99(); p != 0 {
		t.Errorf("p99 of nothing is %v", p)
	}
}
