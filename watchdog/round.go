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
	// maxAsk bounds one question to Redis, and so the memory that is kept for the next. What
	// is over it is asked when the answer is there.
	maxAsk = 4096
	// visitSize is how many holds are visited together.
	visitSize = 32
	// shrinkFrom: below it a map that was larger once is not worth making anew.
	shrinkFrom = 1024
)

// round is one tick and what it knows.
type round struct {
	now   time.Time
	at    time.Duration // the same, as moments are kept per hold
	late  time.Duration // how much later than planned it came
	blind bool          // nobody is accused, but of a deadline that has passed
	stats RenewalStats
}

// question is what Redis is asked at one tick. Its memory serves the next one: with many
// holds one comes right after the other, and a new list for each was most of the garbage.
type question struct {
	holds []*hold
	facts []Facts // of the same holds
}

// run is one round. late is how much later than planned it came.
func (w *Watchdog) run(now time.Time, late time.Duration) {
	w.watchClock(now)
	if late > selfLateAfter(w.cfg.Period) {
		w.selfLate(now, late)
	}
	r := round{now: now, at: w.since(now), late: late, blind: now.Before(w.quiet)}
	w.update(r.at)
	r.stats = excused(w.cfg.Source.Renewals(), late)
	w.visitDue(r)
	w.pace(r.at)
	w.askStatus()
	w.checkProcess(now, r.blind, r.stats)
}

// excused takes the time that this process slept off what the renewal loop is late.
func excused(s RenewalStats, late time.Duration) RenewalStats {
	if !s.NextDue.IsZero() {
		s.NextDue = s.NextDue.Add(late)
	}
	s.LoopLastRound = s.LoopLastRound.Add(late)
	return s
}

// watchClock makes every hold suspect when the wall clock jumped.
func (w *Watchdog) watchClock(now time.Time) {
	wall := w.cfg.wall(now)
	if jump := wall.Sub(w.lastWall) - now.Sub(w.lastRound); jump.Abs() > clockJump {
		w.suspect = now
		w.agenda.SetAll(func(*hold) int64 { return 0 })
	}
	w.lastRound, w.lastWall = now, wall
}

// selfLate says that this process came late, and closes the eyes for as long again (at
// most a period): the renewal loop was as late and needs time to catch up.
func (w *Watchdog) selfLate(now time.Time, late time.Duration) {
	w.lateAt = now
	w.quiet = now.Add(min(late, w.cfg.Period))
	v := unknown(Renewal, now, SelfLate, fmt.Sprintf("the watchdog's own tick came %v late", late))
	w.note(&w.process, w.aboutProcess(), v)
	w.cfg.OnSelfLate(late)
}

// due is a hold and the moment that has come for it.
type due struct {
	hold *hold
	at   int64
}

// visitDue visits every hold whose moment has come. Each is given another moment, but those
// for which the question had no room keep theirs. So they come first the next time, and
// behind a server that hangs nobody waits for longer than a round or two.
//
// It visits some together, because that costs half: see Source.LookupAll.
func (w *Watchdog) visitDue(r round) {
	var waiting []due
	for w.soonest() <= r.at {
		n := 0
		for ; n < visitSize && w.soonest() <= r.at; n++ {
			h, at := w.agenda.First()
			w.agenda.Remove(h)
			w.visits[n], w.facts[n] = due{h, at}, Facts{ID: h.id}
		}
		w.cfg.Source.LookupAll(w.facts[:n])
		for i, d := range w.visits[:n] {
			f := &w.facts[i]
			switch {
			case f.ID == 0: // its end is about to be reported, or its lease is just being replaced
				w.agenda.Set(d.hold, int64(r.at+w.tick))
			case !w.visit(r, d.hold, f):
				waiting = append(waiting, d)
			}
		}
		clear(w.visits[:n])
		clear(w.facts[:n])
	}
	for _, d := range waiting {
		w.agenda.Set(d.hold, d.at)
	}
}

