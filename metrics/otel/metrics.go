package anteroomotel

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/anteroom/anteroom/metrics/internal/facts"
	"github.com/anteroom/anteroom/sync/observe"
)

// The attributes of metrics, beside ClassKey, OutcomeKey, ViaKey and ReasonKey.
const (
	HowKey     = attribute.Key("anteroom.call.how")
	CheckKey   = attribute.Key("anteroom.check")
	FindingKey = attribute.Key("anteroom.finding")
	KindKey    = attribute.Key("anteroom.event.kind")
)

// Counter is what Metrics reads at each collection; *anteroom.Manager implements it.
type Counter interface {
	Counts() map[string]observe.Count
}

// Metrics reports to OpenTelemetry what package metrics exports to Prometheus without Detail. Create it with NewMetrics,
// set it as the Managers' Observer, and Attach them. Managers may share it: values are then sums, except for the ages,
// which are maxima. All methods are safe for concurrent use; it must not be copied.
type Metrics struct {
	instruments
	registration metric.Registration
	classes      facts.Classes[*class]
	sources      facts.Sources

	commandOutcomes options[string]
	foundBy         options[string] // by finding
	kinds           options[observe.EventKind]
	labels          observe.LabelSets
}

// options are the attributes of each value, made in advance: an observer method allocates none.
type options[K comparable] map[K][]metric.AddOption

// class has the attributes of one lock class.
type class struct {
	all                metric.MeasurementOption // the class alone
	measured           []metric.RecordOption    // all
	attempts, renewals options[observe.Outcome]
	calls, alerts      options[string]
	losses             options[observe.LossReason]
}

