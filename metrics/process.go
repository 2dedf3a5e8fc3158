package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/anteroom/anteroom/metrics/internal/facts"
	"github.com/anteroom/anteroom/sync/observe"
)

// pair is a combination of two label values, as a key.
type pair struct{ a, b string }

// processSeries are the series without a class. All of them are made by New (I1); the maps are never written
// afterwards, so they are read without a lock.
type processSeries struct {
	resolved

	// commands are by command and outcome, commandTimes by command.
	commands     map[pair]prometheus.Counter
	commandTimes map[string]prometheus.Observer

	// checks are by check and health, lastRuns by check, recoveries by action and outcome.
	checks     map[pair]prometheus.Counter
	findings   map[string]prometheus.Counter
	lastRuns   map[string]prometheus.Gauge
	recoveries map[pair]prometheus.Counter

	subscriptions prometheus.Gauge
	events        map[observe.EventKind]prometheus.Counter
	dropped       prometheus.Counter

	overflows    prometheus.Counter
	unrecognized prometheus.Counter
}

// newProcessSeries creates the families without a class and all of their series.
func newProcessSeries(f *factory) processSeries {
	p := processSeries{resolved: resolved{detail: f.cfg.Detail}}
	p.makeCommands(f)
	p.makeWatchdog(f)
	p.subscriptions = p.gauge(always, f.gauges("subscriptions_up", "Subscription connections to Redis that are up: one for each Manager that needed one."))

	labels := observe.Labels()
	p.events = map[observe.EventKind]prometheus.Counter{}
	events := f.counters("events_total", "Events raised, including those dropped later.", "kind")
	for _, k := range labels.Events {
		alerts := k == observe.EventReleaseGivenUp || k == observe.EventSelfDeadlock || k == observe.EventDeadlock
		p.events[k] = p.counter(occurred.unless(alerts), events, string(k))
	}
	p.dropped = p.counter(always, f.counters("events_dropped_total", "Events delivered neither to the log nor to OnEvent, because the queue was full."))
	p.overflows = p.counter(occurred, f.counters("class_overflows_total", "Reports counted as class \"other\", because there are more than MaxClasses classes."))
	p.unrecognized = p.counter(occurred, f.counters("unrecognized_reports_total", "Reports with a label value outside the documented sets, counted nowhere else."))
	return p
}

// makeCommands counts by outcome, with Detail by command as well. It measures by command at most: a histogram for each
// outcome would be most of what is exported.
func (p *processSeries) makeCommands(f *factory) {
	labels := observe.Labels()
	p.commands = map[pair]prometheus.Counter{}
	p.commandTimes = map[string]prometheus.Observer{}
	var command []string // the label
	if f.cfg.Detail {
		command = []string{"command"}
	}
	commands := f.counters("redis_commands_total", "Commands to Redis that were completed or abandoned, by outcome.", append(command, "outcome")...)
	times := f.histograms("redis_command_seconds", "Time until commands to Redis were completed or abandoned, with any outcome.", f.cfg.CommandBuckets, command...)
	for _, name := range labels.Commands {
		var value []string
		if f.cfg.Detail {
			value = []string{name}
		}
		p.commandTimes[name] = p.histogram(times, value...)
		for _, o := range labels.CommandOutcomes {
			p.commands[pair{name, o}] = p.counter(occurred.unless(o == "ok"), commands, append(value, o)...)
		}
	}
}

// makeWatchdog creates the series that show that the watchdog is alive, what it finds and what it does about it.
func (p *processSeries) makeWatchdog(f *factory) {
	labels := observe.Labels()
	p.checks = map[pair]prometheus.Counter{}
	p.lastRuns = map[string]prometheus.Gauge{}
	checks := f.counters("watchdog_checks_total", "Watchdog checks, by outcome.", "check", "outcome")
	lastRuns := f.gauges("watchdog_last_run_timestamp_seconds", "Time of the last run of a check, in seconds since 1970. 0 if none yet.", "check")
	for _, name := range labels.Checks {
		p.lastRuns[name] = p.gauge(detailed.unless(name == "connection"), lastRuns, name)
		for _, h := range []string{facts.Healthy, facts.Unhealthy, facts.Unknown} {
			p.checks[pair{name, h}] = p.counter(detailed, checks, name, h)
		}
	}
	// A finding belongs to one check, so check is not a label here: it would only add series that stay 0.
	p.findings = map[string]prometheus.Counter{}
	findings := f.counters("watchdog_findings_total", "Findings of unhealthy checks.", "finding")
	alerts := []string{"foreign_field", "wrong_count", "ttl_missing", "ttl_too_long", "holder_gone", "holder_unreachable", "over_max_hold"}
	for _, name := range labels.Findings {
		p.findings[name] = p.counter(occurred.unless(slices.Contains(alerts, name)), findings, name)
	}
	p.recoveries = map[pair]prometheus.Counter{}
	recoveries := f.counters("recoveries_total", "Recovery actions of the watchdog, each counted once its outcome is known.", "action", "outcome")
	for _, a := range labels.Actions {
		for _, o := range labels.RecoveryOutcomes {
			p.recoveries[pair{a, o}] = p.counter(detailed, recoveries, a, o)
		}
	}
}
