package watchdog_test

import (
	"context"
	"errors"
	"testing"
	"time"

	wd "github.com/anteroom/anteroom/watchdog"
)

// troubles are the ways in which a hold can be in trouble, each with what is done about
// it under Default, Notify and Release. "" means that it is only reported.
var troubles = map[string]struct {
	finding wd.Finding
	bring   func(w *world)
	actions [3]string
}{
	"renewal late": {
		wd.RenewalLate,
		func(w *world) {
			w.change(1, false, func(f *wd.Facts) { f.LastConfirmed = f.LastConfirmed.Add(-15 * time.Second) })
		},
		[3]string{"hurry_renewal 1 renewal_late", "", "hurry_renewal 1 renewal_late"},
	},
	"renewal failing": {
		wd.RenewalFailing,
		func(w *world) { w.change(1, true, func(f *wd.Facts) { f.RenewalFailures = 2 }) },
		[3]string{},
	},
	"field gone": {
		wd.FieldGone,
		func(w *world) { w.answer(says(wd.Status{Answered: true, Gone: true})) },
		[3]string{"lose 1 field_gone", "lose 1 field_gone", "lose 1 field_gone"},
	},
	"foreign field": {
		wd.ForeignField,
		func(w *world) { w.answer(says(wd.Status{Answered: true, Present: true, Count: 1, Fields: 2})) },
		[3]string{"", "", "cancel 1 foreign_field"},
	},
	"wrong count": {
		wd.WrongCount,
		func(w *world) { w.answer(says(wd.Status{Answered: true, Present: true, Count: 3, Fields: 1})) },
		[3]string{"", "", "cancel 1 wrong_count"},
	},
	"no expiry": {
		wd.TTLMissing,
		func(w *world) { w.answer(says(wd.Status{Answered: true, Present: true, Count: 1, Fields: 1, TTL: -1})) },
		[3]string{"hurry_renewal 1 ttl_missing", "", "hurry_renewal 1 ttl_missing"},
	},
	"unreachable": {
		wd.HolderUnreachable,
		func(w *world) { w.change(1, true, func(f *wd.Facts) { f.Reachable = false }) },
		[3]string{"", "", "cancel 1 holder_unreachable"},
	},
	"over MaxHold": {
		wd.OverMaxHold,
		func(w *world) { w.change(1, true, func(f *wd.Facts) { f.MaxHold = 1 }) },
		[3]string{"stop_renewing 1 over_max_hold", "", "cancel 1 over_max_hold"},
	},
	"goroutine ended": {
		wd.HolderGone,
		func(w *world) {
			w.change(1, true, func(f *wd.Facts) { f.Goroutine, f.Since = 7, f.Since.Add(-time.Minute) })
		},
		[3]string{"stop_renewing 1 holder_gone", "", "delete 1 holder_gone"},
	},
	"lease over": {
		wd.LeaseOver,
		func(w *world) { w.change(1, false, func(f *wd.Facts) { f.Deadline = time.Now() }) },
		[3]string{"lose 1 lease_over", "lose 1 lease_over", "lose 1 lease_over"},
	},
}

// says is a Redis that answers the same about every hold.
func says(s wd.Status) func(context.Context, wd.Facts) wd.Status {
	return func(context.Context, wd.Facts) wd.Status { return s }
}

// scanning lets a world's dump show no goroutine but 8.
func scanning(_ *world, c *wd.Config) {
	c.HolderScanEvery = 0
	wd.WithDump(c, func() int { return 1 }, func(buf []byte) int { return copy(buf, "goroutine 8 [running]:\n") })
}