// NewMetrics returns a Metrics that reports to provider, nil for the global one, or the provider's error. Until Close the
// provider keeps it.
func NewMetrics(provider metric.MeterProvider) (*Metrics, error) {
	if provider == nil {
		provider = otel.GetMeterProvider()
	}
	meter := provider.Meter(ScopeName, metric.WithInstrumentationVersion(version()))
	i, err := newInstruments(meter)
	if err != nil {
		return nil, err
	}
	m := &Metrics{instruments: i, labels: observe.Labels()}
	m.classes.Init(facts.MaxClasses, m.newClass)
	m.commandOutcomes = optionsOf(OutcomeKey, m.labels.CommandOutcomes)
	m.foundBy = optionsOf(FindingKey, m.labels.Findings)
	m.kinds = optionsOf(KindKey, m.labels.Events)
	m.registration, err = meter.RegisterCallback(m.collect, m.held, m.waiters, m.oldestHold, m.oldestWait, m.managers)
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Close ends what Attach began: the provider asks the attached Managers no more. Observer methods still count.
func (m *Metrics) Close() error { return m.registration.Unregister() }

// Attach includes c's locks and waiters from the next collection on. Attaching twice has no further effect. c must be
// comparable, as pointers are. A nil c panics.
func (m *Metrics) Attach(c Counter) {
	if c == nil {
		panic("anteroomotel: Attach(nil)")
	}
	m.sources.Attach(c)
}

// Detach removes c from the next collection on, if it is attached.
func (m *Metrics) Detach(c Counter) { m.sources.Detach(c) }

// newClass makes the attributes of a class.
func (m *Metrics) newClass(label string) *class {
	name := ClassKey.String(label)
	all := metric.WithAttributeSet(attribute.NewSet(name))
	c := &class{
		all: all, measured: []metric.RecordOption{all},
		attempts: options[observe.Outcome]{}, renewals: optionsOf(OutcomeKey, m.labels.Renew, name),
		calls: optionsOf(HowKey, m.labels.Calls, name), alerts: optionsOf(CheckKey, m.labels.Checks, name),
		losses: optionsOf(ReasonKey, m.labels.Losses, name),
	}
	for _, o := range m.labels.Acquire {
		outcome, via := o.AcquireLabels()
		c.attempts[o] = with(name, OutcomeKey.String(outcome), ViaKey.String(via))
	}
	return c
}

// optionsOf makes the attributes of each value of key, beside more.
func optionsOf[K ~string](key attribute.Key, values []K, more ...attribute.KeyValue) options[K] {
	all := options[K]{}
	for _, v := range values {
		all[v] = with(append(slices.Clone(more), key.String(string(v)))...)
	}
	return all
}

func with(attrs ...attribute.KeyValue) []metric.AddOption {
	return []metric.AddOption{metric.WithAttributeSet(attribute.NewSet(attrs...))}
}

// collect asks the attached Managers.
func (m *Metrics) collect(_ context.Context, o metric.Observer) error {
	counts, managers := facts.Count(&m.sources, &m.classes)
	for _, c := range m.classes.All() { // after Count, which may have added classes
		n := counts[c]
		o.ObserveInt64(m.held, int64(n.Held), c.all)
		o.ObserveInt64(m.waiters, int64(n.Waiting), c.all)
		o.ObserveFloat64(m.oldestHold, facts.Seconds(n.OldestHold), c.all)
		o.ObserveFloat64(m.oldestWait, facts.Seconds(n.OldestWait), c.all)
	}
	o.ObserveInt64(m.managers, int64(managers))
	return nil
}

// Observer returns the hooks with which Managers report to m. It is the same for all of them.
func (m *Metrics) Observer() *observe.Observer {
	return &observe.Observer{
		Acquired: func(name string, outcome observe.Outcome, wait time.Duration) {
			c := m.class(name)
			if count(m, m.attempts, c.attempts, outcome) && facts.Waited(outcome) {
				m.wait.Record(background, facts.Seconds(wait), c.measured...)
			}
		},
		Called: func(name, how string) { count(m, m.calls, m.class(name).calls, how) },
		Released: func(name string, outcome observe.Outcome, held time.Duration) {
			c := m.class(name)
			if !slices.Contains(m.labels.Release, outcome) {
				m.unknown.Add(background, 1)
			} else if facts.Ended(outcome) {
				m.hold.Record(background, facts.Seconds(held), c.measured...)
			}
		},
		Renewed: func(name string, outcome observe.Outcome, left time.Duration) {
			c := m.class(name)
			if count(m, m.renewals, c.renewals, outcome) && facts.Confirmed(outcome, left) {
				m.margin.Record(background, facts.Seconds(left), c.measured...)
			}
		},
		Lost: func(name string, reason observe.LossReason) { count(m, m.lost, m.class(name).losses, reason) },
		Command: func(_, outcome string, took time.Duration) {
			if count(m, m.commands, m.commandOutcomes, outcome) {
				m.commandTime.Record(background, facts.Seconds(took))
			}
		},
		Checked:      m.checked,
		Alert:        m.alert,
		Subscription: func(up bool) { m.subscriptions.Add(background, change(up)) },
		EventRaised: func(kind observe.EventKind, dropped bool) {
			if count(m, m.events, m.kinds, kind) && dropped {
				m.dropped.Add(background, 1)
			}
		},
	}
}

// background is the context of all measurements: a lock's hooks have no other.
var background = context.Background()

// checked counts a finding, and remembers when the connection was checked.
func (m *Metrics) checked(check, finding string) {
	found := m.foundBy[finding]
	switch {
	case facts.Health(finding, found != nil) == "" || !slices.Contains(m.labels.Checks, check):
		m.unknown.Add(background, 1)
		return
	case found != nil:
		m.findings.Add(background, 1, found...)
	}
	if check == "connection" {
		m.lastRun.Record(background, float64(time.Now().UnixNano())/1e9)
	}
}

// class returns the attributes of a class, and counts reports that go to "other".
func (m *Metrics) class(name string) *class {
	c, over := m.classes.Get(name)
	if over {
		m.over.Add(background, 1)
	}
	return c
}

// alert: The Manager clears each alert that it raised, at the latest when it is closed.
func (m *Metrics) alert(name, check string, active bool) {
	opts, known := m.class(name).alerts[check]
	if !known {
		m.unknown.Add(background, 1)
		return
	}
	m.alerts.Add(background, change(active), opts...)
}

// change is one more, or one less.
func change(up bool) int64 {
	if up {
		return 1
	}
	return -1
}

// count counts one of what, and reports whether that is one of those it can be.
func count[K comparable](m *Metrics, c metric.Int64Counter, of options[K], what K) bool {
	opts, known := of[what]
	if !known {
		m.unknown.Add(background, 1)
		return false
	}
	c.Add(background, 1, opts...)
	return true
}
