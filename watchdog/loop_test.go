package watchdog_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/internal/goroutines"
	wd "github.com/anteroom/anteroom/watchdog"
)

// TestWatchdog_I4_EachHoldOncePerPeriod: a thousand holds are checked once a period, never
// more than a tick later and never after less than half of it, and they are spread over
// the ticks as their renewals are.
func TestWatchdog_I4_EachHoldOncePerPeriod(t *testing.T) {
	run(t, nil, func(t *testing.T, w *world, d *wd.Watchdog) {
		const holds, periods = 1000, 12
		const period, tick = 5 * time.Second, 500 * time.Millisecond
		const spread = 2 * time.Second // of the renewals of holds that were taken at one moment
		for id := range uint64(holds) {
			f := hold(id + 1)
			f.LastConfirmed = f.LastConfirmed.Add(-time.Duration(id) * spread / holds)
			w.add(f)
		}
		pass(periods*period + 600*time.Millisecond)
		w.mu.Lock()
		defer w.mu.Unlock()
		perTick := map[time.Time]int{}
		for id, looks := range w.looks {
			if n := len(looks); n < periods-1 || n > periods+1 {
				t.Fatalf("hold %d was looked at %d times in %d periods", id, n, periods)
			}
			for i, at := range looks {
				perTick[at.Truncate(tick)]++
				if i == 0 {
					continue
				}
				if gap := at.Sub(looks[i-1]); gap > period+tick+wd.Breath || gap < period/2 {
					t.Fatalf("hold %d was looked at after %v", id, gap)
				}
			}
		}
		if len(w.looks) != holds {
			t.Errorf("%d of %d holds were looked at", len(w.looks), holds)
		}
		for at, n := range perTick {
			if n > 3*holds/2/int(spread/tick) {
				t.Errorf("%d looks at one tick, at %v", n, at)
			}
		}
		if len(w.events) != 0 || len(w.actions) != 0 {
			t.Errorf("healthy holds brought %q, %q", w.events, w.actions)
		}
	})
}

// TestWatchdog_I4_AbsentForAMoment: a hold that comes while its lease is being replaced does not belong to the set at that
// moment, and is watched all the same.
func TestWatchdog_I4_AbsentForAMoment(t *testing.T) {
	run(t, nil, func(t *testing.T, w *world, d *wd.Watchdog) {
		f := hold(1)
		f.Fixed, f.NextRenewal = true, time.Time{}
		w.absent[1] = true
		w.add(f)
		pass(6 * time.Second)
		if w.asked[1] == 0 || len(w.looks[1]) == 0 {
			t.Error("a hold that was absent for a moment when it had come is not watched")
		}
	})
}

// TestWatchdog_I4_OwnPeriod: a hold with a shorter period than the Watchdog's is looked
// at in its own.
func TestWatchdog_I4_OwnPeriod(t *testing.T) {
	run(t, nil, func(t *testing.T, w *world, d *wd.Watchdog) {
		f := hold(1)
		f.Period = 500 * time.Millisecond
		w.add(f)
		w.add(hold(2))
		pass(20 * time.Second)
		w.mu.Lock()
		defer w.mu.Unlock()
		if n := len(w.looks[1]); n < 38 || n > 40 {
			t.Errorf("%d looks at the short period, want about 39", n)
		}
		if n := len(w.looks[2]); n < 3 || n > 4 {
			t.Errorf("%d looks at the long period, want 4", n)
		}
	})
}

// TestWatchdog_I4_RenewalCountsAsStatus: a hold that is renewed within its period is
// never asked about, and has its verdict all the same.
func TestWatchdog_I4_RenewalCountsAsStatus(t *testing.T) {
	run(t, nil, func(t *testing.T, w *world, d *wd.Watchdog) {
		f := hold(1)
		f.RenewalTime = 4 * time.Second
		w.add(f)
		pass(time.Minute)
		if n := w.asked[1]; n != 0 {
			t.Errorf("Redis was asked %d times", n)
		}
		verdicts := d.Verdicts(1)
		if len(verdicts) != 3 || verdicts[1].Check != wd.LockStatus || verdicts[1].Health != wd.Healthy {
			t.Fatalf("verdicts %+v", verdicts)
		}
		if age := time.Since(verdicts[1].At); age > 10*time.Second {
			t.Errorf("the status verdict is %v old", age)
		}
	})
}