// TestRecovery_I7_PerStrategy runs every trouble under every strategy for one period and
// looks at the first action; so deletion happens in exactly one of the thirty cells.
func TestRecovery_I7_PerStrategy(t *testing.T) {
	for name, c := range troubles {
		for s := wd.Default; s <= wd.Release; s++ {
			t.Run(name+"/"+s.String(), func(t *testing.T) {
				run(t, scanning, func(t *testing.T, w *world, d *wd.Watchdog) {
					f := hold(1)
					f.Strategy = s
					w.add(f)
					pass(250 * time.Millisecond)
					c.bring(w)
					pass(5500 * time.Millisecond)
					w.mu.Lock()
					defer w.mu.Unlock()
					action := c.actions[s]
					if action == "" && len(w.actions) != 0 || action != "" && (len(w.actions) == 0 || w.actions[0] != action) {
						t.Errorf("actions %q, want %q first", w.actions, action)
					}
					if len(w.events) == 0 || w.events[0] != "found 1 "+c.finding.String() {
						t.Errorf("events %q", w.events)
					}
				})
			})
		}
	}
}

// TestRecovery_Helped: an action that helps is reported as such, and its check has run.
func TestRecovery_Helped(t *testing.T) {
	run(t, nil, func(t *testing.T, w *world, d *wd.Watchdog) {
		w.do(func() {
			w.act = func(string, uint64, wd.Finding) bool {
				go w.change(1, true, func(f *wd.Facts) { f.LastConfirmed = time.Now() })
				return true
			}
		})
		f := hold(1)
		f.LastConfirmed, f.Deadline = f.Since.Add(-16*time.Second), f.Since.Add(time.Hour)
		w.add(f)
		w.do(func() { w.alive[1] = false })
		pass(11 * time.Second)
		w.want(t, 1, "acted 1 hurry_renewal renewal_late")
		w.want(t, 1, "helped 1 hurry_renewal")
		w.want(t, 0, "alert")
		if v := d.Verdicts(1); v[len(v)-1].Check != wd.Recovery || v[len(v)-1].Health != wd.Healthy {
			t.Errorf("verdicts %+v", v)
		}
	})
}

// TestRecovery_I8_GivesUp: what does not help is tried three times, reported as given up
// once, and may be tried again only after the check has been healthy. The Recovery
// check's own alert clears with it.
func TestRecovery_I8_GivesUp(t *testing.T) {
	for name, acts := range map[string]bool{"acts in vain": true, "declines": false} {
		t.Run(name, func(t *testing.T) {
			run(t, nil, func(t *testing.T, w *world, d *wd.Watchdog) {
				w.do(func() { w.act = func(string, uint64, wd.Finding) bool { return acts } })
				f := hold(1)
				late := func(f *wd.Facts) {
					f.LastConfirmed, f.Deadline = f.Since.Add(-time.Hour), f.Since.Add(time.Hour)
				}
				w.add(f)
				w.change(1, false, late)
				pass(time.Minute)
				w.want(t, 3, "hurry_renewal 1")
				w.want(t, 1, "gave_up 1 hurry_renewal renewal_late")
				w.want(t, 1, "alert 1 renewal 2")
				if acts {
					w.want(t, 3, "not_helped 1")
					w.want(t, 1, "alert 1 recovery 2")
				} else {
					w.want(t, 3, "declined 1")
				}
				w.change(1, false, func(f *wd.Facts) { f.LastConfirmed = time.Now() })
				pass(6 * time.Second)
				w.want(t, 1, "clear 1 renewal")
				if acts {
					w.want(t, 1, "clear 1 recovery")
				}
				w.want(t, 0, "helped")
				w.change(1, false, late)
				pass(6 * time.Second)
				w.want(t, 4, "hurry_renewal 1")
			})
		})
	}
}

// TestRecovery_StoppedIsNotLate: a hold whose renewal the Watchdog itself has stopped is
// not accused of a late renewal, and its end counts as help.
func TestRecovery_StoppedIsNotLate(t *testing.T) {
	run(t, nil, func(t *testing.T, w *world, d *wd.Watchdog) {
		f := hold(1)
		f.MaxHold = time.Second
		w.add(f)
		w.do(func() {
			w.act = func(_ string, id uint64, _ wd.Finding) bool {
				f := w.holds[id]
				w.alive[id] = false
				f.Deadline = time.Now().Add(25 * time.Second)
				return true
			}
		})
		pass(29 * time.Second)
		w.want(t, 1, "stop_renewing 1 over_max_hold")
		w.want(t, 0, "hurry_renewal")
		w.want(t, 0, "not_helped")
		w.want(t, 0, "found 1 renewal_late")
		w.end(1)
		pass(time.Second)
		w.want(t, 1, "helped 1 stop_renewing over_max_hold")
		w.want(t, 1, "clear 1 holder")
	})
}

