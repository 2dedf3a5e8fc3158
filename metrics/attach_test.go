package metrics_test

import (
	"context"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/metrics"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

func TestMetrics_I4_HeldAndWaitersAreReadAtTheScrape(t *testing.T) {
	c, r := newCollector(t, metrics.Config{})
	a := &counts{"orders": {Held: 2, Waiting: 5, OldestHold: 90 * time.Second, OldestWait: time.Second / 2}}
	b := &counts{"orders": {Held: 1, OldestHold: time.Minute}, "stock": {Waiting: 4, OldestWait: time.Hour}}
	c.Attach(a)
	c.Attach(b)
	c.Attach(a) // changes nothing
	c.Observer().Lost("mail", observe.LostGone)
	want(t, r, map[string]float64{
		`anteroom_held{class="orders"}`:    3,
		`anteroom_waiters{class="orders"}`: 5,
		`anteroom_held{class="stock"}`:     0,
		`anteroom_waiters{class="stock"}`:  4,
		`anteroom_held{class="mail"}`:      0,
		`anteroom_waiters{class="mail"}`:   0,
		`anteroom_managers`:                2,

		`anteroom_oldest_hold_age_seconds{class="orders"}`: 90,
		`anteroom_oldest_wait_age_seconds{class="orders"}`: .5,
		`anteroom_oldest_hold_age_seconds{class="stock"}`:  0,
		`anteroom_oldest_wait_age_seconds{class="stock"}`:  3600,
		`anteroom_oldest_hold_age_seconds{class="mail"}`:   0,
		`anteroom_oldest_wait_age_seconds{class="mail"}`:   0,
	})
	*a = counts{} // idle now: known classes remain, as 0
	c.Detach(b)
	c.Detach(b)
	want(t, r, map[string]float64{
		`anteroom_held{class="orders"}`:    0,
		`anteroom_waiters{class="orders"}`: 0,
		`anteroom_waiters{class="stock"}`:  0,
		`anteroom_managers`:                1,

		`anteroom_oldest_hold_age_seconds{class="orders"}`: 0,
		`anteroom_oldest_wait_age_seconds{class="stock"}`:  0,
	})
}

// Classes beyond the cap that a scrape finds are summed in "other" and are no report.
func TestMetrics_I4_CountsBeyondTheCap(t *testing.T) {
	c, r := newCollector(t, metrics.Config{MaxClasses: 1, Detail: true})
	c.Observer().Lost("orders", observe.LostGone)
	c.Attach(&counts{"orders": {Held: 1}, "stock": {Held: 2}, "mail": {Held: 4}})
	want(t, r, map[string]float64{
		`anteroom_held{class="orders"}`:  1,
		`anteroom_held{class="other"}`:   6,
		`anteroom_class_overflows_total`: 0,
	})
}

func TestMetrics_AttachNilPanics(t *testing.T) {
	c, _ := newCollector(t, metrics.Config{})
	defer func() {
		if recover() == nil {
			t.Error("Attach(nil) did not panic")
		}
	}()
	c.Attach(nil)
}

// busy is a Manager that reports and attaches during Counts, like one whose Counts waits for a lock under which it
// reports.
type busy struct{ c *metrics.Collector }

func (b *busy) Counts() map[string]observe.Count {
	b.c.Observer().Lost("new class", observe.LostGone)
	b.c.Detach(&counts{})
	return map[string]observe.Count{"another new class": {Held: 1}}
}

func TestMetrics_NoLockIsHeldWhileAManagerIsAsked(t *testing.T) {
	c, r := newCollector(t, metrics.Config{})
	c.Attach(&busy{c})
	want(t, r, map[string]float64{
		`anteroom_lost_total{class="new class",reason="gone"}`: 1,
		`anteroom_held{class="another new class"}`:             1,
	})
}

// leaver detaches itself during Counts.
type leaver struct{ c *metrics.Collector }

func (l *leaver) Counts() map[string]observe.Count {
	l.c.Detach(l)
	return map[string]observe.Count{"orders": {Held: 1}}
}

// A scrape asks the Managers that were attached when it began, whatever changes meanwhile.
func TestMetrics_DetachDuringAScrape(t *testing.T) {
	c, r := newCollector(t, metrics.Config{})
	c.Attach(&leaver{c})
	c.Attach(&leaver{c})
	c.Attach(&counts{"orders": {Held: 1}})
	want(t, r, map[string]float64{`anteroom_held{class="orders"}`: 3, `anteroom_managers`: 3})
	want(t, r, map[string]float64{`anteroom_held{class="orders"}`: 1, `anteroom_managers`: 1})
}

// A real Manager, from its first lock to its Close.
func TestMetrics_WithAManager(t *testing.T) {
	srv := miniredis.RunT(t)
	rdb := redis.NewClient(&redis.Options{Addr: srv.Addr()})
	defer rdb.Close()
	c, r := newCollector(t, metrics.Config{Detail: true})
	m, err := anteroom.NewManager(rdb, anteroom.Config{
		Observer: c.Observer(), CommandTimeout: 10 * time.Second, Defaults: anteroom.LockConfig{Name: "orders", Reentrant: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Attach(m)
	ctx := context.Background()
	mu := m.Mutex("order:42")
	hold, err := mu.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if h, err := mu.TryAcquire(ctx); err == nil {
		t.Fatalf("a second owner: %v", h)
	}
	want(t, r, map[string]float64{
		`anteroom_held{class="orders"}`: 1,
		`anteroom_acquire_attempts_total{class="orders",outcome="acquired",via="redis"}`: 1,
		`anteroom_acquire_attempts_total{class="orders",outcome="refused",via="none"}`:   1,
		`anteroom_redis_commands_total{command="acquire",outcome="ok"}`:                  1,
	})
	if err := hold.Release(ctx); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	mu.Lock()
	if n := mu.Holds(); n != 2 {
		t.Fatalf("%d holds", n)
	}
	mu.Unlock()
	mu.Unlock()
	if hold, err = mu.Acquire(ctx); err != nil {
		t.Fatal(err)
	}
	if broken, err := m.ForceRelease(ctx, "order:42"); err != nil || len(broken) != 1 {
		t.Fatal(broken, err)
	}
	<-hold.Context().Done()
	_ = hold.Release(ctx) // reports that the lock was lost
	if err := m.Close(ctx); err != nil {
		t.Fatal(err)
	}
	c.Detach(m)
	want(t, r, map[string]float64{
		`anteroom_acquire_attempts_total{class="orders",outcome="acquired",via="redis"}`:   3,
		`anteroom_acquire_attempts_total{class="orders",outcome="acquired",via="reentry"}`: 1,
		`anteroom_releases_total{class="orders",outcome="released"}`:                       2,
		`anteroom_releases_total{class="orders",outcome="nested"}`:                         1,
		`anteroom_releases_total{class="orders",outcome="lost"}`:                           1,
		`anteroom_lost_total{class="orders",reason="forced"}`:                              1,
		`anteroom_redis_commands_total{command="force",outcome="ok"}`:                      1,
		`anteroom_events_total{kind="lost"}`:                                               1,
		`anteroom_held{class="orders"}`:                                                    0,
		`anteroom_waiters{class="orders"}`:                                                 0,
		`anteroom_subscriptions_up`:                                                        0,
		`anteroom_managers`:                                                                0,
		`anteroom_unrecognized_reports_total`:                                              0,
	})
}
