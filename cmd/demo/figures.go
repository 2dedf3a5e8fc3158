package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
)

// figures are the sums of some metrics of several processes: since their start, but for waiting, which is now.
type figures struct {
	acquired, handedOver, renewed, waiting float64
	lingered                               float64 // of handedOver, those of the lock that lingers

	waits map[float64]uint64 // how many acquisitions waited at most so many seconds
	all   uint64             // how many there are of them

	events map[string]float64 // by kind
}

// figuresOf sums up metrics, by process.
func figuresOf(processes [][]*dto.MetricFamily) figures {
	f := figures{waits: map[float64]uint64{}, events: map[string]float64{}}
	for _, families := range processes {
		for _, family := range families {
			for _, m := range family.GetMetric() {
				f.add(family.GetName(), m)
			}
		}
	}
	return f
}

func (f *figures) add(name string, m *dto.Metric) {
	labels := map[string]string{}
	for _, l := range m.GetLabel() {
		labels[l.GetName()] = l.GetValue()
	}
	count := m.GetCounter().GetValue()
	switch {
	case name == "anteroom_waiters":
		f.waiting += m.GetGauge().GetValue()
	case name == "anteroom_acquire_attempts_total" && labels["outcome"] == "acquired":
		f.acquired += count
		if labels["via"] == "handoff" {
			f.handedOver += count
			if labels["class"] == keyLingers {
				f.lingered += count
			}
		}
	case name == "anteroom_renewals_total" && labels["outcome"] == "renewed":
		f.renewed += count
	case name == "anteroom_events_total":
		f.events[labels["kind"]] += count
	case name == "anteroom_acquire_wait_seconds":
		for _, b := range m.GetHistogram().GetBucket() {
			f.waits[b.GetUpperBound()] += b.GetCumulativeCount()
		}
		f.all += m.GetHistogram().GetSampleCount()
	}
}

// eventsSince lists how many events there were of each kind, "" for none.
func (f figures) eventsSince(before figures) string {
	var list []string
	for _, kind := range slices.Sorted(maps.Keys(f.events)) {
		if n := f.events[kind] - before.events[kind]; n > 0 {
			list = append(list, fmt.Sprintf("%.0f %s", n, kind))
		}
	}
	return strings.Join(list, ", ")
}

// p99 returns the upper end of the histogram's bucket in which 99 of 100 acquisitions since before are, and 0
// without acquisitions.
func (f figures) p99(before figures) (bound time.Duration) {
	all := f.all - before.all
	if all == 0 {
		return 0
	}
	for _, seconds := range slices.Sorted(maps.Keys(f.waits)) {
		bound = time.Duration(seconds * float64(time.Second))
		if 100*(f.waits[seconds]-before.waits[seconds]) >= 99*all {
			break
		}
	}
	return bound
}