// TestRecovery_DeleteAfterCancel: when the goroutine of a cancelled hold is found to have
// ended, Release proceeds to delete.
func TestRecovery_DeleteAfterCancel(t *testing.T) {
	run(t, scanning, func(t *testing.T, w *world, d *wd.Watchdog) {
		f := hold(1)
		f.Strategy, f.MaxHold, f.Goroutine = wd.Release, time.Second, 7
		w.add(f)
		pass(6 * time.Second)
		w.want(t, 1, "cancel 1 over_max_hold")
		w.do(func() { w.act = func(_ string, id uint64, _ wd.Finding) bool { delete(w.holds, id); return true } })
		pass(40 * time.Second)
		w.want(t, 1, "delete 1 holder_gone")
		w.want(t, 1, "helped 1 delete holder_gone")
		w.want(t, 1, "cancel")
	})
}

// TestRecovery_LostHoldOfAnEndedOwner: of a hold that is lost already nothing is asked and
// nothing accused but the owner that has ended, and its place is given up under every
// strategy.
func TestRecovery_LostHoldOfAnEndedOwner(t *testing.T) {
	for s := wd.Default; s <= wd.Release; s++ {
		t.Run(s.String(), func(t *testing.T) {
			run(t, scanning, func(t *testing.T, w *world, d *wd.Watchdog) {
				w.answer(says(wd.Status{Answered: true, Gone: true}))
				w.do(func() {
					w.act = func(_ string, id uint64, _ wd.Finding) bool { delete(w.holds, id); return true }
				})
				gone, alive := hold(1), hold(2)
				for _, f := range []*wd.Facts{&gone, &alive} {
					f.Strategy, f.Lost, f.Fixed, f.RenewalTime = s, true, true, 0
					f.Since, f.Deadline, f.LastConfirmed = f.Since.Add(-time.Minute), time.Time{}, time.Time{}
				}
				gone.Goroutine, alive.Goroutine = 7, 8
				w.add(gone)
				w.add(alive)
				pass(20 * time.Second)
				w.want(t, 1, "delete 1 holder_gone")
				w.mu.Lock()
				defer w.mu.Unlock()
				if w.asked[1]+w.asked[2] != 0 {
					t.Errorf("Redis was asked about lost holds: %v", w.asked)
				}
				for _, a := range w.actions {
					if a != "delete 1 holder_gone" {
						t.Errorf("action %q", a)
					}
				}
			})
		})
	}
}

// TestRecovery_RenewalLoop: a loop that has stopped is restarted at the next tick, once,
// and again only at growing distances.
func TestRecovery_RenewalLoop(t *testing.T) {
	run(t, nil, func(t *testing.T, w *world, d *wd.Watchdog) {
		pass(time.Second)
		stuck := time.Now()
		w.do(func() { w.stats = wd.RenewalStats{NextDue: stuck, LoopLastRound: stuck} })
		pass(3100 * time.Millisecond)
		w.want(t, 1, "restart")
		pass(time.Minute)
		w.want(t, 4, "restart") // after 5, 10, 20 more seconds
		w.want(t, 1, "alert 0 renewal 2")
		w.want(t, 0, "gave_up")
		w.do(func() { w.stats = wd.RenewalStats{LoopLastRound: time.Now()} })
		pass(5 * time.Second)
		w.want(t, 1, "clear 0 renewal")
		w.want(t, 1, "clear 0 recovery")
	})
}

