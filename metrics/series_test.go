package metrics_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/anteroom/anteroom/metrics"
	"github.com/anteroom/anteroom/sync/observe"
)

// No possible report creates a series that was not there before: so each existed before its first event.
func TestMetrics_I1_EverySeriesExistsBeforeItsFirstEvent(t *testing.T) {
	c, r := newCollector(t, metrics.Config{Detail: true})
	atStart, _ := gather(t, r)
	for name, s := range atStart {
		if strings.Contains(name, "class=") {
			t.Errorf("%s exists, though no class is known", name)
		}
		if s.value != 0 && name != "anteroom_goroutines" {
			t.Errorf("%s begins with %v", name, s.value)
		}
	}
	if len(atStart) == 0 {
		t.Fatal("nothing exists at the start")
	}

	c.Attach(&counts{"orders": {}}) // the class is known, and nothing has happened
	before, _ := gather(t, r)
	for name, s := range before {
		if strings.Contains(name, `class="orders"`) && (s.value != 0 || s.count != 0) {
			t.Errorf("%s begins with %v", name, s)
		}
	}
	everything(c.Observer(), "orders")
	after, _ := gather(t, r)
	for name, s := range after {
		if _, ok := before[name]; !ok {
			t.Errorf("%s came only with its first event", name)
		}
		if strings.Contains(name, "_total") && s.value == 0 && !strings.Contains(name, "overflows") && !strings.Contains(name, "unrecognized") {
			t.Errorf("%s can never count", name)
		}
	}
	want(t, r, map[string]float64{"anteroom_unrecognized_reports_total": 0, "anteroom_class_overflows_total": 0})
}

func TestMetrics_I5_UnrecognizedReportsMakeNoSeries(t *testing.T) {
	c, r := newCollector(t, metrics.Config{Detail: true})
	c.Attach(&counts{"orders": {}})
	before, _ := gather(t, r)
	reports := []func(){
		func() { c.Observer().Acquired("orders", "perhaps", 1) },
		func() { c.Observer().Acquired("orders", "acquired", 1) },
		func() { c.Observer().Acquired("orders", observe.OutcomeRenewed, 1) },
		func() { c.Observer().Called("orders", "perhaps") },
		func() { c.Observer().Released("orders", "perhaps", 1) },
		func() { c.Observer().Renewed("orders", "perhaps", 1) },
		func() { c.Observer().Lost("orders", "perhaps") },
		func() { c.Observer().Alert("orders", "perhaps", true) },
		func() { c.Observer().Command("flushall", "ok", 1) },
		func() { c.Observer().Command("ping", "perhaps", 1) },
		func() { c.Observer().Checked("perhaps", "healthy") },
		func() { c.Observer().Checked("renewal", "perhaps") },
		func() { c.Observer().Checked("renewal", "unhealthy") },
		func() { c.Observer().Checked("perhaps", "field_gone") },
		func() { c.Observer().Recovered("renewal", "perhaps", "helped") },
		func() { c.Observer().Recovered("renewal", "report", "perhaps") },
		func() { c.Observer().EventRaised("perhaps", true) },
	}
	for i, report := range reports {
		report()
		want(t, r, map[string]float64{"anteroom_unrecognized_reports_total": float64(i + 1)})
	}
	after, _ := gather(t, r)
	for name, s := range after {
		if name == "anteroom_goroutines" || name == "anteroom_unrecognized_reports_total" {
			continue
		}
		if old, ok := before[name]; !ok || old != s {
			t.Errorf("%s was %v and is %v", name, old, s)
		}
	}
}

func TestMetrics_I6_TwoCollectorsInOneRegistry(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	configs := []metrics.Config{
		{},
		{Namespace: "billing_locks"},
		{Namespace: "shop", ConstLabels: prometheus.Labels{"redis": "eu"}},
		{Namespace: "shop", ConstLabels: prometheus.Labels{"redis": "us"}},
	}
	var collectors []*metrics.Collector
	for _, cfg := range configs {
		c, err := metrics.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Register(c); err != nil {
			t.Fatalf("%+v: %v", cfg, err)
		}
		collectors = append(collectors, c)
	}
	collectors[2].Observer().Lost("orders", observe.LostGone)
	collectors[1].Attach(&counts{"orders": {Held: 3}})
	want(t, r, map[string]float64{
		`shop_lost_total{class="orders",reason="gone",redis="eu"}`: 1,
		`billing_locks_held{class="orders"}`:                       3,
		`shop_managers{redis="us"}`:                                0,
	})
	all, _ := gather(t, r)
	for name := range all {
		if strings.HasPrefix(name, "anteroom_lost") || strings.Contains(name, `class="orders"`) && strings.Contains(name, `redis="us"`) {
			t.Errorf("%s shows what another collector was given", name)
		}
	}

	same, _ := metrics.New(metrics.Config{})
	if err := r.Register(same); err == nil {
		t.Error("a second collector with the same names and labels was registered")
	}
}

