package metrics_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

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
		{"WaitBuckets", metrics.Config{WaitBuckets: []float64{1, 1}}},
		{"WaitBuckets", metrics.Config{WaitBuckets: []float64{0, 1}}},
		{"WaitBuckets", metrics.Config{WaitBuckets: []float64{1, math.NaN()}}},
		{"WaitBuckets", metrics.Config{WaitBuckets: []float64{1, math.Inf(1)}}},
		{"WaitBuckets", metrics.Config{WaitBuckets: make([]float64, 101)}},
		{"HoldBuckets", metrics.Config{HoldBuckets: []float64{2, 1}}},
		{"MarginBuckets", metrics.Config{MarginBuckets: []float64{2, 1}}},
		{"CommandBuckets", metrics.Config{CommandBuckets: []float64{2, 1}}},
		{"MaxClasses", metrics.Config{MaxClasses: -1}},
		{"MaxClasses", metrics.Config{MaxClasses: 1001}},
	} {
		got, err := metrics.New(c.cfg)
		if got != nil || !errors.Is(err, anteroom.ErrConfig) || !strings.Contains(err.Error(), "Config."+c.field+" ") {
			t.Errorf("%+v: %v, %v; want ErrConfig that names %s", c.cfg, got, err, c.field)
		}
	}
}

// Every label of every metric is refused as a ConstLabel: a label missing from the list of refused ones would panic
// or fail at registration instead.
func TestConfig_OwnLabelsAreRefused(t *testing.T) {
	c, r := newCollector(t, metrics.Config{Detail: true})
	everything(c.Observer(), "orders")
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

// Later changes to the caller's Config have no effect.
func TestConfig_IsCopied(t *testing.T) {
	cfg := metrics.Config{WaitBuckets: []float64{1, 2}, ConstLabels: prometheus.Labels{"redis": "eu"}}
	c, r := newCollector(t, cfg)
	cfg.WaitBuckets[0] = 5
	cfg.ConstLabels["redis"], cfg.ConstLabels["zone"] = "us", "1"
	everything(c.Observer(), "orders")
	all, _ := gather(t, r)
	if h, ok := all[`anteroom_acquire_wait_seconds{class="orders",redis="eu"}`]; !ok || h.buckets != 2 {
		t.Errorf("the histogram is %+v, %v", h, ok)
	}
}

// Each histogram has the buckets of its own field.
func TestConfig_EachHistogramHasItsOwnBuckets(t *testing.T) {
	c, r := newCollector(t, metrics.Config{
		Detail: true, WaitBuckets: []float64{1}, HoldBuckets: []float64{1, 2}, MarginBuckets: []float64{1, 2, 3}, CommandBuckets: []float64{1, 2, 3, 4},
	})
	everything(c.Observer(), "orders")
	all, _ := gather(t, r)
	for name, n := range map[string]int{
		`anteroom_acquire_wait_seconds{class="orders"}`:   1,
		`anteroom_hold_seconds{class="orders"}`:           2,
		`anteroom_renewal_margin_seconds{class="orders"}`: 3,
		`anteroom_redis_command_seconds{command="ping"}`:  4,
	} {
		if got := all[name].buckets; got != n {
			t.Errorf("%s has %d buckets, want %d", name, got, n)
		}
	}
}

// Everything that a histogram is meant to measure falls between two bounds that differ by at most a factor of five,
// so no quantile is wrong by more.
func TestConfig_DetailedBucketsTellApartWhatIsMeasured(t *testing.T) {
	c, r := newCollector(t, metrics.Config{Detail: true})
	everything(c.Observer(), "orders")
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	const micro = 1e-6
	for name, span := range map[string]struct{ from, to float64 }{
		"anteroom_acquire_wait_seconds":   {micro, 60},        // a hand-off; an alert begins beyond
		"anteroom_hold_seconds":           {10 * micro, 3600}, // work in memory; a leader's
		"anteroom_renewal_margin_seconds": {.01, 3600},        // of the shortest lease; of one that lasts for hours
		"anteroom_redis_command_seconds":  {50 * micro, 60},   // the same machine; the greatest CommandTimeout
	} {
		i := slices.IndexFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == name })
		if i < 0 {
			t.Fatalf("no %s", name)
		}
		// Those of the other classes and commands are the same.
		buckets := families[i].GetMetric()[0].GetHistogram().GetBucket()
		if first, last := buckets[0].GetUpperBound(), buckets[len(buckets)-1].GetUpperBound(); first > span.from || last < span.to {
			t.Errorf("%s goes from %v to %v, want from %v to %v", name, first, last, span.from, span.to)
		}
		for i := range len(buckets) - 1 {
			if a, b := buckets[i].GetUpperBound(), buckets[i+1].GetUpperBound(); b > 5.001*a {
				t.Errorf("%s does not distinguish %v from %v", name, a, b)
			}
		}
	}
}
