package anteroomotel_test

import (
	"context"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	anteroomotel "github.com/anteroom/anteroom/metrics/otel"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// meter returns a Metrics and the reader of what it reports.
func meter(t testing.TB) (*anteroomotel.Metrics, *sdkmetric.ManualReader) {
	t.Helper()
	reader := sdkmetric.NewManualReader()
	m, err := anteroomotel.NewMetrics(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	ok(t, err)
	return m, reader
}

// point is what one set of attributes of an instrument has: a value, or the count and sum of a histogram.
type point struct {
	value, sum float64
	count      uint64
}

// collect returns all points, as name{attribute=value,…}, and the kind and unit of each instrument.
func collect(t testing.TB, r *sdkmetric.ManualReader) (map[string]point, map[string]string) {
	t.Helper()
	var all metricdata.ResourceMetrics
	ok(t, r.Collect(bg, &all))
	points, kinds := map[string]point{}, map[string]string{}
	for _, scope := range all.ScopeMetrics {
		if scope.Scope.Name != anteroomotel.ScopeName {
			t.Errorf("the scope is %s", scope.Scope.Name)
		}
		for _, m := range scope.Metrics {
			name := func(set attribute.Set) string { return m.Name + "{" + set.Encoded(attribute.DefaultEncoder()) + "}" }
			kind := ""
			switch d := m.Data.(type) {
			case metricdata.Sum[int64]:
				kind = map[bool]string{true: "counter", false: "up-down counter"}[d.IsMonotonic]
				for _, p := range d.DataPoints {
					points[name(p.Attributes)] = point{value: float64(p.Value)}
				}
			case metricdata.Gauge[float64]:
				kind = "gauge"
				for _, p := range d.DataPoints {
					points[name(p.Attributes)] = point{value: p.Value}
				}
			case metricdata.Histogram[float64]:
				kind = "histogram"
				for _, p := range d.DataPoints {
					points[name(p.Attributes)] = point{count: p.Count, sum: p.Sum}
				}
			default:
				t.Errorf("%s has data %T", m.Name, m.Data)
			}
			kinds[m.Name] = kind + " " + m.Unit
			if m.Description == "" {
				t.Errorf("%s has no description", m.Name)
			}
		}
	}
	return points, kinds
}

// expect fails the test if a point is not as given.
func expect(t *testing.T, points map[string]point, want map[string]point) {
	t.Helper()
	for name, w := range want {
		if got, is := points[name]; !is || got != w {
			t.Errorf("%s is %v, %v; want %v", name, got, is, w)
		}
	}
}

type counts map[string]observe.Count

func (c *counts) Counts() map[string]observe.Count { return *c }

func TestMetrics_SaysWhatPrometheusIsTold(t *testing.T) {
	m, reader := meter(t)
	o := m.Observer()
	o.Acquired("orders", observe.OutcomeGranted, 2*time.Second)
	o.Acquired("orders", observe.OutcomeNested, 0)
	o.Acquired("orders", observe.OutcomeCancelled, time.Minute)
	o.Called("orders", observe.CallFound)
	o.Released("orders", observe.OutcomeNested, time.Second)
	o.Released("orders", observe.OutcomeLost, 3*time.Second)
	o.Released("orders", observe.OutcomeReleased, -time.Second) // two clock readings in the wrong order
	o.Renewed("orders", observe.OutcomeRenewed, 18*time.Second)
	o.Renewed("orders", observe.OutcomeRenewed, -1) // of a new lease
	o.Renewed("orders", observe.OutcomeFailed, time.Second)
	o.Lost("orders", observe.LostDeadline)
	o.Alert("orders", "renewal", true)
	o.Alert("orders", "renewal", true)
	o.Alert("orders", "renewal", false)
	o.Command("ping", "failed", time.Second)
	o.Checked("lock_status", "foreign_field")
	o.Checked("holder", "healthy")
	o.Subscription(true)
	o.Subscription(true)
	o.Subscription(false)
	o.EventRaised(observe.EventLost, true)
	m.Attach(&counts{"orders": {Held: 1, Waiting: 2, OldestHold: time.Minute}})
	second := &counts{"orders": {Held: 1, OldestHold: time.Second, OldestWait: time.Second}}
	m.Attach(second)
	m.Attach(second) // changes nothing
	points, _ := collect(t, reader)
	const class = "anteroom.class=orders"
	expect(t, points, map[string]point{
		"anteroom.acquire.attempts{" + class + ",anteroom.outcome=acquired,anteroom.via=redis}":   {value: 1},
		"anteroom.acquire.attempts{" + class + ",anteroom.outcome=acquired,anteroom.via=reentry}": {value: 1},
		"anteroom.acquire.attempts{" + class + ",anteroom.outcome=cancelled,anteroom.via=none}":   {value: 1},
		"anteroom.acquire.wait{" + class + "}":                                                    {count: 1, sum: 2},
		"anteroom.calls{anteroom.call.how=found," + class + "}":                                   {value: 1},
		"anteroom.hold.duration{" + class + "}":                                                   {count: 2, sum: 3},
		"anteroom.renewals{" + class + ",anteroom.outcome=renewed}":                               {value: 2},
		"anteroom.renewals{" + class + ",anteroom.outcome=failed}":                                {value: 1},
		"anteroom.renewal.margin{" + class + "}":                                                  {count: 1, sum: 18},
		"anteroom.lost{" + class + ",anteroom.lost.reason=deadline}":                              {value: 1},
		"anteroom.alerts{anteroom.check=renewal," + class + "}":                                   {value: 1},
		"anteroom.held{" + class + "}":                                                            {value: 2},
		"anteroom.waiters{" + class + "}":                                                         {value: 2},
		"anteroom.oldest_hold.age{" + class + "}":                                                 {value: 60},
		"anteroom.oldest_wait.age{" + class + "}":                                                 {value: 1},
		"anteroom.redis.commands{anteroom.outcome=failed}":                                        {value: 1},
		"anteroom.redis.command.duration{}":                                                       {count: 1, sum: 1},
		"anteroom.subscriptions{}":                                                                {value: 1},
		"anteroom.managers{}":                                                                     {value: 2},
		"anteroom.watchdog.findings{anteroom.finding=foreign_field}":                              {value: 1},
		"anteroom.events{anteroom.event.kind=lost}":                                               {value: 1},
		"anteroom.dropped_events{}":                                                               {value: 1},
	})
	if len(points) != 22 {
		t.Errorf("%d points: %v", len(points), points)
	}
	before := float64(time.Now().Unix())
	o.Checked("connection", "unknown")
	m.Detach(second)
	points, _ = collect(t, reader)
	expect(t, points, map[string]point{"anteroom.managers{}": {value: 1}, "anteroom.held{" + class + "}": {value: 1}})
	if at := points["anteroom.watchdog.last_run{}"].value; at < before || at > float64(time.Now().Unix()+1) {
		t.Errorf("the connection was checked at %v, after %v", at, before)
	}
}

// all reports everything once, something that is none of it, and of more classes than are told apart.
func all(o *observe.Observer) {
	l := observe.Labels()
	o.Acquired("orders", l.Acquire[0], 1)
	o.Called("orders", l.Calls[0])
	o.Released("orders", l.Release[0], 1)
	o.Renewed("orders", l.Renew[0], 1)
	o.Alert("orders", l.Checks[0], true)
	o.Command(l.Commands[0], l.CommandOutcomes[0], 1)
	o.Checked("connection", l.Findings[0])
	o.Subscription(true)
	o.EventRaised(l.Events[0], true)
	for i := range 150 {
		o.Lost(strings.Repeat("x", i), observe.LostGone)
	}
}

// What is none of the closed sets makes no series, and classes beyond the cap are one.
func TestMetrics_AreBounded(t *testing.T) {
	m, reader := meter(t)
	o := m.Observer()
	all(o)
	before, _ := collect(t, reader)
	for _, report := range []func(){
		func() { o.Acquired("orders", observe.OutcomeRenewed, 1) },
		func() { o.Called("orders", "perhaps") },
		func() { o.Released("orders", "perhaps", 1) },
		func() { o.Renewed("orders", "perhaps", 1) },
		func() { o.Lost("orders", "perhaps") },
		func() { o.Alert("orders", "perhaps", true) },
		func() { o.Command("ping", "perhaps", 1) },
		func() { o.Checked("perhaps", "healthy") },
		func() { o.Checked("holder", "perhaps") },
		func() { o.Checked("holder", "unhealthy") },
		func() { o.EventRaised("perhaps", true) },
	} {
		report()
	}
	points, _ := collect(t, reader)
	if len(points) != len(before)+1 {
		t.Errorf("%d points, and %d before", len(points), len(before))
	}
	expect(t, points, map[string]point{
		"anteroom.unrecognized_reports{}":                               {value: 11},
		"anteroom.class_overflows{}":                                    {value: 51}, // orders and 99 of the 150 are told apart
		"anteroom.lost{anteroom.class=other,anteroom.lost.reason=gone}": {value: 51},
	})
}

// The page has every instrument with its unit and kind, and no other.
func TestMetrics_ThePageNamesEach(t *testing.T) {
	m, reader := meter(t)
	all(m.Observer())
	m.Observer().Lost("orders", "perhaps")
	m.Attach(&counts{"orders": {}})
	_, kinds := collect(t, reader)
	text, err := os.ReadFile("../../docs/reference/metrics.md")
	ok(t, err)
	row := regexp.MustCompile("(?m)^\\| `anteroom_\\w+` \\| `(anteroom\\.[\\w.]+)` \\| ([a-z -]+) \\| `([^`]+)` \\|")
	named := row.FindAllStringSubmatch(string(text), -1)
	for _, r := range named {
		if kinds[r[1]] != r[2]+" "+r[3] {
			t.Errorf("%s is a %s, and the page says %s %s", r[1], kinds[r[1]], r[2], r[3])
		}
		delete(kinds, r[1])
	}
	if len(kinds) > 0 || len(named) < 20 {
		t.Errorf("the page does not name %v", kinds)
	}
}

// A real Manager, from its first lock to the end of the Metrics.
func TestMetrics_WithAManager(t *testing.T) {
	srv := miniredis.RunT(t)
	rdb := redis.NewClient(&redis.Options{Addr: srv.Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	metrics, reader := meter(t)
	m := must[*anteroom.Manager](t)(anteroom.NewManager(rdb, anteroom.Config{
		Observer: metrics.Observer(), Attach: func(m *anteroom.Manager) { metrics.Attach(m) },
		Logger: slog.New(slog.DiscardHandler), Defaults: anteroom.LockConfig{Name: "orders"},
	}))
	hold := must[*anteroom.Hold](t)(m.Mutex("order:42").Acquire(bg))
	if _, err := m.Mutex("order:42").TryAcquire(bg); err == nil {
		t.Error("two have it")
	}
	points, _ := collect(t, reader)
	expect(t, points, map[string]point{
		"anteroom.held{anteroom.class=orders}": {value: 1},
		"anteroom.acquire.attempts{anteroom.class=orders,anteroom.outcome=acquired,anteroom.via=redis}": {value: 1},
		"anteroom.acquire.attempts{anteroom.class=orders,anteroom.outcome=refused,anteroom.via=none}":   {value: 1},
	})
	ok(t, hold.Release(bg))
	ctx, cancel := context.WithTimeout(bg, time.Minute)
	defer cancel()
	ok(t, m.Close(ctx))
	points, _ = collect(t, reader)
	expect(t, points, map[string]point{"anteroom.held{anteroom.class=orders}": {}})
	if points["anteroom.hold.duration{anteroom.class=orders}"].count != 1 || points["anteroom.subscriptions{}"].value != 0 {
		t.Errorf("%v", points)
	}
	ok(t, metrics.Close())
	if points, _ = collect(t, reader); len(points) == 0 || points["anteroom.managers{}"] != (point{}) {
		t.Errorf("a closed Metrics reports %v", points)
	}
}

// The attributes are made in advance.
func TestMetrics_AnAcquireAllocatesNothing(t *testing.T) {
	m, _ := meter(t)
	o := m.Observer()
	for _, f := range []func(){
		func() { o.Acquired("orders", observe.OutcomeHandedOff, time.Second) },
		func() { o.Released("orders", observe.OutcomeHandedOff, time.Second) },
		func() { o.Command("acquire", "ok", time.Millisecond) },
	} {
		f()
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%v allocations", n)
		}
	}
}

// The provider can be replaced only once in a process.
var (
	globalMeter sync.Once
	globalRead  = sdkmetric.NewManualReader()
)

// Without a provider measurements go to the global one, even one that is set later.
func TestNewMetrics_UsesTheGlobalProvider(t *testing.T) {
	m, err := anteroomotel.NewMetrics(nil)
	ok(t, err)
	globalMeter.Do(func() {
		otel.SetMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(globalRead)))
	})
	const lost = "anteroom.lost{anteroom.class=orders,anteroom.lost.reason=gone}"
	before, _ := collect(t, globalRead)
	m.Observer().Lost("orders", observe.LostGone)
	after, _ := collect(t, globalRead)
	if n := after[lost].value - before[lost].value; n != 1 {
		t.Errorf("%v losses", n)
	}
	ok(t, m.Close())
}
