package metrics

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	anteroom "github.com/anteroom/anteroom/sync"
)

// otherClass is the class of all locks whose own class came after the cap was
// reached. A lock that is given this name shares its series.
const otherClass = "other"

// class is the series of one lock class. It is complete before it is published and
// never changed afterwards, so it is read without a lock.
type class struct {
	resolved
	label string

	attempts counters[anteroom.Outcome]
	waits    prometheus.Observer
	releases counters[anteroom.Outcome]
	holds    prometheus.Observer
	renewals counters[anteroom.Outcome]
	margins  prometheus.Observer
	losses   counters[anteroom.LossReason]
	alerts   map[string]prometheus.Gauge // by check
}

// counters are the series of a family by what is counted, in the order of the lists that
// package anteroom exports, which begin with what happens most. They are few, and the
// first are found in less time than a map takes to hash a string.
type counters[K comparable] []counter[K]

type counter[K comparable] struct {
	what K
	prometheus.Counter
}

// of returns the series for what, nil where there is none.
func (c counters[K]) of(what K) prometheus.Counter {
	for i := range c {
		if c[i].what == what {
			return c[i].Counter
		}
	}
	return nil
}

// classFamilies are the metric families with a class. They serve to make series and
// to describe them; nothing looks a series up in them again.
type classFamilies struct {
	attempts, releases, renewals, losses *prometheus.CounterVec
	waits, holds, margins                *prometheus.HistogramVec
	alerts                               *prometheus.GaugeVec
}

// newClassFamilies makes the families, with no series yet.
func newClassFamilies(f *factory) classFamilies {
	return classFamilies{
		attempts: f.counters("acquire_attempts_total", "Attempts to get a lock that ended, by how they ended and, if acquired, how the lock came.", "class", "outcome", "via"),
		waits:    f.histograms("acquire_wait_seconds", "How long those waited who got the lock, re-entries not included.", f.cfg.WaitBuckets, "class"),
		releases: f.counters("releases_total", "Holds that their owner ended.", "class", "outcome"),
		holds:    f.histograms("hold_seconds", "How long owners had the lock, from getting it to ending it, inner holds not included.", f.cfg.HoldBuckets, "class"),
		renewals: f.counters("renewals_total", "Renewals that were answered, or that got no usable answer.", "class", "outcome"),
		margins:  f.histograms("renewal_margin_seconds", "What was left of the lease when a renewal was confirmed: 0 is a lost lock.", f.cfg.MarginBuckets, "class"),
		losses:   f.counters("lost_total", "Locks that were lost.", "class", "reason"),
		alerts:   f.gauges("alerts_active", "Alerts of the watchdog that were raised and not cleared yet.", "class", "check"),
	}
}

// newClass makes the series of a class, all 0.
func (f *classFamilies) newClass(label string) *class {
	c := &class{label: label, alerts: map[string]prometheus.Gauge{}}
	for _, o := range anteroom.AcquireOutcomes() {
		outcome, via := o.AcquireLabels()
		c.attempts = append(c.attempts, counter[anteroom.Outcome]{o, c.counter(f.attempts, label, outcome, via)})
	}
	c.releases = countersOf(c, f.releases, anteroom.ReleaseOutcomes())
	c.renewals = countersOf(c, f.renewals, anteroom.RenewOutcomes())
	c.losses = countersOf(c, f.losses, anteroom.LossReasons())
	c.waits = c.histogram(f.waits, label)
	c.holds = c.histogram(f.holds, label)
	c.margins = c.histogram(f.margins, label)
	for _, check := range anteroom.CheckNames() {
		c.alerts[check] = c.gauge(f.alerts, label, check)
	}
	return c
}

// countersOf makes one series of c for each value of the family's second label.
func countersOf[K ~string](c *class, v *prometheus.CounterVec, values []K) counters[K] {
	list := make(counters[K], len(values))
	for i, value := range values {
		list[i] = counter[K]{value, c.counter(v, c.label, string(value))}
	}
	return list
}

// classTable is what is known about classes at one moment. It is never changed, only
// replaced as a whole: reading it takes one atomic load and one look-up, with no lock
// and no allocation (a sync.Map would allocate for each string that it is asked for).
type classTable struct {
	byName map[string]*class // by the name that the Manager gives
	list   []*class          // each class once
	other  *class            // nil until the cap was passed
}

// find returns the class with that label, or nil.
func (t *classTable) find(label string) *class {
	for _, c := range t.list {
		if c.label == label {
			return c
		}
	}
	return nil
}

// classes finds the class for a name, and makes it at the name's first appearance.
type classes struct {
	families classFamilies
	max      int
	table    atomic.Pointer[classTable]
	mu       sync.Mutex // held to replace table
}

// init makes c ready, with no class known.
func (c *classes) init(f classFamilies, limit int) {
	c.families, c.max = f, limit
	c.table.Store(&classTable{byName: map[string]*class{}})
}

// get returns the class for name. over tells that the name came after the cap was
// reached, so that the class is the common one.
func (c *classes) get(name string) (cl *class, over bool) {
	t := c.table.Load()
	if cl := t.byName[name]; cl != nil {
		return cl, false
	}
	if t.other != nil {
		return t.other, true // the table is full and stays so
	}
	return c.getSlow(name)
}

// getSlow makes a class, outlined so that get stays small. Under mu it looks again,
// because somebody else may have made the class, or reached the cap, since get looked.
// It copies the names each time: there are at most MaxClasses, and each comes once.
func (c *classes) getSlow(name string) (cl *class, over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.table.Load()
	if cl := t.byName[name]; cl != nil {
		return cl, false
	}
	if t.other != nil {
		return t.other, true
	}
	next := &classTable{byName: t.byName, list: t.list}
	over = len(t.byName) >= c.max
	label := otherClass
	if !over {
		// A name may hold any bytes, a label value only UTF-8. Two names that differ in
		// their bad bytes only become one class.
		label = strings.ToValidUTF8(name, "\uFFFD")
	}
	if cl = t.find(label); cl == nil {
		cl = c.families.newClass(label)
		next.list = append(t.list[:len(t.list):len(t.list)], cl)
	}
	if over {
		next.other = cl
	} else {
		next.byName = maps.Clone(t.byName)
		next.byName[strings.Clone(name)] = cl
	}
	c.table.Store(next)
	return cl, over
}
