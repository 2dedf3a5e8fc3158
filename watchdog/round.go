package watchdog

import (
	"fmt"
	"math"
	"time"
)

const (
	// clockJump is how far the wall clock may leave the monotonic one within a tick.
	// Beyond it the machine may have slept, while leases in Redis ran on.
	clockJump = time.Second
	// maxAsk bounds one question to Redis; what is over it is asked at the next tick,
	// which also spreads holds that were all taken at once.
	maxAsk = 16_384
	// shrinkFrom: below it a map that was larger once is not worth making anew.
	shrinkFrom = 1024
)

// subject is a hold that is due, with the facts of this turn.
type subject struct {
	hold  *hold
	facts Facts
}

// gathered is what one pass over all holds found due.
type gathered struct {
	looks []subject // for the local checks
	asks  []Facts   // for Redis
	scan  []int64   // goroutines to scan for; nil where no scan is due
}

// turn is one tick. late is how much later than planned it came.
func (w *Watchdog) turn(now time.Time, late time.Duration) {
	w.watchClock(now)
	if late > selfLateAfter(w.cfg.Period) {
		w.selfLate(now, late)
	}
	blind := now.Before(w.quiet)
	due := w.gather(now, blind)
	if len(due.scan) > 0 {
		w.lastScan = now
		w.scan = scanGoroutines(now, due.scan, w.cfg.count(), w.cfg.dump)
	}
	stats := excused(w.cfg.Source.Renewals(), late)
	for _, s := range due.looks {
		w.look(now, late, blind, s, stats)
	}
	w.askStatus(due.asks)
	w.lookAtProcess(now, blind, stats)
}

// excused takes the time that this process slept off what the renewal loop is late.
func excused(s RenewalStats, late time.Duration) RenewalStats {
	if !s.NextDue.IsZero() {
		s.NextDue = s.NextDue.Add(late)
	}
	s.LoopLastTurn = s.LoopLastTurn.Add(late)
	return s
}

// watchClock makes every hold suspect when the wall clock jumped.
func (w *Watchdog) watchClock(now time.Time) {
	wall := w.cfg.wall(now)
	if jump := wall.Sub(w.lastWall) - now.Sub(w.lastTurn); jump.Abs() > clockJump {
		w.suspect = now
	}
	w.lastTurn, w.lastWall = now, wall
}

// selfLate says that this process came late, and closes the eyes for as long again (at
// most a period): the renewal loop was as late and needs time to catch up.
func (w *Watchdog) selfLate(now time.Time, late time.Duration) {
	w.lateAt = now
	w.quiet = now.Add(min(late, w.cfg.Period))
	v := unknown(Renewal, now, SelfLate, fmt.Sprintf("the watchdog's own tick came %v late", late))
	w.record(&w.process, w.aboutProcess(), v)
	w.cfg.OnSelfLate(late)
}

// gather passes once over all holds, takes in new ones, drops those that have ended,
// and returns what is due. Nothing is judged here, because Source may hold its locks.
func (w *Watchdog) gather(now time.Time, blind bool) gathered {
	due := gathered{looks: make([]subject, 0, len(w.holds)/ticksPerPeriod)}
	w.round++
	at, listed, shortest, wanted := w.since(now), 0, w.cfg.Period, false
	scanning := !blind && w.scanAllowed(now, 0)
	w.cfg.Source.Each(func(f Facts) bool {
		h := w.holds[f.ID]
		if f.ID == 0 || h != nil && h.seen == w.round {
			return true
		}
		if h == nil {
			h = w.adopt(at, f)
		}
		h.seen = w.round
		listed++
		shortest = min(shortest, w.periodOf(f))
		if at >= h.nextLook && !blind || leaseOver(now, f) && !h.gaveUp(Renewal) {
			due.looks = append(due.looks, subject{h, f})
		}
		if !f.Lost && !w.askingStatus && len(due.asks) < maxAsk && w.askDue(at, h, f) {
			due.asks = append(due.asks, f)
		}
		if scanning && f.scanned(now) {
			due.scan = append(due.scan, f.Goroutine)
			wanted = wanted || w.scanAllowed(now, f.Lease)
		}
		return true
	})
	if !wanted {
		due.scan = nil
	}
	w.tick = tickFor(shortest)
	w.sweep(listed)
	return due
}

// scanAllowed tells whether a hold with that lease may cause a goroutine scan now.
func (w *Watchdog) scanAllowed(now time.Time, lease time.Duration) bool {
	return w.cfg.HolderScanEvery > 0 &&
		(w.lastScan.IsZero() || now.Sub(w.lastScan) >= max(w.cfg.HolderScanEvery, lease))
}

// adopt begins to look after a hold. Its first look comes within one period, at a place
// that its id decides, and later ones keep that place; so holds that were taken at once
// are not looked at all at once.
func (w *Watchdog) adopt(at time.Duration, f Facts) *hold {
	spread := float64(f.ID*0x9E3779B97F4A7C15>>32) / (1 << 32)
	h := &hold{
		owner:    w.since(f.Since),
		nextLook: at + time.Duration(spread*float64(w.periodOf(f))),
		asked:    math.MinInt64,
	}
	w.mu.Lock()
	w.holds[f.ID] = h
	w.mu.Unlock()
	w.peak = max(w.peak, len(w.holds))
	return h
}

// sweep drops the holds that this round did not see. The map is made anew when most of
// it was dropped, because a map never gives memory back.
func (w *Watchdog) sweep(listed int) {
	if listed == len(w.holds) {
		return
	}
	for id, h := range w.holds {
		if h.seen != w.round {
			w.drop(id)
		}
	}
	if len(w.holds) == 0 {
		w.scan = Goroutines{}
	}
	if w.peak < shrinkFrom || len(w.holds) > w.peak/4 {
		return
	}
	smaller := make(map[uint64]*hold, len(w.holds))
	for id, h := range w.holds {
		smaller[id] = h
	}
	w.mu.Lock()
	w.holds = smaller
	w.mu.Unlock()
	w.peak = len(smaller)
}

// askDue tells whether Redis must be asked about the hold now: waiting for another tick
// would leave it without a word from Redis for longer than its period. A confirmed
// renewal is such a word, but not while the last answer was a bad one, because a renewal
// says nothing about other fields or the count.
func (w *Watchdog) askDue(at time.Duration, h *hold, f Facts) bool {
	known := h.asked
	if h.statusClean() {
		known = max(known, w.since(f.LastConfirmed))
	}
	return known < w.since(w.suspect) || at+w.tick > known+w.periodOf(f)
}
