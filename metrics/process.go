package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	anteroom "github.com/anteroom/anteroom/sync"
)

// pair is a combination of two label values, as a key.
type pair struct{ a, b string }

// processSeries are the series without a class. All of them exist from New on (I1);
// the maps are never written afterwards, so they are read without a lock.
type processSeries struct {
	resolved

	// Every command of commands (by command and outcome) has its times.
	commands     map[pair]prometheus.Counter
	commandTimes map[string]prometheus.Observer

	// Every check of checks (by check and health) has its last run. recoveries are by
	// action and outcome.
	checks     map[pair]prometheus.Counter
	findings   map[string]prometheus.Counter
	lastRuns   map[string]prometheus.Gauge
	recoveries map[pair]prometheus.Counter

	subscriptions prometheus.Gauge
	events        map[anteroom.EventKind]prometheus.Counter
	dropped       prometheus.Counter

	overflows    prometheus.Counter
	unrecognized prometheus.Counter
}

// The healths of a check, as the label outcome shows them. Checked tells the first
// and the last by these words, the second by a finding.
const (
	healthy   = "healthy"
	unhealthy = "unhealthy"
	unknown   = "unknown"
)

// newProcessSeries makes the families without a class and all of their series.
func newProcessSeries(f *factory) processSeries {
	var p processSeries
	p.makeCommands(f)
	p.makeWatchdog(f)
	p.subscriptions = p.gauge(f.gauges("subscriptions_up", "Subscription connections to Redis that are up, one for each Manager that has needed one."))

	p.events = map[anteroom.EventKind]prometheus.Counter{}
	events := f.counters("events_total", "Events raised, those included that were dropped later.", "kind")
	for _, k := range anteroom.EventKinds() {
		p.events[k] = p.counter(events, string(k))
	}
	p.dropped = p.counter(f.counters("events_dropped_total", "Events that neither the log nor OnEvent got, because too many were waiting."))
	p.overflows = p.counter(f.counters("class_overflows_total", "Reports that were counted as class \"other\", because there are more classes than MaxClasses."))
	p.unrecognized = p.counter(f.counters("unrecognized_reports_total", "Reports with a label value outside of the documented sets, which are counted nowhere else."))
	return p
}

// makeCommands counts by outcome and measures by command only: a histogram is some
// twenty series, so one for each outcome as well would be most of what is exported.
func (p *processSeries) makeCommands(f *factory) {
	p.commands = map[pair]prometheus.Counter{}
	p.commandTimes = map[string]prometheus.Observer{}
	commands := f.counters("redis_commands_total", "Commands to Redis that ended or were abandoned.", "command", "outcome")
	times := f.histograms("redis_command_seconds", "How long commands to Redis took until the caller was free, whatever came of them.", f.cfg.CommandBuckets, "command")
	for _, name := range anteroom.CommandNames() {
		p.commandTimes[name] = p.histogram(times, name)
		for _, o := range anteroom.CommandOutcomes() {
			p.commands[pair{name, o}] = p.counter(commands, name, o)
		}
	}
}

// makeWatchdog makes what tells that the watchdog is alive, what it sees and what it
// does about that.
func (p *processSeries) makeWatchdog(f *factory) {
	p.checks = map[pair]prometheus.Counter{}
	p.lastRuns = map[string]prometheus.Gauge{}
	checks := f.counters("watchdog_checks_total", "Checks that the watchdog made.", "check", "outcome")
	lastRuns := f.gauges("watchdog_last_run_timestamp_seconds", "When a check was made last, in seconds since 1970. 0: not yet.", "check")
	for _, name := range anteroom.CheckNames() {
		p.lastRuns[name] = p.gauge(lastRuns, name)
		for _, h := range []string{healthy, unhealthy, unknown} {
			p.checks[pair{name, h}] = p.counter(checks, name, h)
		}
	}
	// A finding belongs to one check, so the check is no label here: it would only add
	// series that can never count.
	p.findings = map[string]prometheus.Counter{}
	findings := f.counters("watchdog_findings_total", "What unhealthy checks found.", "finding")
	for _, name := range anteroom.FindingNames() {
		p.findings[name] = p.counter(findings, name)
	}
	p.recoveries = map[pair]prometheus.Counter{}
	recoveries := f.counters("recoveries_total", "Actions of the watchdog, each counted once, when it is known what came of it.", "action", "outcome")
	for _, a := range anteroom.ActionNames() {
		for _, o := range anteroom.RecoveryOutcomes() {
			p.recoveries[pair{a, o}] = p.counter(recoveries, a, o)
		}
	}
}