// TestRecovery_Connection: a dead subscription is reconnected at once, a silent Redis at
// the second time; both are never given up, and reported once.
func TestRecovery_Connection(t *testing.T) {
	broken := func(context.Context) error { return errors.New("broken") }
	run(t, nil, func(t *testing.T, w *world, d *wd.Watchdog) {
		pass(6 * time.Second)
		w.do(func() { w.delivery = broken })
		pass(5 * time.Second)
		w.want(t, 1, "reconnect")
		w.do(func() { w.delivery = nil })
		pass(5 * time.Second)
		w.want(t, 1, "helped 0 reconnect delivery_dead")
		w.want(t, 0, "alert")

		w.do(func() { w.ping = broken })
		pass(5 * time.Second)
		w.want(t, 1, "reconnect")
		w.want(t, 1, "reported 0 report redis_unreachable")
		pass(5 * time.Second)
		w.want(t, 2, "reconnect")
		w.want(t, 1, "alert 0 connection 2")
		pass(time.Hour)
		if n := w.count("reconnect"); n < 40 || n > 60 {
			t.Errorf("%d reconnections in an hour, want about one in 80 seconds", n)
		}
		w.want(t, 1, "alert 0 connection")
		w.want(t, 0, "gave_up")
		w.do(func() { w.ping = nil })
		pass(5 * time.Second)
		w.want(t, 1, "clear 0 connection")
	})
}

// TestRecovery_NextOwnerClearsFailedRecovery: an action that failed on one owner is no
// alert about the next one.
func TestRecovery_NextOwnerClearsFailedRecovery(t *testing.T) {
	run(t, scanning, func(t *testing.T, w *world, d *wd.Watchdog) {
		f := hold(1)
		f.Strategy, f.Goroutine = wd.Release, 7
		w.add(f)
		pass(50 * time.Second)
		w.want(t, 3, "delete 1 holder_gone") // acted in vain
		w.want(t, 1, "alert 1 recovery")
		w.change(1, true, func(f *wd.Facts) { f.Since, f.Goroutine = time.Now(), 8 })
		pass(6 * time.Second)
		w.want(t, 1, "clear 1 recovery")
		w.want(t, 1, "clear 1 holder")
		w.want(t, 0, "helped")
	})
}

// TestRecovery_CancelledStaysUnreachable: that a cancelled hold is not renewed any more
// does not make it a fixed lease, which may be forgotten.
func TestRecovery_CancelledStaysUnreachable(t *testing.T) {
	run(t, nil, func(t *testing.T, w *world, d *wd.Watchdog) {
		f := hold(1)
		f.Strategy, f.Reachable = wd.Release, false
		w.add(f)
		w.do(func() {
			w.act = func(_ string, id uint64, _ wd.Finding) bool {
				w.holds[id].Fixed, w.alive[id] = true, false
				return true
			}
		})
		pass(20 * time.Second)
		w.want(t, 1, "cancel 1 holder_unreachable")
		w.want(t, 0, "helped")
		w.want(t, 0, "clear")
	})
}

// TestRecovery_CancelOverlapsRenewal: a renewal that was sent before the cancellation, and
// after the question that led to it, does not count as a renewal started again.
func TestRecovery_CancelOverlapsRenewal(t *testing.T) {
	run(t, nil, func(t *testing.T, w *world, d *wd.Watchdog) {
		f := hold(1)
		f.Strategy, f.Deadline = wd.Release, f.Since.Add(time.Hour)
		w.add(f)
		w.answer(func(context.Context, wd.Facts) wd.Status {
			time.Sleep(100 * time.Millisecond)
			w.change(1, false, func(f *wd.Facts) { f.LastConfirmed = time.Now() })
			time.Sleep(100 * time.Millisecond)
			return wd.Status{Answered: true, Present: true, Count: 2, Fields: 1}
		})
		pass(6 * time.Second)
		w.want(t, 1, "cancel 1 wrong_count")
		w.answer(nil)
		pass(40 * time.Second)
		w.want(t, 0, "found 1 renewal_late")
		w.want(t, 0, "hurry_renewal")
	})
}