// TestWatchdog_I4_NoPeriodWithoutAWord: between two words from Redis, renewal or answer,
// never more than a period passes, and Redis is not asked more often than that needs.
func TestWatchdog_I4_NoPeriodWithoutAWord(t *testing.T) {
	run(t, nil, func(t *testing.T, w *world, d *wd.Watchdog) {
		f := hold(1)
		w.add(f)
		pass(100 * time.Second)
		words := map[time.Duration]bool{}
		for i := range 11 {
			words[time.Duration(i)*10*time.Second] = true
		}
		for _, at := range w.askedAt {
			words[at.Sub(f.Since)] = true
		}
		last := time.Duration(0)
		for at := time.Duration(0); at <= 100*time.Second; at += 100 * time.Millisecond {
			if !words[at] {
				continue
			}
			if at-last > 5*time.Second {
				t.Errorf("no word between %v and %v", last, at)
			}
			last = at
		}
		if n := w.asked[1]; n != 10 {
			t.Errorf("Redis was asked %d times in ten renewals", n)
		}
	})
}

// TestWatchdog_RemovalIsToldInTime: a field that vanishes at any moment is reported within a
// period.
func TestWatchdog_RemovalIsToldInTime(t *testing.T) {
	for _, after := range []time.Duration{100 * time.Millisecond, 4900 * time.Millisecond, 10100 * time.Millisecond, 13 * time.Second} {
		t.Run(after.String(), func(t *testing.T) {
			run(t, nil, func(t *testing.T, w *world, d *wd.Watchdog) {
				w.add(hold(1))
				w.do(func() { w.act = func(_ string, id uint64, _ wd.Finding) bool { w.end(id); return true } })
				pass(after)
				w.do(func() {
					w.alive[1] = false
					w.status = func(context.Context, wd.Facts) wd.Status { return wd.Status{Answered: true, Gone: true} }
				})
				pass(5 * time.Second)
				w.want(t, 1, "lose 1 field_gone")
				w.want(t, 1, "acted 1 lose field_gone")
				pass(time.Second)
				w.want(t, 1, "helped 1 lose field_gone")
			})
		})
	}
}

// TestWatchdog_I1_EndedIsNotAccused: a hold that is released while Redis is asked about
// it, or between the pass and the check, is not accused.
func TestWatchdog_I1_EndedIsNotAccused(t *testing.T) {
	run(t, nil, func(t *testing.T, w *world, d *wd.Watchdog) {
		w.add(hold(1))
		w.answer(func(_ context.Context, f wd.Facts) wd.Status {
			w.end(f.ID) // released, and then Redis answers
			return wd.Status{Answered: true, Gone: true}
		})
		pass(20 * time.Second)
		if w.asked[1] != 1 {
			t.Errorf("asked %d times", w.asked[1])
		}
		late := hold(2)
		late.MaxHold = 1
		w.add(late)
		w.do(func() { w.onEach = func() { delete(w.holds, 2) } }) // released right after the pass
		pass(20 * time.Second)
		if len(w.events)+len(w.actions) != 0 {
			t.Errorf("events %q, actions %q", w.events, w.actions)
		}
	})
}

// TestWatchdog_I1_ExtensionUnderWay: one long time to live may be an extension whose
// answer is under way; two in a row are none.
func TestWatchdog_I1_ExtensionUnderWay(t *testing.T) {
	run(t, nil, func(t *testing.T, w *world, d *wd.Watchdog) {
		w.add(hold(1))
		w.answer(func(context.Context, wd.Facts) wd.Status {
			s := good()
			s.TTL = time.Hour
			return s
		})
		pass(5 * time.Second)
		if w.asked[1] != 1 || w.count("found") != 0 {
			t.Errorf("asked %d times, events %q", w.asked[1], w.events)
		}
		pass(5 * time.Second)
		w.want(t, 1, "found 1 ttl_too_long")
		w.want(t, 1, "reported 1 report ttl_too_long")
	})
}

// TestWatchdog_I2_SelfLateAccusesNobody: a tick that comes late finds renewals that are
// late and a holder over its time, and accuses none; what is over by its deadline is
// reported. Later the same facts count again.
func TestWatchdog_I2_SelfLateAccusesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		late, over, max := hold(1), hold(2), hold(3)
		late.Deadline = late.Since.Add(time.Hour)
		over.Deadline = over.Since.Add(18 * time.Second)
		max.Deadline, max.MaxHold = late.Deadline, time.Second
		w.add(late)
		w.add(over)
		w.add(max)
		w.alive[1], w.alive[2], w.alive[3] = false, false, false
		d := wd.New(w.config())
		defer d.Stop()
		wd.Round(d, time.Now(), 0) // adopts the holds; at once only id-dependent looks
		w.events, w.actions, w.looks = nil, nil, map[uint64][]time.Time{}

		pass(20 * time.Second) // the process is stopped
		wd.Round(d, time.Now(), 19*time.Second)
		if len(w.late) != 1 || w.late[0] != 19*time.Second {
			t.Errorf("own lateness told as %v", w.late)
		}
		w.want(t, 1, "found")
		w.want(t, 1, "lose 2 lease_over")
		w.end(2)
		if v := d.Verdicts(0); len(v) == 0 || v[0].Finding != wd.SelfLate || v[0].Health != wd.Unknown {
			t.Errorf("about the process: %+v", v)
		}
		pass(4 * time.Second) // still within the time that it gives the others
		wd.Round(d, time.Now(), 0)
		w.want(t, 1, "found")
		pass(2 * time.Second)
		wd.Round(d, time.Now(), 0)
		w.want(t, 1, "found 1 renewal_late")
		w.want(t, 1, "found 3 over_max_hold")
	})
}

