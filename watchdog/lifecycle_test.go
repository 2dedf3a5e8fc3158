package watchdog_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	wd "github.com/anteroom/anteroom/watchdog"
)

func TestWatchdog_StartStopInAnyOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.add(hold(1))
		never := wd.New(w.config())
		never.Stop()
		never.Stop()
		never.Start() // its life is over
		pass(time.Minute)
		if len(w.looks) != 0 {
			t.Error("a stopped Watchdog looked")
		}

		d := wd.New(w.config())
		d.Start()
		d.Start()
		pass(time.Minute)
		if n := len(w.looks[1]); n < 11 || n > 13 {
			t.Errorf("%d looks in twelve periods after two Starts", n)
		}
		d.Stop()
		n := len(w.looks[1])
		d.Stop()
		pass(time.Minute)
		if len(w.looks[1]) != n {
			t.Error("it looked after Stop")
		}
	})
}

// TestWatchdog_StopEndsQuestions: Stop ends questions under way at once, and the error
// that it causes accuses nobody.
func TestWatchdog_StopEndsQuestions(t *testing.T) {
	run(t, func(w *world, c *wd.Config) {
		c.CommandTimeout = time.Hour
		w.ping = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		w.status = func(ctx context.Context, _ wd.Facts) wd.Status { <-ctx.Done(); return wd.Status{Err: ctx.Err()} }
	}, func(t *testing.T, w *world, d *wd.Watchdog) {
		w.add(hold(1))
		pass(6 * time.Second)
		if w.asked[1] != 1 || w.pings != 1 {
			t.Fatalf("%d and %d questions under way", w.asked[1], w.pings)
		}
		before := time.Now()
		d.Stop()
		if took := time.Since(before); took != 0 {
			t.Errorf("Stop took %v", took)
		}
		w.want(t, 0, "found")
	})
}

// TestWatchdog_StartStopStress starts, stops and asks from many goroutines at once.
func TestWatchdog_StartStopStress(t *testing.T) {
	t.Parallel()
	for range 50 {
		w := newWorld()
		for id := range uint64(20) {
			w.add(hold(id + 1))
		}
		d := wd.New(w.config())
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(d.Start)
			wg.Go(d.Stop)
			wg.Go(func() { d.Verdicts(1); d.Verdicts(0) })
		}
		wg.Wait()
		d.Stop()
	}
}

// TestWatchdog_AskedWhileItWorks: Verdicts and LastRun beside the loop, under holds that
// come, fall ill and go, on the real clock.
func TestWatchdog_AskedWhileItWorks(t *testing.T) {
	t.Parallel()
	w := newWorld()
	cfg := w.config()
	cfg.Period = 50 * time.Millisecond
	turned := make(chan struct{}, 1)
	w.onEach = func() {
		select {
		case turned <- struct{}{}:
		default:
		}
	}
	w.status = func(_ context.Context, f wd.Facts) wd.Status {
		s := good()
		s.Fields = 1 + int64(f.ID%2)
		return s
	}
	d := wd.New(cfg)
	d.Start()
	for round := range uint64(6) {
		for id := range uint64(50) {
			f := hold(round*25 + id + 1)
			f.Period, f.Reachable = 50*time.Millisecond, id%3 != 0
			w.add(f)
		}
		<-turned
		for id := range uint64(50) {
			for _, v := range d.Verdicts(round*25 + id + 1) {
				if v.Health == wd.Unhealthy && v.Reason == "" {
					t.Errorf("a verdict without its reason: %+v", v)
				}
			}
		}
		for id := range uint64(25) {
			w.end(round*25 + id + 1)
		}
	}
	d.Stop()
}

func TestNew_NeedsItsParts(t *testing.T) {
	t.Parallel()
	w := newWorld()
	for name, cfg := range map[string]wd.Config{
		"Source": {Prober: w, Actor: w},
		"Prober": {Source: w, Actor: w},
		"Actor":  {Source: w, Prober: w},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("New without %s did not panic", name)
				}
			}()
			wd.New(cfg)
		}()
	}
}

// many is a Source of healthy holds at no cost of its own.
type many struct {
	*world
	facts []wd.Facts
}

func (m many) Lookup(id uint64) (wd.Facts, bool) { return m.facts[id-1], true }

func (m many) LookupAll(facts []wd.Facts) {
	for i, f := range facts {
		facts[i] = m.facts[f.ID-1]
	}
}

// BenchmarkRound_100000Holds is one tick over 100,000 healthy, renewed holds. With the
// default period there are two ticks a second.
func BenchmarkRound_100000Holds(b *testing.B) {
	m := many{world: newWorld()}
	now := time.Now()
	for id := range uint64(100_000) {
		f := hold(id + 1)
		f.RenewalTime, f.Lease = 4*time.Second, time.Hour
		f.Deadline = now.Add(24 * time.Hour)
		m.facts = append(m.facts, f)
		m.holds[f.ID] = &f
	}
	d := wd.New(wd.Config{Source: m, Prober: m, Actor: m})
	defer d.Stop()
	wd.Round(d, now, 0)
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		now = now.Add(500 * time.Millisecond)
		for i := range m.facts {
			m.facts[i].LastConfirmed = now
		}
		wd.Round(d, now, 0)
	}
}

// TestWatchdog_SizeOfAHold: a process may have 100,000 healthy holds. The bound is a size
// class of the allocator.
func TestWatchdog_SizeOfAHold(t *testing.T) {
	if wd.HoldSize > 96 {
		t.Errorf("a hold has %d bytes, want at most 96", wd.HoldSize)
	}
}