func TestMetrics_I7_EveryHistogramIsClassicAndNative(t *testing.T) {
	for _, detail := range []bool{false, true} {
		c, r := newCollector(t, metrics.Config{Detail: detail})
		everything(c.Observer(), "orders")
		all, types := gather(t, r)
		histograms := 0
		for name, s := range all {
			family, _, _ := strings.Cut(name, "{")
			if types[family] != "histogram" {
				continue
			}
			histograms++
			if s.buckets < 3 || detail && s.buckets < 15 || !s.native {
				t.Errorf("detail %v: %s has %d classic buckets; native: %v", detail, name, s.buckets, s.native)
			}
		}
		if want := map[bool]int{false: 4, true: 3 + len(observe.Labels().Commands)}[detail]; histograms != want {
			t.Errorf("detail %v: %d histograms", detail, histograms)
		}
	}
}

func TestMetrics_LintIsClean(t *testing.T) {
	for _, detail := range []bool{false, true} {
		c, r := newCollector(t, metrics.Config{Detail: detail, ConstLabels: prometheus.Labels{"redis": "eu"}})
		everything(c.Observer(), "orders", "default")
		for what, lint := range map[string]func() ([]string, error){
			"CollectAndLint": func() ([]string, error) { p, err := testutil.CollectAndLint(c); return problems(p), err },
			"GatherAndLint":  func() ([]string, error) { p, err := testutil.GatherAndLint(r); return problems(p), err },
		} {
			found, err := lint()
			if err != nil {
				t.Fatal(err)
			}
			if len(found) > 0 {
				t.Errorf("%s: %s", what, strings.Join(found, "; "))
			}
		}
	}
}

