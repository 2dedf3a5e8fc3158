package metrics

import (
	"runtime"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/anteroom/anteroom/metrics/internal/facts"
)

// Collector counts what Managers report and exports it to Prometheus. Create it with New, set it as the Managers'
// Observer, Attach them, and register it. All methods are safe for concurrent use; it must not be copied.
//
// Managers may share a Collector: values are then sums, except for the ages, which are maxima, and
// watchdog_last_run_timestamp_seconds, which is the latest. To monitor a Manager on its own, give it a Collector of
// its own, distinguished by ConstLabels.
type Collector struct {
	families []prometheus.Collector // for Describe; their Collect is never called, see Collect
	process  processSeries
	classes  facts.Classes[*class]
	sources  facts.Sources

	// Values read at the scrape have no state here, only a description.
	held, waiters, holdAge, waitAge, managers, goroutines *prometheus.Desc
	detail                                                bool // goroutines, too
}

var _ prometheus.Collector = (*Collector)(nil)

// New returns a Collector that is neither registered nor attached to a Manager, or nil and an error that wraps
// anteroom.ErrConfig and names the field and its bound.
func New(cfg Config) (*Collector, error) {
	cfg, err := cfg.normal()
	if err != nil {
		return nil, err
	}
	f := &factory{cfg: cfg}
	c := &Collector{process: newProcessSeries(f), detail: cfg.Detail}
	perClass := newClassFamilies(f)
	c.classes.Init(cfg.MaxClasses, perClass.newClass)
	c.families = f.made
	c.held = f.desc("held", "Locks held by the attached Managers.", "class")
	c.waiters = f.desc("waiters", "Callers waiting for a lock in the attached Managers.", "class")
	// Ages, not timestamps, which would be wrong by the difference between this clock and Prometheus': they are
	// computed at the scrape, so they cannot become stale.
	c.holdAge = f.desc("oldest_hold_age_seconds", "Age of the oldest hold, 0 if nothing is held.", "class")
	c.waitAge = f.desc("oldest_wait_age_seconds", "Age of the longest wait, 0 if nobody waits.", "class")
	c.managers = f.desc("managers", "Attached Managers.")
	c.goroutines = f.desc("goroutines", "Goroutines of the whole process, including parked waiters.")
	return c, nil
}

// Describe implements prometheus.Collector. What it sends does not depend on the known classes, so a registry finds
// every conflict of names at registration, also with what is not exported yet.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, f := range c.families {
		f.Describe(ch)
	}
	for _, d := range []*prometheus.Desc{c.held, c.waiters, c.holdAge, c.waitAge, c.managers, c.goroutines} {
		ch <- d
	}
}

// Collect implements prometheus.Collector. It asks each attached Manager for its Counts, which takes time
// proportional to the Manager's live keys.
//
// It sends the series that it has resolved itself instead of collecting the families, which hold a lock of their own
// while they send: a registry that is slow to receive would block the first caller of a new class (I3).
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	counts, managers := facts.Count(&c.sources, &c.classes)
	for _, cl := range c.classes.All() { // after Count, which may have added classes
		cl.send(ch)
		n := counts[cl]
		ch <- gauge(c.held, float64(n.Held), cl.label)
		ch <- gauge(c.waiters, float64(n.Waiting), cl.label)
		ch <- gauge(c.holdAge, facts.Seconds(n.OldestHold), cl.label)
		ch <- gauge(c.waitAge, facts.Seconds(n.OldestWait), cl.label)
	}
	c.process.send(ch)
	ch <- gauge(c.managers, float64(managers))
	if c.detail {
		ch <- gauge(c.goroutines, float64(runtime.NumGoroutine()))
	}
}

// gauge is a value read at the scrape.
func gauge(d *prometheus.Desc, value float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

// factory creates metric families that share a Config, and remembers them for Describe. Its methods panic on an
// invalid name or label, which Config.normal has ruled out.
type factory struct {
	cfg  Config
	made []prometheus.Collector
}

func (f *factory) opts(name, help string) prometheus.Opts {
	return prometheus.Opts{Namespace: f.cfg.Namespace, Name: name, Help: help, Unit: unitOf(name), ConstLabels: f.cfg.ConstLabels}
}

// unitOf returns the unit that a name ends with, for the expositions that carry it. Counts have none.
func unitOf(name string) string {
	if strings.HasSuffix(name, "_seconds") {
		return "seconds"
	}
	return ""
}

func (f *factory) counters(name, help string, labels ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts(f.opts(name, help)), labels)
	f.made = append(f.made, v)
	return v
}

func (f *factory) gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts(f.opts(name, help)), labels)
	f.made = append(f.made, v)
	return v
}

func (f *factory) histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	o := prometheus.HistogramOpts{
		Namespace: f.cfg.Namespace, Name: name, Help: help, ConstLabels: f.cfg.ConstLabels,
		Unit: unitOf(name), Buckets: buckets,
		NativeHistogramBucketFactor: nativeFactor, NativeHistogramMaxBucketNumber: nativeMaxBuckets, NativeHistogramMinResetDuration: nativeMinReset,
	}
	v := prometheus.NewHistogramVec(o, labels)
	f.made = append(f.made, v)
	return v
}

func (f *factory) desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.V2.NewDesc(prometheus.BuildFQName(f.cfg.Namespace, "", name), help,
		prometheus.UnconstrainedLabels(labels), f.cfg.ConstLabels, prometheus.WithUnit(unitOf(name)))
}
