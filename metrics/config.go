package metrics

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	anteroom "github.com/anteroom/anteroom/sync"
)

// Limits and defaults of Config.
const (
	defaultNamespace = "anteroom"
	defaultClasses   = 100
	maxClasses       = 1000
	// maxBuckets bounds the series of a histogram: each bucket is one more for each
	// class or command.
	maxBuckets = 100
)

// The native histograms' resolution and its bounds. Without the two bounds a
// histogram would grow with the spread of what it is told.
const (
	nativeFactor     = 1.1
	nativeMaxBuckets = 160
	nativeMinReset   = time.Hour
)

// Config configures a Collector. The zero value is ready to use.
type Config struct {
	// Namespace is the prefix of all metric names, a letter or '_' followed by
	// letters, digits and '_'. Defaults to "anteroom".
	Namespace string

	// ConstLabels are added to every series. Use them to tell two Collectors of one
	// registry apart, for example {"redis": "eu"}; what is the same for the whole
	// process belongs into the scrape configuration instead. A name follows the rule of
	// Namespace, must not begin with "__", and must not be a label of the metrics.
	// Defaults to none.
	ConstLabels prometheus.Labels

	// Buckets are the upper bounds, in seconds, of the histograms of waits and
	// commands: at most 100, positive, finite and increasing. Each one costs a series
	// per class and per command. Defaults to fifteen from 0.5 ms to 30 s.
	Buckets []float64

	// LongBuckets are the same for what lasts as long as work does: the hold times, and
	// what was left of a lease. Defaults to eighteen from 1 ms to 1 hour.
	LongBuckets []float64

	// NativeHistograms adds Prometheus' native histograms to the classic ones. They
	// show quantiles with an error of some 5 %, or more where 160 buckets do not span
	// what was seen, and need a server that scrapes them. Such a server stores no classic
	// buckets by default, so queries have to ask for either: docs/metrics.md has them
	// all in that form. Defaults to false.
	NativeHistograms bool

	// MaxClasses is how many lock classes (LockConfig.Name) get series of their own,
	// in the order in which they appear; what comes later is counted as class "other".
	// It bounds what a program can cost its Prometheus that names locks after keys by
	// mistake: a class is about 90 series. From 1 to 1000. Defaults to 100.
	MaxClasses int
}

// defaultBuckets and defaultLongBuckets return new slices, because a caller of New
// never shares a slice with a Collector.
func defaultBuckets() []float64 {
	return []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
}

func defaultLongBuckets() []float64 {
	return []float64{.001, .005, .01, .05, .1, .25, .5, 1, 2.5, 5, 10, 15, 20, 30, 60, 300, 1800, 3600}
}

// ownLabels are the labels that ConstLabels must not use: those of the metrics, and
// those that Prometheus gives a meaning.
var ownLabels = []string{"class", "outcome", "via", "reason", "check", "finding", "action", "command", "kind", "le", "quantile"}

// normal returns c with its defaults filled in, or an error that wraps
// anteroom.ErrConfig and names field and bound. The buckets are copied, because
// histograms that are made later refer to them; labels are copied by each family.
func (c Config) normal() (Config, error) {
	if c.Namespace == "" {
		c.Namespace = defaultNamespace
	}
	if !validName(c.Namespace) {
		return c, configError("Namespace", "is %q; use a letter or '_' followed by letters, digits and '_'", c.Namespace)
	}
	for name, value := range c.ConstLabels {
		switch {
		case !validName(name) || strings.HasPrefix(name, "__"):
			return c, configError("ConstLabels", "has the name %q; use a letter or '_' followed by letters, digits and '_', and not \"__\" in front", name)
		case slices.Contains(ownLabels, name):
			return c, configError("ConstLabels", "has the name %q, which the metrics use themselves", name)
		case !utf8.ValidString(value):
			return c, configError("ConstLabels", "has a value for %q that is not UTF-8", name)
		}
	}
	var err error
	if c.Buckets, err = normalBuckets("Buckets", c.Buckets, defaultBuckets); err != nil {
		return c, err
	}
	if c.LongBuckets, err = normalBuckets("LongBuckets", c.LongBuckets, defaultLongBuckets); err != nil {
		return c, err
	}
	if c.MaxClasses == 0 {
		c.MaxClasses = defaultClasses
	}
	if c.MaxClasses < 1 || c.MaxClasses > maxClasses {
		return c, configError("MaxClasses", "is %d; it must be from 1 to %d", c.MaxClasses, maxClasses)
	}
	return c, nil
}

// normalBuckets checks bounds, which client_golang would meet with a panic at the first
// class, in the middle of somebody's Lock.
func normalBuckets(field string, b []float64, defaults func() []float64) ([]float64, error) {
	if len(b) == 0 {
		return defaults(), nil
	}
	if len(b) > maxBuckets {
		return nil, configError(field, "has %d bounds; at most %d are allowed", len(b), maxBuckets)
	}
	last := 0.0
	for i, bound := range b {
		// A NaN is not greater than anything, so it fails here as well.
		if !(bound > last) || math.IsInf(bound, 1) {
			return nil, configError(field, "has %v at place %d; bounds must be positive, finite and increasing", bound, i)
		}
		last = bound
	}
	return slices.Clone(b), nil
}

// validName is the rule for names that every Prometheus and every query accepts
// without quotes.
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
