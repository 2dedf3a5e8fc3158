package watchdog

import (
	"fmt"
	"maps"
	"math"
	"slices"
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

// place is where a hold stands in the loop's list, which every tick walks: the moment is
// kept beside the pointer, so that the holds that want nothing are passed over without being
// touched. 100,000 of them cost some 50 µs a tick.
type place struct {
	at   time.Duration // not before: the hold's next look, question or deadline, see plan
	hold *hold
}

// round is one tick and what it knows.
type round struct {
	now   time.Time
	at    time.Duration // the same, as moments are kept per hold
	late  time.Duration // how much later than planned it came
	blind bool          // nobody is accused, but of a deadline that has passed
	stats RenewalStats
}

// question is what Redis is asked at one tick.
type question struct {
	holds []*hold
	facts []Facts // of the same holds
}

func (q *question) add(h *hold, f Facts) {
	q.holds, q.facts = append(q.holds, h), append(q.facts, f)
}

// reset empties q, whose answer has come. Its memory serves the next question, unless this
// one was smaller than an earlier one.
func (q *question) reset() {
	if n := len(q.facts); cap(q.facts) > max(n+n/2, shrinkFrom) {
		*q = question{}
	}
	clear(q.holds)
	clear(q.facts)
	q.holds, q.facts = q.holds[:0], q.facts[:0]
}

// turn is one tick. late is how much later than planned it came.
func (w *Watchdog) turn(now time.Time, late time.Duration) {
	w.watchClock(now)
	if late > selfLateAfter(w.cfg.Period) {
		w.selfLate(now, late)
	}
	r := round{now: now, at: w.since(now), late: late, blind: now.Before(w.quiet)}
	w.follow(r.at)
	r.stats = excused(w.cfg.Source.Renewals(), late)
	for i := range w.places {
		if w.places[i].at <= r.at {
			w.visit(r, w.places[i].hold)
		}
	}
	w.pace(r.at)
	w.askStatus()
	w.lookAtProcess(now, r.blind, r.stats)
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
		for i := range w.places {
			w.places[i].at = 0
		}
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

// visit looks at a hold where that is due, and notes that Redis is to be asked about it.
func (w *Watchdog) visit(r round, h *hold) {
	f, listed := w.cfg.Source.Lookup(h.id)
	if !listed {
		return // its end is about to be told, or its lease is just being replaced
	}
	w.shortest = min(w.shortest, w.periodOf(f))
	look := r.at >= h.nextLook && !r.blind || leaseOver(r.now, f) && !h.gaveUp(Renewal)
	if !f.Lost && !w.askingStatus && len(w.asks.facts) < maxAsk && (w.askDue(r.at, h, f) || look && w.mayAsk(h, f)) {
		w.asks.add(h, f)
	}
	if !r.blind && f.scanned(r.now) && w.scanAllowed(r.now, f.Lease) {
		w.scan = scanGoroutines(r.now, w.goroutines(r.now), w.cfg.count(), w.cfg.dump)
		w.lastScan = r.now
	}
	if look {
		w.look(r, h, f)
	}
	w.plan(h, f)
}

// follow takes in the holds that have come since the last tick, and drops those that went.
func (w *Watchdog) follow(at time.Duration) {
	came, went := w.cfg.Source.Changes()
	for _, id := range came {
		if f, listed := w.cfg.Source.Lookup(id); listed && w.holds[id] == nil {
			w.adopt(at, f)
		}
	}
	for _, id := range went {
		if _, listed := w.cfg.Source.Lookup(id); !listed && w.holds[id] != nil {
			w.drop(id)
		}
	}
	if len(went) > 0 {
		w.shrink()
	}
}

// goroutines lists those that a scan is to ask about, of all holds.
func (w *Watchdog) goroutines(now time.Time) []int64 {
	ids := map[int64]bool{} // a goroutine may hold thousands
	for _, p := range w.places {
		if f, listed := w.cfg.Source.Lookup(p.hold.id); listed && f.scanned(now) {
			ids[f.Goroutine] = true
		}
	}
	return slices.Collect(maps.Keys(ids))
}

// plan sets the moment before which nothing is to be done about the hold. It may be too
// early, never too late: what is confirmed meanwhile only moves it on.
func (w *Watchdog) plan(h *hold, f Facts) {
	next := h.nextLook
	if !f.Lost {
		// The longest tick there is, since the present one may change.
		next = min(next, w.known(h, f)+w.periodOf(f)-tickFor(w.cfg.Period))
		if !f.Deadline.IsZero() && !h.gaveUp(Renewal) {
			next = min(next, w.since(f.Deadline)+overGrace)
		}
	}
	w.places[h.place].at = next
}

// pace sets the distance of ticks by the shortest period that any hold has. Each hold with
// a short one is seen at least once in each period of the Watchdog, so those of the last
// two tell.
func (w *Watchdog) pace(at time.Duration) {
	if at >= w.paced+w.cfg.Period {
		w.paced, w.before, w.shortest = at, w.shortest, w.cfg.Period
	}
	w.tick = tickFor(min(w.shortest, w.before))
}

// scanAllowed tells whether a hold with that lease may cause a goroutine scan now.
func (w *Watchdog) scanAllowed(now time.Time, lease time.Duration) bool {
	return w.cfg.HolderScanEvery > 0 &&
		(w.lastScan.IsZero() || now.Sub(w.lastScan) >= max(w.cfg.HolderScanEvery, lease))
}

// adopt begins to look after a hold. Its first look comes within one period, at a place
// that its id decides, and later ones keep that place; so holds that were taken at once
// are not looked at all at once.
func (w *Watchdog) adopt(at time.Duration, f Facts) {
	spread := float64(f.ID*0x9E3779B97F4A7C15>>32) / (1 << 32)
	h := &hold{
		id: f.ID, place: int32(len(w.places)),
		owner:    w.since(f.Since),
		nextLook: at + time.Duration(spread*float64(w.periodOf(f))),
		asked:    math.MinInt64 / 2,
	}
	w.mu.Lock()
	w.holds[f.ID] = h
	w.mu.Unlock()
	w.places = append(w.places, place{at, h})
	w.peak = max(w.peak, len(w.holds))
}

// unlist takes a hold out of the list; the last one takes its place.
func (w *Watchdog) unlist(h *hold) {
	last := len(w.places) - 1
	moved := w.places[last]
	w.places[h.place], moved.hold.place = moved, h.place
	w.places[last] = place{}
	w.places = w.places[:last]
	h.place = -1
}

// shrink makes map and list anew when most of what they held has gone, because they never
// give memory back by themselves.
func (w *Watchdog) shrink() {
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
	w.holds, w.remarks = smaller, maps.Clone(w.remarks)
	w.mu.Unlock()
	w.places = append(make([]place, 0, len(w.places)), w.places...)
	w.peak = len(smaller)
}

// known is when Redis last had a good word for the hold. A confirmed renewal is such a word,
// but not while the last answer was a bad one, because a renewal says nothing about other
// fields or the count.
func (w *Watchdog) known(h *hold, f Facts) time.Duration {
	known := h.asked
	if h.statusClean() {
		known = max(known, w.since(f.LastConfirmed))
	}
	return known
}

// mayAsk tells whether a question that is not due yet will be, because no renewal is expected
// before: it is put when the hold is looked at anyhow, since looking costs more than asking.
func (w *Watchdog) mayAsk(h *hold, f Facts) bool {
	renews := !f.Fixed && f.RenewalTime > 0 && h.statusClean() && !h.isStopped
	return !renews || w.since(f.LastConfirmed)+f.RenewalTime > w.known(h, f)+w.periodOf(f)
}

// askDue tells whether Redis must be asked about the hold now: waiting for another tick
// would leave it without a word from Redis for longer than its period.
func (w *Watchdog) askDue(at time.Duration, h *hold, f Facts) bool {
	known := w.known(h, f)
	return known < w.since(w.suspect) || at+w.tick > known+w.periodOf(f)
}
