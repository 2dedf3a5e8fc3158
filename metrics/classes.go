package metrics

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/anteroom/anteroom/sync/observe"
)

// otherClass is the class of all locks whose own class appeared after the cap was reached. A lock configured with
// this name shares its series.
const otherClass = "other"

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

// counters are the series of one family, in the order of the lists that package anteroom exports, most frequent
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
}

// newClassFamilies makes the families, with no series yet.
func newClassFamilies(f *factory) classFamilies {
	return classFamilies{
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
	c := &class{label: label, alerts: map[string]prometheus.Gauge{}}
	labels := observe.Labels()
	for _, o := range labels.Acquire {
		outcome, via := o.AcquireLabels()
		c.attempts = append(c.attempts, counter[observe.Outcome]{o, c.counter(f.attempts, label, outcome, via)})
	}
	c.calls = countersOf(c, f.calls, labels.Calls)
	c.releases = countersOf(c, f.releases, labels.Release)
	c.renewals = countersOf(c, f.renewals, labels.Renew)
	c.losses = countersOf(c, f.losses, labels.Losses)
	c.waits = c.histogram(f.waits, label)
	c.holds = c.histogram(f.holds, label)
	c.margins = c.histogram(f.margins, label)
	for _, check := range labels.Checks {
		c.alerts[check] = c.gauge(f.alerts, label, check)
	}
	return c
}

// countersOf creates one series of c for each value of the family's second label.
func countersOf[K ~string](c *class, v *prometheus.CounterVec, values []K) counters[K] {
	list := make(counters[K], len(values))
	for i, value := range values {
		list[i] = counter[K]{value, c.counter(v, c.label, string(value))}
	}
	return list
}

// classTable is the set of known classes at one moment. It is never changed, only replaced as a whole: a read takes
// one atomic load and one lookup, with no lock and no allocation (a sync.Map would allocate for each string looked
// up).
type classTable struct {
	byName map[string]*class // by the name that the Manager reports
	list   []*class          // each class once
	other  *class            // nil until the cap is exceeded
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

// classes finds the class for a name, and creates it when the name first appears.
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

// get returns the class for name. over reports that the name appeared after the cap was reached, so that the class is
// "other".
func (c *classes) get(name string) (cl *class, over bool) {
	t := c.table.Load()
	if cl := t.byName[name]; cl != nil {
		return cl, false
	}
	if t.other != nil {
		return t.other, true // the table is full for good
	}
	return c.getSlow(name)
}

// getSlow creates a class, outlined so that get stays small. It reads again under mu, because another goroutine may
// have created the class, or reached the cap, since get read. It copies the map each time: at most MaxClasses
// times.
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
		// A name may hold any bytes, a label value only UTF-8. Two names that differ only in invalid bytes become one
		// class.
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
