package watchdog_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	wd "github.com/anteroom/anteroom/watchdog"
)

// TestWatchdog_I5_AlertOnceClearOnce: an alert comes with the AlertThreshold-th failure
// in a row, once however long it lasts, and is cleared once.
func TestWatchdog_I5_AlertOnceClearOnce(t *testing.T) {
	for threshold := 1; threshold <= 3; threshold++ {
		t.Run(fmt.Sprint(threshold), func(t *testing.T) {
			run(t, nil, func(t *testing.T, w *world, d *wd.Watchdog) {
				f := hold(1)
				f.AlertThreshold, f.Reachable = threshold, false
				w.add(f)
				alert := fmt.Sprintf("alert 1 holder %d", threshold)
				pass(time.Duration(threshold)*5*time.Second - 5*time.Second)
				w.want(t, 0, "alert")
				pass(5500 * time.Millisecond)
				w.want(t, 1, alert)
				pass(time.Minute)
				w.want(t, 1, "alert")
				w.want(t, 1, "reported 1 report holder_unreachable")
				w.change(1, true, func(f *wd.Facts) { f.Reachable = true })
				pass(time.Minute)
				w.want(t, 1, "clear 1 holder")
				w.change(1, true, func(f *wd.Facts) { f.Reachable = false })
				pass(time.Minute)
				w.want(t, 2, alert)
			})
		})
	}
}

// TestWatchdog_I5_ClearedAtTheEnd: an alert ends with the hold, with its owner, and with
// the Watchdog.
func TestWatchdog_I5_ClearedAtTheEnd(t *testing.T) {
	run(t, nil, func(t *testing.T, w *world, d *wd.Watchdog) {
		for id := range uint64(3) {
			f := hold(id + 1)
			f.Reachable = false
			w.add(f)
		}
		pass(11 * time.Second)
		w.want(t, 3, "alert")
		w.end(1)
		pass(time.Second)
		w.want(t, 1, "clear 1 holder")
		w.change(2, true, func(f *wd.Facts) { f.Since, f.Reachable = time.Now(), true })
		pass(5 * time.Second)
		w.want(t, 1, "clear 2 holder")
		d.Stop()
		w.want(t, 1, "clear 3 holder")
		w.want(t, 3, "clear")
	})
}

// TestWatchdog_I5_NextOwnerStartsAnew: failures of one owner are not counted against the
// next one.
func TestWatchdog_I5_NextOwnerStartsAnew(t *testing.T) {
	run(t, nil, func(t *testing.T, w *world, d *wd.Watchdog) {
		f := hold(1)
		f.Reachable = false
		w.add(f)
		for n := range 10 {
			for w.count("found 1 holder_unreachable") <= n {
				pass(50 * time.Millisecond)
			}
			w.change(1, true, func(f *wd.Facts) { f.Since = time.Now() })
		}
		w.want(t, 0, "alert")
		w.want(t, 10, "found 1 holder_unreachable")
	})
}

// TestWatchdog_I6_NothingIsKept_Lab: a hundred thousand holds, in trouble or not, used once
// each, leave nothing.
func TestWatchdog_I6_NothingIsKept_Lab(t *testing.T) {
	run(t, func(w *world, c *wd.Config) {
		c.OnVerdict, c.OnAlert, c.OnClear, c.OnRecovery = nil, nil, nil, nil
	}, func(t *testing.T, w *world, d *wd.Watchdog) {
		w.answer(func(_ context.Context, f wd.Facts) wd.Status {
			s := good()
			s.Fields = int64(f.ID % 2)
			return s
		})
		const batch = 5000
		for base := uint64(1); base < 100_000; base += batch {
			for id := base; id < base+batch; id++ {
				f := hold(id)
				f.Reachable = id%3 != 0
				w.add(f)
			}
			pass(6 * time.Second)
			if holds, troubles := wd.Kept(d); holds != batch || troubles < batch/3 {
				t.Fatalf("%d holds kept, %d in trouble", holds, troubles)
			}
			w.do(func() { clear(w.holds) })
			pass(time.Second)
			if holds, _ := wd.Kept(d); holds != 0 {
				t.Fatalf("%d holds kept after their end", holds)
			}
		}
		if v := d.Verdicts(1); v != nil {
			t.Errorf("verdicts of an ended hold: %+v", v)
		}
	})
}

// TestWatchdog_TroubleIsForgotten: the rare part of a hold's state goes when the hold is
// healthy again.
func TestWatchdog_TroubleIsForgotten(t *testing.T) {
	run(t, nil, func(t *testing.T, w *world, d *wd.Watchdog) {
		f := hold(1)
		f.Reachable = false
		w.add(f)
		pass(11 * time.Second)
		if _, troubles := wd.Kept(d); troubles != 1 {
			t.Fatal("no trouble kept")
		}
		w.change(1, true, func(f *wd.Facts) { f.Reachable = true })
		pass(16 * time.Second)
		if _, troubles := wd.Kept(d); troubles != 0 {
			t.Error("trouble is kept for a healthy hold")
		}
	})
}
