package dashboards

import (
	"fmt"
	"slices"
)

// kind is the type of a metric family.
type kind uint8

const (
	counter kind = iota
	gauge
	histogram
)

// family is what the expressions need to know about a metric: a counter must not be shown directly, a histogram has
// two forms, and a matcher for a missing label matches nothing.
type family struct {
	kind   kind
	labels []string
}

// prefix is the default of metrics.Config.Namespace. A program that uses another one changes it in the files, see
// docs/observability.md.
const prefix = "anteroom_"

// families are the metrics of docs/generated/metrics.md, without the prefix. A test compares them with what a Collector
// exports.
var families = map[string]family{
	"acquire_attempts_total": {counter, []string{"class", "outcome", "via"}},
	"acquire_wait_seconds":   {histogram, []string{"class"}},
	"calls_total":            {counter, []string{"class", "how"}},
	"hold_seconds":           {histogram, []string{"class"}},
	"releases_total":         {counter, []string{"class", "outcome"}},
	"held":                   {gauge, []string{"class"}},
	"waiters":                {gauge, []string{"class"}},
	"renewals_total":         {counter, []string{"class", "outcome"}},
	// Maximum ages, so they are not added up.
	"oldest_hold_age_seconds": {gauge, []string{"class"}},
	"oldest_wait_age_seconds": {gauge, []string{"class"}},
	// Time left on the lease when a renewal was confirmed.
	"renewal_margin_seconds": {histogram, []string{"class"}},
	"lost_total":             {counter, []string{"class", "reason"}},
	"alerts_active":          {gauge, []string{"class", "check"}},

	"redis_commands_total":                {counter, []string{"command", "outcome"}},
	"redis_command_seconds":               {histogram, []string{"command"}},
	"subscriptions_up":                    {gauge, nil},
	"watchdog_checks_total":               {counter, []string{"check", "outcome"}},
	"watchdog_findings_total":             {counter, []string{"finding"}},
	"watchdog_last_run_timestamp_seconds": {gauge, []string{"check"}},
	"recoveries_total":                    {counter, []string{"action", "outcome"}},
	"events_total":                        {counter, []string{"kind"}},
	"events_dropped_total":                {counter, nil},
	"goroutines":                          {gauge, nil},
	"managers":                            {gauge, nil},
	"class_overflows_total":               {counter, nil},
	"unrecognized_reports_total":          {counter, nil},
}

// mustBe returns the family of that name and kind. Any other is a mistake in this package, so it panics; the tests
// generate every dashboard.
func mustBe(name string, k kind) family {
	f, ok := families[name]
	if !ok || f.kind != k {
		panic(fmt.Sprintf("dashboards: %s is not a metric of kind %d", name, k))
	}
	return f
}

func (f family) has(label string) bool { return slices.Contains(f.labels, label) }