// TestWatchdog_I2_SmallLatenessIsExcused: lateness below the limit is subtracted from
// what the renewals took.
func TestWatchdog_I2_SmallLatenessIsExcused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		f := hold(1)
		w.add(f)
		w.alive[1] = false
		d := wd.New(w.config())
		defer d.Stop()
		wd.Round(d, time.Now(), 0)
		pass(16 * time.Second)
		wd.Round(d, time.Now(), 2*time.Second)
		w.want(t, 0, "found 1")
		pass(5 * time.Second)
		wd.Round(d, time.Now(), 2*time.Second)
		w.want(t, 1, "found 1 renewal_late")
	})
}

// TestWatchdog_I3_SilenceIsNoVerdict: Redis that does not answer accuses no hold and
// clears no alert.
func TestWatchdog_I3_SilenceIsNoVerdict(t *testing.T) {
	run(t, nil, func(t *testing.T, w *world, d *wd.Watchdog) {
		w.add(hold(1))
		w.answer(func(context.Context, wd.Facts) wd.Status {
			s := good()
			s.Fields = 2
			return s
		})
		pass(11 * time.Second)
		w.want(t, 1, "alert 1 lock_status 2")
		if ids := d.Unhealthy(); len(ids) != 1 || ids[0] != 1 {
			t.Errorf("unhealthy: %v", ids)
		}
		w.answer(func(context.Context, wd.Facts) wd.Status { return wd.Status{Err: errors.New("silent")} })
		pass(time.Minute)
		w.want(t, 0, "clear")
		if ids := d.Unhealthy(); len(ids) != 0 {
			t.Errorf("unhealthy for not having answered: %v", ids)
		}
		v := d.Verdicts(1)[1]
		if v.Health != wd.Unknown || v.Reason != "Redis did not answer" || v.Err == nil || v.Err.Error() != "silent" {
			t.Errorf("verdict %+v", v)
		}
		w.answer(nil)
		pass(11 * time.Second)
		w.want(t, 1, "clear 1 lock_status")
		w.want(t, 1, "alert")
	})
}

// TestWatchdog_HungRedisStopsNoLocalCheck: while no question comes back the local checks
// continue, no more than two questions are under way, and the connection is reported.
func TestWatchdog_HungRedisStopsNoLocalCheck(t *testing.T) {
	for name, hang := range map[string]func(ctx context.Context) error{
		"until its ctx ends": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"longer than that":   func(ctx context.Context) error { <-ctx.Done(); time.Sleep(time.Hour); return ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			underWay, most := 0, 0
			run(t, func(w *world, _ *wd.Config) {
				count := func(ctx context.Context) error {
					w.mu.Lock()
					underWay++
					most = max(most, underWay)
					w.mu.Unlock()
					err := hang(ctx)
					w.mu.Lock()
					underWay--
					w.mu.Unlock()
					return err
				}
				w.ping = count
				w.status = func(ctx context.Context, _ wd.Facts) wd.Status { return wd.Status{Err: count(ctx)} }
			}, func(t *testing.T, w *world, d *wd.Watchdog) {
				f := hold(1)
				f.MaxHold = 10 * time.Second
				w.add(f)
				pass(30 * time.Second)
				if n := len(w.looks[1]); n < 6 {
					t.Errorf("%d looks in six periods", n)
				}
				w.want(t, 1, "stop_renewing 1 over_max_hold")
				w.want(t, 1, "alert 0 connection 2")
				if most > 2 {
					t.Errorf("%d questions at once", most)
				}
			})
		})
	}
}

// TestWatchdog_ClockJump: when the wall clock leaves the monotonic one, Redis is asked at
// once about every hold, however fresh.
func TestWatchdog_ClockJump(t *testing.T) {
	jump := time.Duration(0)
	run(t, func(w *world, c *wd.Config) {
		wd.WithWall(c, func(now time.Time) time.Time {
			w.mu.Lock()
			defer w.mu.Unlock()
			return now.Round(0).Add(jump)
		})
	}, func(t *testing.T, w *world, d *wd.Watchdog) {
		f := hold(1)
		f.RenewalTime = 4 * time.Second
		w.add(f)
		pass(21 * time.Second)
		if n := w.asked[1]; n != 0 {
			t.Fatalf("asked %d times before", n)
		}
		w.do(func() { jump = -time.Minute })
		pass(500 * time.Millisecond)
		if n := w.asked[1]; n != 1 {
			t.Errorf("asked %d times after the jump", n)
		}
		pass(20 * time.Second)
		if n := w.asked[1]; n != 1 {
			t.Errorf("asked %d times long after the jump", n)
		}
	})
}

