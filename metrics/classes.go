package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/anteroom/anteroom/sync/observe"
)

// class is the series of one lock class. It is complete before it is published and never changes afterwards, so it is
// read without a lock.
type class struct {
	resolved
	label string

	attempts counters[observe.Outcome]
	waits    prometheus.Observer
	calls    counters[string]
	releases counters[observe.Outcome]
	holds    prometheus.Observer
	renewals counters[observe.Outcome]
	margins  prometheus.Observer
	losses   counters[observe.LossReason]
	alerts   map[string]prometheus.Gauge // by check
}

// counters are the series of one family, in the order of the lists that package observe exports, most frequent
// first. They are few: a linear search finds the first ones in less time than a map takes to hash a string.
type counters[K comparable] []counter[K]

type counter[K comparable] struct {
	what K
	prometheus.Counter
}

// of returns the series for what, or nil if there is none.
func (c counters[K]) of(what K) prometheus.Counter {
	for i := range c {
		if c[i].what == what {
			return c[i].Counter
		}
	}
	return nil
}

// classFamilies are the metric families with a class label. They create and describe series, and never find one.
type classFamilies struct {
	attempts, calls, releases, renewals, losses *prometheus.CounterVec
	waits, holds, margins                       *prometheus.HistogramVec
	alerts                                      *prometheus.GaugeVec
	detail                                      bool
}

// newClassFamilies makes the families, with no series yet.
func newClassFamilies(f *factory) classFamilies {
	return classFamilies{
		detail:   f.cfg.Detail,
		attempts: f.counters("acquire_attempts_total", "Completed attempts to acquire a lock, by outcome and, if acquired, by what granted it.", "class", "outcome", "via"),
		waits:    f.histograms("acquire_wait_seconds", "Wait of the attempts that acquired the lock, except re-entries.", f.cfg.WaitBuckets, "class"),
		calls:    f.counters("calls_total", "Times that Redis gave a lock to this process in line for it, by how the process learned that.", "class", "how"),
		releases: f.counters("releases_total", "Holds that their owner released, by outcome.", "class", "outcome"),
		holds:    f.histograms("hold_seconds", "Time from acquiring a lock to releasing it, except nested holds.", f.cfg.HoldBuckets, "class"),
		renewals: f.counters("renewals_total", "Renewals that were answered or failed, by outcome.", "class", "outcome"),
		margins:  f.histograms("renewal_margin_seconds", "Time left on the lease when a renewal was confirmed. 0 means a lost lock.", f.cfg.MarginBuckets, "class"),
		losses:   f.counters("lost_total", "Lost locks, by reason.", "class", "reason"),
		alerts:   f.gauges("alerts_active", "Watchdog alerts raised and not yet cleared.", "class", "check"),
	}
}

// newClass creates the series of a class, all 0.
func (f *classFamilies) newClass(label string) *class {
	c := &class{resolved: resolved{detail: f.detail}, label: label, alerts: map[string]prometheus.Gauge{}}
	labels := observe.Labels()
	for _, o := range labels.Acquire {
		outcome, via := o.AcquireLabels()
		c.attempts = append(c.attempts, counter[observe.Outcome]{o, c.counter(occurred.unless(o == observe.OutcomeGranted), f.attempts, label, outcome, via)})
	}
	c.calls = countersOf(c, f.calls, labels.Calls, occurred)
	c.releases = countersOf(c, f.releases, labels.Release, detailed)
	c.renewals = countersOf(c, f.renewals, labels.Renew, occurred)
	c.losses = countersOf(c, f.losses, labels.Losses, occurred, observe.LostGone, observe.LostDeadline, observe.LostWatchdog)
	c.waits = c.histogram(f.waits, label)
	c.holds = c.histogram(f.holds, label)
	c.margins = c.histogram(f.margins, label)
	for _, check := range labels.Checks {
		c.alerts[check] = c.gauge(occurred, f.alerts, label, check)
	}
	return c
}

// countersOf creates one series of c for each value of the family's second label, those of zero always exported, the
// others according to w.
func countersOf[K ~string](c *class, v *prometheus.CounterVec, values []K, w when, zero ...K) counters[K] {
	list := make(counters[K], len(values))
	for i, value := range values {
		list[i] = counter[K]{value, c.counter(w.unless(slices.Contains(zero, value)), v, c.label, string(value))}
	}
	return list
}