// TestRecovery_I8_FindingsThatAlternate: two findings of one check come in turn, one of
// which asks for an action that does not help. It is tried three times in all and given up
// once; the other one is reported once.
func TestRecovery_I8_FindingsThatAlternate(t *testing.T) {
	run(t, nil, func(t *testing.T, w *world, d *wd.Watchdog) {
		n := 0
		w.answer(func(context.Context, wd.Facts) wd.Status {
			if n++; n%2 == 1 {
				return wd.Status{Answered: true, Present: true, Count: 1, Fields: 1, TTL: -1}
			}
			return wd.Status{Answered: true, Present: true, Count: 1, Fields: 2, TTL: time.Second}
		})
		f := hold(1)
		w.add(f)
		pass(10 * time.Minute)
		w.want(t, 3, "hurry_renewal 1")
		w.want(t, 3, "acted 1 hurry_renewal ttl_missing")
		w.want(t, 3, "not_helped 1 hurry_renewal ttl_missing")
		w.want(t, 1, "gave_up 1 hurry_renewal ttl_missing")
		w.want(t, 1, "reported 1 report foreign_field")
		w.answer(nil)
		pass(6 * time.Second)
		w.want(t, 0, "helped 1")
		w.want(t, 1, "clear 1 lock_status")
		w.want(t, 1, "clear 1 recovery")
	})
}

// TestRecovery_I8_ADeadlineAfterWhatWasGivenUp: what was given up about a late renewal
// delays nothing when the lease is over.
func TestRecovery_I8_ADeadlineAfterWhatWasGivenUp(t *testing.T) {
	run(t, nil, func(t *testing.T, w *world, d *wd.Watchdog) {
		f := hold(1)
		f.LastConfirmed, f.Deadline = f.Since.Add(-time.Minute), f.Since.Add(61*time.Second)
		w.add(f)
		w.do(func() { w.alive[1] = false })
		pass(30 * time.Second)
		w.want(t, 1, "gave_up 1 hurry_renewal renewal_late")
		pass(31*time.Second + 350*time.Millisecond)
		w.want(t, 1, "lose 1 lease_over")
	})
}

// TestRecovery_I9_EachActionHasOneOutcome: whatever becomes of a hold, of its owner or of the
// Watchdog, an action that was taken ends with one outcome.
func TestRecovery_I9_EachActionHasOneOutcome(t *testing.T) {
	late := func(w *world) {
		f := hold(1)
		f.LastConfirmed, f.Deadline = f.Since.Add(-time.Minute), f.Since.Add(time.Hour)
		w.add(f)
		w.do(func() { w.alive[1] = false })
	}
	overMax := func(w *world) {
		f := hold(1)
		f.MaxHold, f.Deadline = time.Second, f.Since.Add(time.Hour)
		w.add(f)
	}
	for name, c := range map[string]struct {
		bring   func(w *world)
		then    func(w *world, d *wd.Watchdog)
		outcome string
	}{
		"the hold ends otherwise": {late, func(w *world, _ *wd.Watchdog) { w.end(1) }, "unsettled 1 hurry_renewal renewal_late"},
		"the hold ends by it":     {overMax, func(w *world, _ *wd.Watchdog) { w.end(1) }, "helped 1 stop_renewing over_max_hold"},
		"the owner changes": {overMax, func(w *world, _ *wd.Watchdog) {
			w.change(1, true, func(f *wd.Facts) { f.Since, f.MaxHold = time.Now(), 0 })
			pass(6 * time.Second)
		}, "unsettled 1 stop_renewing over_max_hold"},
		"the watchdog stops": {overMax, func(_ *world, d *wd.Watchdog) { d.Stop() }, "unsettled 1 stop_renewing over_max_hold"},
		"another action follows": {late, func(w *world, _ *wd.Watchdog) {
			w.change(1, false, func(f *wd.Facts) { f.Deadline = time.Now() })
			pass(time.Second)
			w.end(1)
		}, "unsettled 1 hurry_renewal renewal_late"},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, nil, func(t *testing.T, w *world, d *wd.Watchdog) {
				c.bring(w)
				for w.count("acted 1") == 0 {
					pass(100 * time.Millisecond)
				}
				c.then(w, d)
				pass(time.Second)
				w.want(t, 1, c.outcome)
				acted := w.count("acted 1")
				if ends := w.count("helped 1") + w.count("not_helped 1") + w.count("unsettled 1"); ends != acted {
					t.Errorf("%d actions and %d outcomes: %q", acted, ends, w.events)
				}
			})
		})
	}
}