// A short life of two locks, and all that it exports.
func TestMetrics_ScriptedSequence(t *testing.T) {
	c, _ := newCollector(t, metrics.Config{Detail: true, WaitBuckets: []float64{.01, .1}, HoldBuckets: []float64{1, 10}, MarginBuckets: []float64{1, 10}})
	c.Observer().Acquired("orders", observe.OutcomeGranted, 5*time.Millisecond)
	c.Observer().Acquired("orders", observe.OutcomeNested, 0)
	c.Observer().Called("orders", "entered")
	c.Observer().Called("orders", "found")
	c.Observer().Called("orders", "entered")
	c.Observer().Released("orders", observe.OutcomeNested, time.Second)
	c.Observer().Acquired("orders", observe.OutcomeCancelled, time.Minute)
	c.Observer().Released("orders", observe.OutcomeHandedOff, 2*time.Second)
	c.Observer().Acquired("orders", observe.OutcomeHandedOff, 50*time.Millisecond)
	c.Observer().Renewed("orders", observe.OutcomeRenewed, 18*time.Second)
	c.Observer().Renewed("orders", observe.OutcomeFailed, 0)
	c.Observer().Renewed("orders", observe.OutcomeRenewed, 500*time.Millisecond)
	c.Observer().Alert("orders", "renewal", true)
	c.Observer().Alert("orders", "renewal", true)
	c.Observer().Alert("orders", "renewal", false)
	c.Observer().Lost("orders", observe.LostDeadline)
	c.Observer().Released("orders", observe.OutcomeLost, 20*time.Second)
	c.Observer().Released("orders", observe.OutcomeReleased, -time.Second) // two clock readings in the wrong order
	c.Observer().Checked("lock_status", "field_gone")
	c.Observer().Checked("lock_status", "healthy")
	c.Observer().Checked("lock_status", "unknown")
	c.Observer().Subscription(true)
	c.Observer().Subscription(true)
	c.Observer().Subscription(false)
	c.Observer().Command("acquire", "refused", 2*time.Millisecond)
	c.Observer().EventRaised(observe.EventLost, true)
	c.Attach(&counts{"orders": {Held: 1, Waiting: 2}})

	const expected = `
# HELP anteroom_acquire_wait_seconds Wait of the attempts that acquired the lock, except re-entries.
# TYPE anteroom_acquire_wait_seconds histogram
anteroom_acquire_wait_seconds_bucket{class="orders",le="0.01"} 1
anteroom_acquire_wait_seconds_bucket{class="orders",le="0.1"} 2
anteroom_acquire_wait_seconds_bucket{class="orders",le="+Inf"} 2
anteroom_acquire_wait_seconds_sum{class="orders"} 0.055
anteroom_acquire_wait_seconds_count{class="orders"} 2
# HELP anteroom_acquire_attempts_total Completed attempts to acquire a lock, by outcome and, if acquired, by what granted it.
# TYPE anteroom_acquire_attempts_total counter
anteroom_acquire_attempts_total{class="orders",outcome="acquired",via="handoff"} 1
anteroom_acquire_attempts_total{class="orders",outcome="acquired",via="redis"} 1
anteroom_acquire_attempts_total{class="orders",outcome="acquired",via="reentry"} 1
anteroom_acquire_attempts_total{class="orders",outcome="cancelled",via="none"} 1
anteroom_acquire_attempts_total{class="orders",outcome="failed",via="none"} 0
anteroom_acquire_attempts_total{class="orders",outcome="refused",via="none"} 0
anteroom_acquire_attempts_total{class="orders",outcome="unavailable",via="none"} 0
anteroom_acquire_attempts_total{class="orders",outcome="unknown",via="none"} 0
# HELP anteroom_alerts_active Watchdog alerts raised and not yet cleared.
# TYPE anteroom_alerts_active gauge
anteroom_alerts_active{check="connection",class="orders"} 0
anteroom_alerts_active{check="holder",class="orders"} 0
anteroom_alerts_active{check="lock_status",class="orders"} 0
anteroom_alerts_active{check="recovery",class="orders"} 0
anteroom_alerts_active{check="renewal",class="orders"} 1
# HELP anteroom_calls_total Times that Redis gave a lock to this process in line for it, by how the process learned that.
# TYPE anteroom_calls_total counter
anteroom_calls_total{class="orders",how="entered"} 2
anteroom_calls_total{class="orders",how="found"} 1
# HELP anteroom_events_dropped_total Events delivered neither to the log nor to OnEvent, because the queue was full.
# TYPE anteroom_events_dropped_total counter
anteroom_events_dropped_total 1
# HELP anteroom_held Locks held by the attached Managers.
# TYPE anteroom_held gauge
anteroom_held{class="orders"} 1
# HELP anteroom_hold_seconds Time from acquiring a lock to releasing it, except nested holds.
# TYPE anteroom_hold_seconds histogram
anteroom_hold_seconds_bucket{class="orders",le="1"} 1
anteroom_hold_seconds_bucket{class="orders",le="10"} 2
anteroom_hold_seconds_bucket{class="orders",le="+Inf"} 3
anteroom_hold_seconds_sum{class="orders"} 22
anteroom_hold_seconds_count{class="orders"} 3
# HELP anteroom_lost_total Lost locks, by reason.
# TYPE anteroom_lost_total counter
anteroom_lost_total{class="orders",reason="closed"} 0
anteroom_lost_total{class="orders",reason="deadline"} 1
anteroom_lost_total{class="orders",reason="fixed"} 0
anteroom_lost_total{class="orders",reason="forced"} 0
anteroom_lost_total{class="orders",reason="gone"} 0
anteroom_lost_total{class="orders",reason="watchdog"} 0
# HELP anteroom_managers Attached Managers.
# TYPE anteroom_managers gauge
anteroom_managers 1
# HELP anteroom_releases_total Holds that their owner released, by outcome.
# TYPE anteroom_releases_total counter
anteroom_releases_total{class="orders",outcome="handed_off"} 1
anteroom_releases_total{class="orders",outcome="lost"} 1
anteroom_releases_total{class="orders",outcome="nested"} 1
anteroom_releases_total{class="orders",outcome="released"} 1
anteroom_releases_total{class="orders",outcome="unavailable"} 0
anteroom_releases_total{class="orders",outcome="unknown"} 0
# HELP anteroom_renewal_margin_seconds Time left on the lease when a renewal was confirmed. 0 means a lost lock.
# TYPE anteroom_renewal_margin_seconds histogram
anteroom_renewal_margin_seconds_bucket{class="orders",le="1"} 1
anteroom_renewal_margin_seconds_bucket{class="orders",le="10"} 1
anteroom_renewal_margin_seconds_bucket{class="orders",le="+Inf"} 2
anteroom_renewal_margin_seconds_sum{class="orders"} 18.5
anteroom_renewal_margin_seconds_count{class="orders"} 2
# HELP anteroom_renewals_total Renewals that were answered or failed, by outcome.
# TYPE anteroom_renewals_total counter
anteroom_renewals_total{class="orders",outcome="failed"} 1
anteroom_renewals_total{class="orders",outcome="refused"} 0
anteroom_renewals_total{class="orders",outcome="renewed"} 2
# HELP anteroom_subscriptions_up Subscription connections to Redis that are up: one for each Manager that needed one.
# TYPE anteroom_subscriptions_up gauge
anteroom_subscriptions_up 1
# HELP anteroom_unrecognized_reports_total Reports with a label value outside the documented sets, counted nowhere else.
# TYPE anteroom_unrecognized_reports_total counter
anteroom_unrecognized_reports_total 0
# HELP anteroom_waiters Callers waiting for a lock in the attached Managers.
# TYPE anteroom_waiters gauge
anteroom_waiters{class="orders"} 2
`
	var names []string
	for line := range strings.Lines(expected) {
		if f := strings.Fields(line); len(f) > 2 && f[1] == "TYPE" {
			names = append(names, f[2])
		}
	}
	if err := testutil.CollectAndCompare(c, strings.NewReader(expected), names...); err != nil {
		t.Error(err)
	}
}

