package anteroomotel

import (
	"errors"

	"go.opentelemetry.io/otel/metric"

	"github.com/anteroom/anteroom/metrics/internal/facts"
)

// instruments are what a Metrics reports. docs/reference/metrics.md has their names beside those of Prometheus.
type instruments struct {
	attempts, calls, renewals, lost metric.Int64Counter
	commands, findings              metric.Int64Counter
	events, dropped, over, unknown  metric.Int64Counter
	wait, hold, margin, commandTime metric.Float64Histogram
	alerts, subscriptions           metric.Int64UpDownCounter
	lastRun                         metric.Float64Gauge
	held, waiters, managers         metric.Int64ObservableUpDownCounter
	oldestHold, oldestWait          metric.Float64ObservableGauge
}

// maker creates instruments and collects what goes wrong.
type maker struct {
	metric.Meter
	errs []error
}

// made returns what was made, and keeps err.
func made[T any](m *maker, instrument T, err error) T {
	m.errs = append(m.errs, err)
	return instrument
}

func (m *maker) counter(name, unit, about string) metric.Int64Counter {
	c, err := m.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(about))
	return made(m, c, err)
}

func (m *maker) upDown(name, unit, about string) metric.Int64UpDownCounter {
	c, err := m.Int64UpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(about))
	return made(m, c, err)
}

func (m *maker) seconds(name, about string, bounds []float64) metric.Float64Histogram {
	h, err := m.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(about), metric.WithExplicitBucketBoundaries(bounds...))
	return made(m, h, err)
}

func (m *maker) sum(name, unit, about string) metric.Int64ObservableUpDownCounter {
	c, err := m.Int64ObservableUpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(about))
	return made(m, c, err)
}

func (m *maker) age(name, about string) metric.Float64ObservableGauge {
	g, err := m.Float64ObservableGauge(name, metric.WithUnit("s"), metric.WithDescription(about))
	return made(m, g, err)
}

// newInstruments creates all of them.
func newInstruments(meter metric.Meter) (instruments, error) {
	m := &maker{Meter: meter}
	lastRun, err := m.Float64Gauge("anteroom.watchdog.last_run", metric.WithUnit("s"), metric.WithDescription("Time of the last check of the connection, in seconds since 1970."))
	i := instruments{
		attempts:      m.counter("anteroom.acquire.attempts", "{attempt}", "Completed attempts to acquire a lock, by outcome and by what granted it."),
		wait:          m.seconds("anteroom.acquire.wait", "Wait of the attempts that acquired the lock, except re-entries.", facts.Waits),
		calls:         m.counter("anteroom.calls", "{call}", "Times that Redis gave a lock to this process in line for it, by how the process learned that."),
		hold:          m.seconds("anteroom.hold.duration", "Time from acquiring a lock to releasing it, except nested holds.", facts.Holds),
		renewals:      m.counter("anteroom.renewals", "{renewal}", "Renewals that were answered or failed, by outcome."),
		margin:        m.seconds("anteroom.renewal.margin", "Time left on the lease when a renewal was confirmed. 0 means a lost lock.", facts.Margins),
		lost:          m.counter("anteroom.lost", "{lock}", "Lost locks, by reason."),
		alerts:        m.upDown("anteroom.alerts", "{alert}", "Watchdog alerts raised and not yet cleared."),
		held:          m.sum("anteroom.held", "{lock}", "Locks held by the attached Managers."),
		waiters:       m.sum("anteroom.waiters", "{caller}", "Callers waiting for a lock in the attached Managers."),
		oldestHold:    m.age("anteroom.oldest_hold.age", "Age of the oldest hold, 0 if nothing is held."),
		oldestWait:    m.age("anteroom.oldest_wait.age", "Age of the longest wait, 0 if nobody waits."),
		commands:      m.counter("anteroom.redis.commands", "{command}", "Commands to Redis that were completed or abandoned, by outcome."),
		commandTime:   m.seconds("anteroom.redis.command.duration", "Time until commands to Redis were completed or abandoned, with any outcome.", facts.Commands),
		subscriptions: m.upDown("anteroom.subscriptions", "{connection}", "Subscription connections to Redis that are up: one for each Manager that needed one."),
		managers:      m.sum("anteroom.managers", "{manager}", "Attached Managers."),
		findings:      m.counter("anteroom.watchdog.findings", "{finding}", "Findings of unhealthy checks."),
		lastRun:       made(m, lastRun, err),
		events:        m.counter("anteroom.events", "{event}", "Events raised, including those dropped later."),
		dropped:       m.counter("anteroom.dropped_events", "{event}", "Events delivered neither to the log nor to OnEvent, because the queue was full."),
		over:          m.counter("anteroom.class_overflows", "{report}", "Reports counted as class \"other\", because there are more than 100 classes."),
		unknown:       m.counter("anteroom.unrecognized_reports", "{report}", "Reports with a value outside the documented sets, counted nowhere else."),
	}
	return i, errors.Join(m.errs...)
}
