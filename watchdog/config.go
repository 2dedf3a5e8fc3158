package watchdog

import (
	"cmp"
	"time"

	"github.com/anteroom/anteroom/internal/goroutines"
)

const (
	defaultPeriod         = 5 * time.Second
	defaultCommandTimeout = time.Second
	defaultAlertThreshold = 2
	defaultScanEvery      = 30 * time.Second
	// ticksPerPeriod spreads the holds over their period. A tick costs one pass
	// over all holds, so it is not finer than the promise needs.
	ticksPerPeriod = 10
	minTick        = 50 * time.Millisecond
	// breath is the least time between two rounds: moments that are so near share one.
	breath = 5 * time.Millisecond
)

// Config is what a Watchdog needs. Source, Prober and Actor are required; of all
// else the zero value works.
//
// The callbacks are called by the Watchdog's goroutine, one at a time. They must
// return immediately and must not call Stop, which waits for that goroutine; Verdicts is
// allowed. A nil callback is left out. Where a callback speaks of the
// whole process and not of a hold, its Facts have ID 0.
type Config struct {
	// Source, Prober and Actor are what the Watchdog reads, asks and acts through.
	Source Source
	Prober Prober
	Actor  Actor

	// Period is how often the connection and the process as a whole are checked. A
	// shorter one notices sooner and asks Redis more often. A hold's own period may be
	// shorter: it is noticed within a tenth of this one and then kept. Defaults to 5
	// seconds; the finest tick is 50 ms.
	Period time.Duration
	// CommandTimeout bounds each question to Redis. Defaults to 1 second.
	CommandTimeout time.Duration
	// AlertThreshold is the number of failures in a row that makes an alert about the
	// whole process. Defaults to 2.
	AlertThreshold int
	// HolderScanEvery is the least time between two goroutine scans, each of which
	// stops all goroutines for a moment (about 60 ms for 10,000). Negative: never scan.
	// Defaults to 30 seconds.
	HolderScanEvery time.Duration

	// OnVerdict is called for each verdict, the good ones included.
	OnVerdict func(Facts, Verdict)
	// OnAlert is called once when a check has failed AlertThreshold times in a row.
	OnAlert func(f Facts, c Check, failures int)
	// OnClear is called once for each alert: when the check is healthy again, the
	// hold has ended, its owner has changed, or the Watchdog stops.
	OnClear func(Facts, Check)
	// OnRecovery is called when an action is taken or a finding only reported, and again, once for each
	// that was taken, when it is known what came of it, or that this will not be known. The
	// verdict's Finding is what the action is about, also when it helped. A finding that
	// lasts is reported once, so this suits an event.
	OnRecovery func(f Facts, v Verdict, action string, outcome RecoveryOutcome)
	// OnSelfLate is called when the Watchdog's own tick came late by that much.
	OnSelfLate func(late time.Duration)

	// For tests: the goroutine scan, and the wall clock.
	scan func(now time.Time, asked []int64) Goroutines
	wall func(now time.Time) time.Time
}

// withDefaults returns the Config with every zero value replaced.
func (c Config) withDefaults() Config {
	c.Period = cmp.Or(max(c.Period, 0), defaultPeriod)
	c.CommandTimeout = cmp.Or(max(c.CommandTimeout, 0), defaultCommandTimeout)
	c.AlertThreshold = cmp.Or(max(c.AlertThreshold, 0), defaultAlertThreshold)
	c.HolderScanEvery = cmp.Or(c.HolderScanEvery, defaultScanEvery)
	if c.OnVerdict == nil {
		c.OnVerdict = func(Facts, Verdict) {}
	}
	if c.OnAlert == nil {
		c.OnAlert = func(Facts, Check, int) {}
	}
	if c.OnClear == nil {
		c.OnClear = func(Facts, Check) {}
	}
	if c.OnRecovery == nil {
		c.OnRecovery = func(Facts, Verdict, string, RecoveryOutcome) {}
	}
	if c.OnSelfLate == nil {
		c.OnSelfLate = func(time.Duration) {}
	}
	if c.scan == nil {
		c.scan = goroutines.Inspect
	}
	if c.wall == nil {
		c.wall = func(now time.Time) time.Time { return now.Round(0) }
	}
	return c
}

// tickFor returns how often a loop turns whose shortest period is p.
func tickFor(p time.Duration) time.Duration { return max(p/ticksPerPeriod, minTick) }

// selfLateAfter returns how late a tick may come before the Watchdog suspects
// itself instead of the holders. Below a quarter of a second any busy machine is
// late now and then.
func selfLateAfter(period time.Duration) time.Duration { return max(period/2, 250*time.Millisecond) }
