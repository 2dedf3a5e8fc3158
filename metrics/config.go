package metrics

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/anteroom/anteroom/metrics/internal/facts"
	anteroom "github.com/anteroom/anteroom/sync"
)

// Limits and defaults of Config.
const (
	defaultNamespace = "anteroom"
	maxClasses       = 1000
	// maxBuckets bounds the series of a histogram: each bucket is one more for each class or command.
	maxBuckets = 100
)

// The resolution of native histograms and its bounds. Without the two bounds a histogram would grow with the spread
// of its values.
const (
	nativeFactor     = 1.1
	nativeMaxBuckets = 160
	nativeMinReset   = time.Hour
)

// Config configures a Collector. The zero value is ready to use.
type Config struct {
	// Namespace is the prefix of all metric names: a letter or '_', then letters, digits and '_'. Defaults to
	// "anteroom".
	Namespace string

	// ConstLabels are added to every series. Use them to distinguish two Collectors of one registry, for example
	// {"redis": "eu"}; labels of the whole process belong in the scrape configuration. A name obeys the rule of
	// Namespace, must not begin with "__", and must not be a label of the metrics. Defaults to none.
	ConstLabels prometheus.Labels

	// Detail adds what only debugging needs: releases_total, watchdog_checks_total, recoveries_total, goroutines, all of
	// watchdog_last_run_timestamp_seconds, commands by name, more classic buckets, and every counter as 0 before its
	// first event. Alert rules and the overview dashboard need none of it. Defaults to false.
	Detail bool

	// WaitBuckets are the upper bounds, in seconds, of the classic buckets of acquire_wait_seconds: at most 100, positive,
	// finite and increasing. Each costs one series per class. A server that scrapes native histograms drops them, and
	// has quantiles with an error of about 5 %. Defaults to the powers of ten from 1 ms to 100 s; with Detail to 22 bounds
	// from 1 µs, a hand-off within the process, to 1 minute.
	WaitBuckets []float64

	// HoldBuckets are the same for hold_seconds. Defaults to the powers of ten from 10 ms to 1000 s; with Detail to 18
	// bounds from 10 µs to 1 hour.
	HoldBuckets []float64

	// MarginBuckets are the same for renewal_margin_seconds. Defaults to 1, 5 and 15 s, which tell apart the margins of leases
	// up to the default of 30 s; with Detail to 18 bounds from 10 ms to 1 hour.
	MarginBuckets []float64

	// CommandBuckets are the same for redis_command_seconds; with Detail each costs one series per command. Defaults to 1,
	// 10 and 100 ms and 1 s, the default CommandTimeout; with Detail to 18 bounds from 50 µs to 1 minute.
	CommandBuckets []float64

	// MaxClasses is how many lock classes (LockConfig.Name) get series of their own, in order of appearance; later
	// ones are counted as class "other". It bounds the cost to Prometheus of a program that names locks after keys by
	// mistake. From 1 to 1000. Defaults to 100.
	MaxClasses int
}

// The buckets with Detail suit what each histogram measures: adjacent bounds differ by at most a factor of five, and are
// densest where most values are. normal copies them, so nothing writes to them.
var (
	// A hand-off takes a microsecond, an acquire over a local network 0.1 ms, and a waiter waits as long as the work
	// takes.
	detailedWaits = []float64{
		1e-6, 5e-6, 2e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60,
	}
	detailedHolds = []float64{
		1e-5, 5e-5, 2.5e-4, .001, .005, .025, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1200, 3600,
	}
	// About 60 ms remain of the shortest lease, and about 18 s of the default one.
	detailedMargins = []float64{
		.01, .05, .1, .25, .5, 1, 2, 3, 5, 7.5, 10, 15, 20, 30, 60, 300, 1200, 3600,
	}
	// Commands abandoned at the default limit of 1 s are the first beyond it.
	detailedCommands = []float64{
		5e-5, 1e-4, 2.5e-4, 5e-4, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 30, 60,
	}
)

// ownLabels are the labels that ConstLabels must not use: those of the metrics, and those with a meaning to
// Prometheus.
var ownLabels = []string{"class", "outcome", "via", "how", "reason", "check", "finding", "action", "command", "kind", "le", "quantile"}

// normal returns c with defaults filled in, or an error that wraps anteroom.ErrConfig and names field and bound. It
// copies the buckets, because histograms created later refer to them; each family copies the labels.
func (c Config) normal() (Config, error) {
	if c.Namespace == "" {
		c.Namespace = defaultNamespace
	}
	if !validName(c.Namespace) {
		return c, configError("Namespace", "is %q; use a letter or '_', then letters, digits and '_'", c.Namespace)
	}
	for name, value := range c.ConstLabels {
		switch {
		case !validName(name) || strings.HasPrefix(name, "__"):
			return c, configError("ConstLabels", "has the name %q; use a letter or '_', then letters, digits and '_', not starting with \"__\"", name)
		case slices.Contains(ownLabels, name):
			return c, configError("ConstLabels", "has the name %q, which the metrics use themselves", name)
		case !utf8.ValidString(value):
			return c, configError("ConstLabels", "has a value for %q that is not UTF-8", name)
		}
	}
	for _, b := range []struct {
		field         string
		bounds        *[]float64
		few, detailed []float64
	}{
		{"WaitBuckets", &c.WaitBuckets, facts.Waits, detailedWaits},
		{"HoldBuckets", &c.HoldBuckets, facts.Holds, detailedHolds},
		{"MarginBuckets", &c.MarginBuckets, facts.Margins, detailedMargins},
		{"CommandBuckets", &c.CommandBuckets, facts.Commands, detailedCommands},
	} {
		switch {
		case len(*b.bounds) > 0:
		case c.Detail:
			*b.bounds = b.detailed
		default:
			*b.bounds = b.few
		}
		if err := checkBuckets(b.field, *b.bounds); err != nil {
			return c, err
		}
		*b.bounds = slices.Clone(*b.bounds)
	}
	if c.MaxClasses == 0 {
		c.MaxClasses = facts.MaxClasses
	}
	if c.MaxClasses < 1 || c.MaxClasses > maxClasses {
		return c, configError("MaxClasses", "is %d; it must be from 1 to %d", c.MaxClasses, maxClasses)
	}
	return c, nil
}

// checkBuckets rejects bounds on which client_golang would panic at the first class, in the middle of a Lock.
func checkBuckets(field string, b []float64) error {
	if len(b) > maxBuckets {
		return configError(field, "has %d bounds; at most %d are allowed", len(b), maxBuckets)
	}
	last := 0.0
	for i, bound := range b {
		// A NaN is not greater than anything, so it fails here as well.
		if !(bound > last) || math.IsInf(bound, 1) {
			return configError(field, "has %v at place %d; bounds must be positive, finite and increasing", bound, i)
		}
		last = bound
	}
	return nil
}

// validName is the rule for names that every Prometheus and every query accepts unquoted.
func validName(s string) bool {
	for i, r := range s {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}

func configError(field, format string, args ...any) error {
	return fmt.Errorf("%w: metrics.Config.%s %s", anteroom.ErrConfig, field, fmt.Sprintf(format, args...))
}