func TestMetrics_CheckedCountsOutcomeFindingAndTime(t *testing.T) {
	c, r := newCollector(t, metrics.Config{Detail: true})
	before := float64(time.Now().Unix())
	c.Observer().Checked("lock_status", "field_gone")
	c.Observer().Checked("lock_status", "field_gone")
	c.Observer().Checked("lock_status", "healthy")
	c.Observer().Checked("connection", "unknown")
	want(t, r, map[string]float64{
		`anteroom_watchdog_checks_total{check="lock_status",outcome="unhealthy"}`: 2,
		`anteroom_watchdog_checks_total{check="lock_status",outcome="healthy"}`:   1,
		`anteroom_watchdog_checks_total{check="connection",outcome="unknown"}`:    1,
		`anteroom_watchdog_checks_total{check="renewal",outcome="healthy"}`:       0,
		`anteroom_watchdog_findings_total{finding="field_gone"}`:                  2,
		`anteroom_watchdog_findings_total{finding="lease_over"}`:                  0,
		`anteroom_watchdog_last_run_timestamp_seconds{check="renewal"}`:           0,
	})
	all, _ := gather(t, r)
	for _, check := range []string{"lock_status", "connection"} {
		got := all[`anteroom_watchdog_last_run_timestamp_seconds{check="`+check+`"}`].value
		if now := float64(time.Now().Unix()) + 1; got < before || got > now {
			t.Errorf("%s: last run at %v, want between %v and %v", check, got, before, now)
		}
	}
}

func TestMetrics_CommandsEventsAndRecoveriesAreCounted(t *testing.T) {
	c, r := newCollector(t, metrics.Config{Detail: true})
	c.Observer().Command("renew", "gone", 3*time.Millisecond)
	c.Observer().Command("renew", "ok", 5*time.Millisecond)
	c.Observer().Recovered("connection", "reconnect", "not_helped")
	c.Observer().Recovered("connection", "reconnect", "helped")
	c.Observer().EventRaised(observe.EventRecovery, false)
	want(t, r, map[string]float64{
		`anteroom_redis_commands_total{command="renew",outcome="gone"}`:      1,
		`anteroom_redis_commands_total{command="renew",outcome="ok"}`:        1,
		`anteroom_recoveries_total{action="reconnect",outcome="not_helped"}`: 1,
		`anteroom_recoveries_total{action="reconnect",outcome="helped"}`:     1,
		`anteroom_events_total{kind="recovery"}`:                             1,
		`anteroom_events_dropped_total`:                                      0,
	})
	all, _ := gather(t, r)
	if h := all[`anteroom_redis_command_seconds{command="renew"}`]; h.count != 2 || h.value != .008 {
		t.Errorf("two commands of 3 and 5 ms are shown as %+v", h)
	}
	if n := all["anteroom_goroutines"].value; n < 2 {
		t.Errorf("goroutines are %v", n)
	}
}

func problems[P any](found []P) []string {
	var texts []string
	for _, p := range found {
		texts = append(texts, strings.TrimSpace(fmt.Sprint(p)))
	}
	slices.Sort(texts)
	return texts
}
