package facts

import (
	"time"

	"github.com/anteroom/anteroom/sync/observe"
)

// Few bounds of histograms, in seconds. Those of margins tell apart what is left of leases up to the default of 30 s.
// Commands beyond the last bound were abandoned at the default limit.
var (
	Waits    = []float64{.001, .01, .1, 1, 10, 100}
	Holds    = []float64{.01, .1, 1, 10, 100, 1000}
	Margins  = []float64{1, 5, 15}
	Commands = []float64{.001, .01, .1, 1}
)

// MaxClasses is how many classes are told apart by default.
const MaxClasses = 100

// The healths of a check, as the label outcome shows them. A hook gets the first and the last as these words, and the
// second as a finding.
const (
	Healthy   = "healthy"
	Unhealthy = "unhealthy"
	Unknown   = "unknown"
)

// Health returns the health of a check that found finding, which is one of observe.LabelSets.Findings or not; "" if no
// check can have found that.
func Health(finding string, known bool) string {
	switch {
	case known:
		return Unhealthy
	case finding == Healthy, finding == Unknown:
		return finding
	}
	return ""
}

// Waited reports whether the wait of an attempt is measured. A re-entry never waits, and a cancelled wait measures the
// caller's patience, not the lock; either would distort the mean.
func Waited(o observe.Outcome) bool {
	return o == observe.OutcomeGranted || o == observe.OutcomeHandedOff
}

// Ended reports whether a release ends the tenure, whose duration is then measured, even if the lock had been lost
// meanwhile: its owner worked all that time. A nested release does not end it.
func Ended(o observe.Outcome) bool { return o != observe.OutcomeNested }

// Confirmed reports whether a renewal found a margin, left, which is measured.
func Confirmed(o observe.Outcome, left time.Duration) bool {
	return o == observe.OutcomeRenewed && left >= 0
}

// Seconds converts a duration to measure. Two clock readings in the wrong order can give a negative one, which would
// make the histogram's sum fall; a server would take that for a restart.
func Seconds(d time.Duration) float64 { return max(d, 0).Seconds() }
