package metrics_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/anteroom/anteroom/metrics"
	anteroom "github.com/anteroom/anteroom/sync"
)

func TestConfig_ErrorsNameTheField(t *testing.T) {
	labels := func(name, value string) prometheus.Labels { return prometheus.Labels{name: value} }
	for _, c := range []struct {
		field string
		cfg   metrics.Config
	}{
		{"Namespace", metrics.Config{Namespace: "my-locks"}},
		{"Namespace", metrics.Config{Namespace: "9locks"}},
		{"Namespace", metrics.Config{Namespace: "slöt"}},
		{"ConstLabels", metrics.Config{ConstLabels: labels("", "x")}},
		{"ConstLabels", metrics.Config{ConstLabels: labels("a-b", "x")}},
		{"ConstLabels", metrics.Config{ConstLabels: labels("__name__", "x")}},
		{"ConstLabels", metrics.Config{ConstLabels: labels("class", "x")}},
		{"ConstLabels", metrics.Config{ConstLabels: labels("le", "x")}},
		{"ConstLabels", metrics.Config{ConstLabels: labels("redis", "\xff")}},
		{"Buckets", metrics.Config{Buckets: []float64{1, 1}}},
		{"Buckets", metrics.Config{Buckets: []float64{0, 1}}},
		{"Buckets", metrics.Config{Buckets: []float64{1, math.NaN()}}},
		{"Buckets", metrics.Config{Buckets: []float64{1, math.Inf(1)}}},
		{"Buckets", metrics.Config{Buckets: make([]float64, 101)}},
		{"LongBuckets", metrics.Config{LongBuckets: []float64{2, 1}}},
		{"MaxClasses", metrics.Config{MaxClasses: -1}},
		{"MaxClasses", metrics.Config{MaxClasses: 1001}},
	} {
		got, err := metrics.New(c.cfg)
		if got != nil || !errors.Is(err, anteroom.ErrConfig) || !strings.Contains(err.Error(), "Config."+c.field+" ") {
			t.Errorf("%+v: %v, %v; want ErrConfig that names %s", c.cfg, got, err, c.field)
		}
	}
}

// Every label of every metric is refused as a ConstLabel: a label that is missing in
// the list of refused ones would panic or fail at the registration instead.
func TestConfig_OwnLabelsAreRefused(t *testing.T) {
	c, r := newCollector(t, metrics.Config{})
	everything(c, "orders")
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if _, err := metrics.New(metrics.Config{ConstLabels: prometheus.Labels{l.GetName(): "x"}}); err == nil {
					t.Fatalf("ConstLabels may contain %s, a label of %s", l.GetName(), f.GetName())
				}
			}
		}
	}
}

// What the caller does to its Config afterwards changes nothing.
func TestConfig_IsCopied(t *testing.T) {
	cfg := metrics.Config{Buckets: []float64{1, 2}, ConstLabels: prometheus.Labels{"redis": "eu"}}
	c, r := newCollector(t, cfg)
	cfg.Buckets[0] = 5
	cfg.ConstLabels["redis"], cfg.ConstLabels["zone"] = "us", "1"
	everything(c, "orders")
	all, _ := gather(t, r)
	if h, ok := all[`anteroom_acquire_wait_seconds{class="orders",redis="eu"}`]; !ok || h.buckets != 2 {
		t.Errorf("the histogram is %+v, %v", h, ok)
	}
}
