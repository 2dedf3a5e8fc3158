package watchdog_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	wd "github.com/anteroom/anteroom/watchdog"
)

// TestWatchdog_I4_NoPeriodWithoutAWordAtAnyRhythm: where nothing fails, no hold is longer than a period
// without a word from Redis, whatever renewals and periods are to each other.
func TestWatchdog_I4_NoPeriodWithoutAWordAtAnyRhythm(t *testing.T) {
	for _, c := range []struct{ period, renewals time.Duration }{
		{5 * time.Second, 4 * time.Second},
		{5 * time.Second, 5200 * time.Millisecond},
		{5 * time.Second, 5400 * time.Millisecond},
		{5 * time.Second, 10 * time.Second},
		{5 * time.Second, 23 * time.Second},
		{time.Hour, 65 * time.Minute},
	} {
		run(t, func(_ *world, cfg *wd.Config) { cfg.Period = c.period }, func(t *testing.T, w *world, _ *wd.Watchdog) {
			f := hold(1)
			f.Period, f.RenewalTime, f.Lease = c.period, c.renewals, 10*c.renewals
			f.Deadline = f.Since.Add(f.Lease * 19 / 20)
			w.add(f)
			pass(20 * c.renewals)
			w.do(func() {
				last, questions := f.Since, w.askedAt
				for k := range 20 {
					renewal := f.Since.Add(time.Duration(k+1) * c.renewals)
					words := []time.Time{renewal}
					for len(questions) > 0 && questions[0].Before(renewal) {
						words, questions = append(words[:len(words)-1], questions[0], renewal), questions[1:]
					}
					for _, word := range words {
						if gap := word.Sub(last); gap > c.period {
							t.Errorf("period %v, renewals every %v: %v without a word", c.period, c.renewals, gap)
						}
						last = word
					}
				}
			})
		})
	}
}

// TestWatchdog_AnAnswerFromBeforeTheJump: a hold about which a question is open when the
// clock jumps is asked about again at once, not a tenth of its period later.
func TestWatchdog_AnAnswerFromBeforeTheJump(t *testing.T) {
	var jump atomic.Int64
	run(t, func(_ *world, c *wd.Config) {
		c.Period = time.Hour
		wd.WithWall(c, func(now time.Time) time.Time { return now.Round(0).Add(time.Duration(jump.Load())) })
	}, func(t *testing.T, w *world, _ *wd.Watchdog) {
		f := fixedHold(1)
		f.Lease, f.Deadline, f.Period = 100*time.Hour, f.Since.Add(100*time.Hour), time.Hour
		w.add(f)
		brisk := f // keeps the ticks short
		brisk.ID, brisk.Period = 2, time.Second
		w.add(brisk)
		var asked []time.Time
		w.answer(func(_ context.Context, f wd.Facts) wd.Status {
			if f.ID == 1 {
				if asked = append(asked, time.Now()); len(asked) == 1 {
					time.Sleep(900 * time.Millisecond)
				}
			}
			return good()
		})
		for first := true; first; w.do(func() { first = len(asked) == 0 }) {
			pass(100 * time.Millisecond)
		}
		pass(100 * time.Millisecond)
		jump.Store(int64(10 * time.Second))
		jumped := time.Now()
		pass(20 * time.Minute)
		w.do(func() {
			if len(asked) < 2 || asked[1].Sub(jumped) > 3*time.Second {
				t.Errorf("the clock jumped at %v, asked at %v", jumped, asked)
			}
		})
	})
}

// TestWatchdog_LeaseOverIsToldInTime: the visit that is planned for the end of a lease finds
// that it has ended.
func TestWatchdog_LeaseOverIsToldInTime(t *testing.T) {
	run(t, func(_ *world, c *wd.Config) { c.Period = time.Hour }, func(t *testing.T, w *world, _ *wd.Watchdog) {
		f := fixedHold(1)
		f.Period, f.Lease, f.Deadline = time.Hour, 20*time.Minute, f.Since.Add(20*time.Minute)
		w.add(f)
		var told time.Time
		w.do(func() {
			w.act = func(action string, _ uint64, _ wd.Finding) bool {
				if action == "lose" && told.IsZero() {
					told = time.Now()
				}
				return true
			}
		})
		pass(50 * time.Minute)
		w.do(func() {
			if late := told.Sub(f.Deadline); late < 0 || late > time.Second {
				t.Errorf("told %v after the deadline", late)
			}
		})
	})
}
