package metrics_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
	"github.com/anteroom/anteroom/metrics"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// work runs a Manager on a real server, observed by c, that passes a lock from goroutine to goroutine and renews
// another one, until the test ends.
func work(t *testing.T, c *metrics.Collector) {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: testredis.Start(t).Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	m, err := anteroom.NewManager(rdb, anteroom.Config{
		Observer: c.Observer(), Logger: slog.New(slog.DiscardHandler),
		Defaults: anteroom.LockConfig{Name: "orders", LeaseTime: pace.Scale(3 * time.Second), WatchdogPeriod: 100 * time.Millisecond, MaxHandoffs: 65535, MaxHandoffTime: time.Hour},
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Attach(m)
	hold, err := m.Mutex("held").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for ctx.Err() == nil {
				_ = m.Mutex("busy").Do(ctx, func(context.Context) error { runtime.Gosched(); return nil })
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		wg.Wait()
		_ = hold.Release(context.Background())
		end, stop := context.WithTimeout(context.Background(), pace.Hang)
		defer stop()
		if err := m.Close(end); err != nil {
			t.Error(err)
		}
	})
}

// What Prometheus really gets from a Manager at work: each scrape is one valid text of at most 60 series, promtool's
// linter finds nothing in it, and counters never decrease.
func TestScrape_OfAManagerAtWork(t *testing.T) {
	c, r := newCollector(t, metrics.Config{})
	work(t, c)
	const handedOff = `anteroom_acquire_attempts_total{class="orders",outcome="acquired",via="handoff"}`
	const renewed = `anteroom_renewals_total{class="orders",outcome="renewed"}`
	before := map[string]series{}
	for deadline := time.Now().Add(pace.Hang); ; time.Sleep(50 * time.Millisecond) {
		text := scrape(t, r, "")
		now, types := gather(t, r)
		for name, s := range before {
			family, _, _ := strings.Cut(name, "{")
			if types[family] != "gauge" && (now[name].value < s.value || now[name].count < s.count) {
				t.Errorf("%s was %v and is %v", name, s, now[name])
			}
		}
		if before = now; now[handedOff].value > 0 && now[renewed].value > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("no work is seen:\n%s", text)
		}
	}
	if age := before[`anteroom_oldest_hold_age_seconds{class="orders"}`].value; age < .05 {
		t.Errorf("a hold that was renewed, which is due after a tenth of a second, is %v s old", age)
	}
	want(t, r, map[string]float64{"anteroom_subscriptions_up": 1})
	if perClass, others := cost(before); perClass+others > 60 {
		t.Errorf("it costs %d series and %d of the process:\n%v", perClass, others, slices.Sorted(maps.Keys(before)))
	}
	cmd := exec.Command(promtool(t), "check", "metrics")
	cmd.Stdin = strings.NewReader(scrape(t, r, ""))
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

// A lock that is handed off allocates no more with a Collector than without.
func TestMetrics_I3_TheLockPathAllocatesNoMoreWithACollector(t *testing.T) {
	per := map[bool]float64{}
	for _, watched := range []bool{false, true} {
		c, _ := newCollector(t, metrics.Config{})
		var obs *observe.Observer
		if watched {
			obs = c.Observer()
		}
		per[watched] = allocationsPerHandOff(t, obs)
	}
	t.Logf("%.4f allocations without, %.4f with a Collector", per[false], per[true])
	// Half an allocation, because the watchdog and, under the race detector, a lossy sync.Pool allocate too; a single
	// one per report would be a whole one more.
	if per[true] > per[false]+.5 {
		t.Errorf("%.2f allocations for each acquisition with a Collector, %.2f without", per[true], per[false])
	}
}

// allocationsPerHandOff passes a lock among goroutines by Lock, within one turn.
func allocationsPerHandOff(t *testing.T, obs *observe.Observer) float64 {
	t.Helper()
	const warm, count, goroutines = 1000, 20000, 4
	rdb := redis.NewClient(&redis.Options{Addr: testredis.Start(t).Addr()})
	defer rdb.Close()
	m, err := anteroom.NewManager(rdb, anteroom.Config{
		Observer: obs, Logger: slog.New(slog.DiscardHandler),
		Defaults: anteroom.LockConfig{MaxHandoffs: 65535, MaxHandoffTime: time.Hour},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Close(context.Background()) }()
	mu := m.Mutex("k")
	var before, after runtime.MemStats
	var wg sync.WaitGroup
	passed := 0 // guarded by mu
	mu.Lock()   // until all wait, so that nobody finds the queue empty
	for range goroutines {
		wg.Go(func() {
			for more := true; more; {
				mu.Lock()
				switch passed++; passed {
				case warm:
					runtime.ReadMemStats(&before)
				case warm + count:
					runtime.ReadMemStats(&after)
				}
				more = passed < warm+count
				mu.Unlock()
			}
		})
	}
	for m.Counts()["default"].Waiting < goroutines {
		runtime.Gosched()
	}
	mu.Unlock()
	wg.Wait()
	return float64(after.Mallocs-before.Mallocs) / count
}

// The size of a scrape with the default number of classes and more, all of which have seen everything: class_overflows_total
// comes on top.
func TestScrape_A100Classes(t *testing.T) {
	c, r := newCollector(t, metrics.Config{})
	for i := range 120 {
		everything(c.Observer(), fmt.Sprintf("class-%d", i))
	}
	text := scrape(t, r, "")
	lines := 0
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			lines++
		}
	}
	if want := 101*perClassAll + othersAll + 1; lines != want {
		t.Errorf("%d series, want %d", lines, want)
	}
	if len(text) > 1<<20 {
		t.Errorf("a scrape of %d bytes", len(text))
	}
}

// Each metric in seconds has that unit, and no other has one.
func TestMetrics_UnitsAreSeconds(t *testing.T) {
	c, r := newCollector(t, metrics.Config{Detail: true, ConstLabels: prometheus.Labels{"redis": "eu"}})
	everything(c.Observer(), "orders")
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	inSeconds := 0
	for _, f := range families {
		want := ""
		if strings.HasSuffix(f.GetName(), "_seconds") {
			want = "seconds"
			inSeconds++
		}
		if f.GetUnit() != want {
			t.Errorf("%s has the unit %q", f.GetName(), f.GetUnit())
		}
	}
	if inSeconds != 7 {
		t.Errorf("%d metrics are in seconds", inSeconds)
	}
}
