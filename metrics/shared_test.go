package metrics_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
	"github.com/anteroom/anteroom/metrics"
	anteroom "github.com/anteroom/anteroom/sync"
)

// Holds of an RWMutex and a Semaphore count as those of a Mutex, by their class. A key that a process has counts once as held,
// however many of it are inside.
func TestMetrics_SharedLocks(t *testing.T) {
	c, r := newCollector(t, metrics.Config{Detail: true})
	rdb := redis.NewClient(&redis.Options{Addr: testredis.Start(t).Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	attached := func() *anteroom.Manager {
		m, err := anteroom.NewManager(rdb, anteroom.Config{
			Observer: c.Observer(), Logger: slog.New(slog.DiscardHandler), Defaults: anteroom.LockConfig{Name: "shared", LeaseTime: pace.Scale(3 * time.Second)},
		})
		if err != nil {
			t.Fatal(err)
		}
		c.Attach(m)
		t.Cleanup(func() {
			if err := m.CloseWithin(pace.Hang); err != nil {
				t.Error(err)
			}
		})
		return m
	}
	m, other := attached(), attached()
	rw, sem := m.RWMutex("rw"), m.Semaphore("sem", 3)
	var holds []*anteroom.Hold
	for _, acquire := range []func() (*anteroom.Hold, error){
		func() (*anteroom.Hold, error) { return rw.RAcquire(t.Context()) },
		func() (*anteroom.Hold, error) { return rw.RAcquire(t.Context()) },
		func() (*anteroom.Hold, error) { return sem.Acquire(t.Context(), 2) },
	} {
		h, err := acquire()
		if err != nil {
			t.Fatal(err)
		}
		holds = append(holds, h)
	}
	if _, err := other.Semaphore("sem", 3).TryAcquire(t.Context(), 2); err == nil {
		t.Fatal("there are not so many units")
	}
	ctx, cancel := context.WithCancel(t.Context())
	waited := make(chan error, 1)
	go func() {
		_, err := other.Semaphore("sem", 3).Acquire(ctx, 2)
		waited <- err
	}()
	const renewed = `anteroom_renewals_total{class="shared",outcome="renewed"}`
	for end := time.Now().Add(pace.Hang); ; time.Sleep(10 * time.Millisecond) {
		if now, _ := gather(t, r); now[renewed].value >= 2 && now[`anteroom_waiters{class="shared"}`].value == 1 {
			if now[`anteroom_oldest_wait_age_seconds{class="shared"}`].value <= 0 || now[`anteroom_renewal_margin_seconds{class="shared"}`].count == 0 {
				t.Errorf("%v", now)
			}
			break
		}
		if time.Now().After(end) {
			t.Fatal("nothing is renewed, or nobody waits")
		}
	}
	want(t, r, map[string]float64{
		`anteroom_held{class="shared"}`: 2,
		`anteroom_acquire_attempts_total{class="shared",outcome="acquired",via="redis"}`: 3,
		`anteroom_acquire_attempts_total{class="shared",outcome="refused",via="none"}`:   1,
	})
	cancel()
	<-waited
	for _, h := range holds {
		if err := h.Release(context.Background()); err != nil {
			t.Error(err)
		}
	}
	now, _ := gather(t, r)
	released := now[`anteroom_releases_total{class="shared",outcome="released"}`].value + now[`anteroom_releases_total{class="shared",outcome="handed_off"}`].value
	if released != 3 || now[`anteroom_hold_seconds{class="shared"}`].count != 3 {
		t.Errorf("%v released, %v", released, now[`anteroom_hold_seconds{class="shared"}`])
	}
	want(t, r, map[string]float64{
		`anteroom_acquire_attempts_total{class="shared",outcome="cancelled",via="none"}`: 1,
		"anteroom_unrecognized_reports_total":                                            0,
	})
}