// TestWatchdog_GoroutineScan: who causes a scan, how often, and what it concludes.
func TestWatchdog_GoroutineScan(t *testing.T) {
	var scans []time.Time
	var count atomic.Int64
	var full atomic.Bool
	count.Store(10)
	run(t, func(w *world, c *wd.Config) {
		c.HolderScanEvery = 0
		wd.WithDump(c, func() int { return int(count.Load()) }, func(buf []byte) int {
			w.do(func() { scans = append(scans, time.Now()) })
			if full.Load() {
				return len(buf)
			}
			return copy(buf, "goroutine 8 [select, 2 minutes]:\nmain.f()\n\t/f.go:1 +0x1\n")
		})
	}, func(t *testing.T, w *world, d *wd.Watchdog) {
		taken := func() (list []time.Time) {
			w.do(func() { list = slices.Clone(scans) })
			return list
		}
		plain := hold(1)
		w.add(plain)
		pass(40 * time.Second)
		if len(taken()) != 0 {
			t.Fatal("a Hold that any goroutine can release caused a scan")
		}
		gone, blocked := hold(2), hold(3)
		gone.Goroutine, blocked.Goroutine = 7, 8
		w.add(gone)
		w.add(blocked)
		pass(30 * time.Second)
		if len(taken()) != 0 {
			t.Fatal("a hold younger than its lease caused a scan")
		}
		pass(6 * time.Second)
		if len(taken()) != 1 {
			t.Fatalf("%d scans for two holds past their lease", len(taken()))
		}
		w.want(t, 1, "stop_renewing 2 holder_gone")
		w.want(t, 0, "found 3")
		if v := d.Verdicts(3)[2]; v.Finding != wd.HolderBlocked || v.Health != wd.Healthy {
			t.Errorf("the blocked holder: %+v", v)
		}
		pass(2 * time.Minute)
		for list, i := taken(), 1; i < len(list); i++ {
			if gap := list[i].Sub(list[i-1]); gap < 30*time.Second {
				t.Errorf("a scan after %v", gap)
			}
		}
		if len(taken()) < 4 {
			t.Errorf("%d scans in two minutes", len(taken()))
		}
		w.end(2)
		n := len(taken())
		count.Store(goroutines.MaxCount + 1)
		pass(40 * time.Second)
		if len(taken()) != n {
			t.Error("a scan above the limit of goroutines")
		}
		if v := d.Verdicts(3)[2]; v.Health != wd.Unknown {
			t.Errorf("without a scan: %+v", v)
		}
		count.Store(10)
		full.Store(true)
		pass(40 * time.Second)
		if v := d.Verdicts(3)[2]; v.Health != wd.Unknown || len(taken()) == n {
			t.Errorf("with a dump cut short: %+v", v)
		}
		w.want(t, 0, "found 3")
	})
}

// TestWatchdog_GoroutineEndsAfterHandingOn: the owner of the scan's question has handed
// on before the check, so its end is no fault of the hold's.
func TestWatchdog_GoroutineEndsAfterHandingOn(t *testing.T) {
	run(t, func(w *world, c *wd.Config) {
		c.HolderScanEvery = 0
		wd.WithDump(c, func() int { return 1 }, func(buf []byte) int {
			w.change(1, true, func(f *wd.Facts) { f.Goroutine, f.Since = 8, time.Now() })
			return copy(buf, "goroutine 8 [running]:\nmain.f()\n\t/f.go:1 +0x1\n")
		})
	}, func(t *testing.T, w *world, d *wd.Watchdog) {
		f := hold(1)
		f.Goroutine = 7
		w.add(f)
		pass(50 * time.Second)
		if f, _ := w.Lookup(1); f.Goroutine != 8 {
			t.Fatal("no scan took place")
		}
		w.want(t, 0, "found")
	})
}

// TestWatchdog_Verdicts: each check that has looked has its verdict, and it is a fresh one.
func TestWatchdog_Verdicts(t *testing.T) {
	run(t, nil, func(t *testing.T, w *world, d *wd.Watchdog) {
		w.add(hold(1))
		pass(time.Minute)
		if got := fmt.Sprint(len(d.Verdicts(1)), len(d.Verdicts(0)), d.Verdicts(2)); got != "3 2 []" {
			t.Errorf("verdicts %s", got)
		}
		for _, v := range append(d.Verdicts(1), d.Verdicts(0)...) {
			if age := time.Since(v.At); age > 10*time.Second || v.Health != wd.Healthy {
				t.Errorf("%v ago: %+v", age, v)
			}
		}
	})
}
