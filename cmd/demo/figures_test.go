package main

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/anteroom/anteroom/metrics"
	"github.com/anteroom/anteroom/sync/observe"
)

// The figures are those of the library's metrics, so this fails too if one is renamed.
func TestFiguresAddUpProcesses(t *testing.T) {
	var processes [][]*dto.MetricFamily
	gather := func(c *metrics.Collector) {
		reg := prometheus.NewRegistry()
		reg.MustRegister(c)
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		processes = append(processes, families)
	}
	c, err := metrics.New(metrics.Config{Detail: true})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 200 {
		wait := time.Millisecond
		if n%100 == 0 {
			wait = time.Minute // one in a hundred: just outside the p99
		}
		c.Observer().Acquired("c", observe.OutcomeHandedOff, wait)
	}
	gather(c)
	before := figuresOf(processes)
	c.Observer().Acquired("c", observe.OutcomeGranted, 2*time.Second)
	c.Observer().Acquired(keyLingers, observe.OutcomeGranted, time.Millisecond)
	c.Observer().Acquired(keyLingers, observe.OutcomeHandedOff, time.Millisecond)
	c.Observer().Acquired("c", observe.OutcomeRefused, time.Hour)
	c.Observer().Renewed("c", observe.OutcomeRenewed, time.Second)
	c.Observer().Renewed("c", observe.OutcomeRenewed, time.Second)
	c.Observer().Renewed("c", observe.OutcomeFailed, 0)
	gather(c)
	f := figuresOf(processes)
	if before.acquired != 200 || f.acquired != 403 || f.handedOver != 401 || before.lingered != 0 || f.lingered != 1 || f.renewed != 2 {
		t.Errorf("before %+v, after %+v", before, f)
	}
	if p := before.p99(figures{}); p != time.Millisecond {
		t.Errorf("p99 %v, want 1ms", p)
	}
	second := figuresOf(processes[1:])
	if p := second.p99(before); p != 2500*time.Millisecond {
		t.Errorf("p99 of the last one %v, want 2.5s", p)
	}
	if p := f.p99(f); p != 0 {
		t.Errorf("p99 of nothing is %v", p)
	}
}
