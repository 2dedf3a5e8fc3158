package metrics_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/anteroom/anteroom/metrics"
	"github.com/anteroom/anteroom/sync/observe"
)

// newCollector returns a Collector in a registry that checks everything it collects against its descriptions.
func newCollector(t testing.TB, cfg metrics.Config) (*metrics.Collector, *prometheus.Registry) {
	t.Helper()
	c, err := metrics.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r := prometheus.NewPedanticRegistry()
	if err := r.Register(c); err != nil {
		t.Fatal(err)
	}
	return c, r
}

// series is one series of a scrape: a counter or gauge, or the count and sum of a
// histogram.
type series struct {
	value   float64
	count   uint64
	buckets int
	native  bool
}

// gather returns all series by name and labels, as name{a="x",b="y"} with sorted labels, and the type of each family.
func gather(t testing.TB, g prometheus.Gatherer) (map[string]series, map[string]string) {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all, types := map[string]series{}, map[string]string{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for i, l := range m.GetLabel() {
				name += map[bool]string{true: "{", false: ","}[i == 0] + l.GetName() + `="` + l.GetValue() + `"`
			}
			if len(m.GetLabel()) > 0 {
				name += "}"
			}
			switch {
			case m.Counter != nil:
				all[name], types[f.GetName()] = series{value: m.Counter.GetValue()}, "counter"
			case m.Gauge != nil:
				all[name], types[f.GetName()] = series{value: m.Gauge.GetValue()}, "gauge"
			case m.Histogram != nil:
				h := m.Histogram
				all[name] = series{value: h.GetSampleSum(), count: h.GetSampleCount(), buckets: len(h.GetBucket()), native: h.Schema != nil}
				types[f.GetName()] = "histogram"
			}
		}
	}
	return all, types
}

// want fails the test if a counter or gauge has another value.
func want(t testing.TB, g prometheus.Gatherer, values map[string]float64) {
	t.Helper()
	all, _ := gather(t, g)
	for name, v := range values {
		if got, ok := all[name]; !ok {
			t.Errorf("%s does not exist", name)
		} else if got.value != v {
			t.Errorf("%s is %v, want %v", name, got.value, v)
		}
	}
}

// everything reports to obs each thing that can happen, once per class, with every combination of label values that a
// Manager uses.
func everything(obs *observe.Observer, classes ...string) {
	const d = 20 * time.Millisecond
	labels := observe.Labels()
	for _, class := range classes {
		for _, o := range labels.Acquire {
			obs.Acquired(class, o, d)
		}
		for _, how := range labels.Calls {
			obs.Called(class, how)
		}
		for _, o := range labels.Release {
			obs.Released(class, o, d)
		}
		for _, o := range labels.Renew {
			obs.Renewed(class, o, d)
		}
		for _, r := range labels.Losses {
			obs.Lost(class, r)
		}
		for _, c := range labels.Checks {
			obs.Alert(class, c, true)
		}
	}
	for _, name := range labels.Commands {
		for _, o := range labels.CommandOutcomes {
			obs.Command(name, o, d)
		}
	}
	for _, c := range labels.Checks {
		for _, f := range append([]string{"healthy", "unknown"}, labels.Findings...) {
			obs.Checked(c, f)
		}
	}
	for _, a := range labels.Actions {
		for _, o := range labels.RecoveryOutcomes {
			obs.Recovered(labels.Checks[0], a, o)
		}
	}
	for _, k := range labels.Events {
		obs.EventRaised(k, false)
		obs.EventRaised(k, true)
	}
	obs.Subscription(true)
}

// counts is a Counter without a Manager.
type counts map[string]observe.Count

func (c *counts) Counts() map[string]observe.Count { return *c }