// soonest returns when the first hold is to be visited; never without one.
func (w *Watchdog) soonest() time.Duration {
	if w.agenda.Len() == 0 {
		return never
	}
	_, at := w.agenda.First()
	return time.Duration(at)
}

// visit checks a hold if that is due, and collects it for a question to Redis. It
// returns false where that has no room for it now.
func (w *Watchdog) visit(r round, h *hold, f *Facts) bool {
	period := f.Period
	w.shortest = min(w.shortest, period)
	next := w.nextQuestion(h, f)
	ask := !f.Lost && next <= r.at
	full := w.askingStatus || len(w.asks.facts) >= maxAsk
	if ask && !full {
		w.asks.holds, w.asks.facts = append(w.asks.holds, h), append(w.asks.facts, *f)
	}
	if !r.blind && f.scanned(r.now) && w.scanAllowed(r.now, f.Lease) {
		w.scan = w.cfg.scan(r.now, w.goroutines(r.now))
		w.lastScan = r.now
	}
	if h.localDue(r, period) || leaseOver(r.now, *f) && !h.gaveUp(Renewal, ActionLose) {
		w.checkLocally(r, h, f)
	}
	if ask && full {
		return false
	}
	w.plan(h, f, next, r.at)
	return true
}

// update takes in the holds that have come since the last tick, and drops those that went. One that has come and is not
// listed has usually ended, but its lease may be being replaced: it is looked up once more, at the next tick.
func (w *Watchdog) update(at time.Duration) {
	came, went := w.cfg.Source.Changes()
	n := len(came)
	came = append(came, w.absent...)
	w.absent = nil
	for i, id := range came {
		switch f, listed := w.cfg.Source.Lookup(id); {
		case listed && w.holds[id] == nil:
			w.adopt(at, f)
		case !listed && i < n:
			w.absent = append(w.absent, id)
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
	for id := range w.holds {
		if f, listed := w.cfg.Source.Lookup(id); listed && f.scanned(now) {
			ids[f.Goroutine] = true
		}
	}
	return slices.Collect(maps.Keys(ids))
}

// pace sets the distance of ticks by the shortest period that any hold has. Each hold with
// a short one is seen at least once in each period of the Watchdog, so those of the last
// two decide.
func (w *Watchdog) pace(at time.Duration) {
	if at >= w.paced+w.cfg.Period {
		w.paced, w.before, w.shortest = at, w.shortest, w.cfg.Period
	}
	w.tick = tickFor(min(w.shortest, w.before))
}

// scanAllowed reports whether a hold with that lease may cause a goroutine scan now.
func (w *Watchdog) scanAllowed(now time.Time, lease time.Duration) bool {
	return w.cfg.HolderScanEvery > 0 &&
		(w.lastScan.IsZero() || now.Sub(w.lastScan) >= max(w.cfg.HolderScanEvery, lease))
}

// adopt begins to watch a hold. Its first check comes in the second half of a period, at
// a place that its id decides, or half a period earlier with its first question; so holds
// that were taken together are not all checked together.
func (w *Watchdog) adopt(at time.Duration, f Facts) {
	spread := float64(f.ID*0x9E3779B97F4A7C15>>32) / (1 << 32)
	h := &hold{
		id:        f.ID,
		owner:     w.since(f.Since),
		nextLocal: at + time.Duration((1+spread)/2*float64(f.Period)),
		asked:     math.MinInt64 / 2,
	}
	w.mu.Lock()
	w.holds[f.ID] = h
	w.mu.Unlock()
	w.shortest = min(w.shortest, f.Period)
	w.plan(h, &f, w.nextQuestion(h, &f), at-1)
	w.peak = max(w.peak, len(w.holds))
}

// shrink makes map and heap anew when most of what they held has gone, because they never
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
	w.holds = smaller
	w.mu.Unlock()
	w.agenda.Clip()
	if !w.askingStatus {
		w.asks = question{}
	}
	w.peak = len(smaller)
}
