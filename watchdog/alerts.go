package watchdog

import "time"

// hold is what the Watchdog keeps for one hold, and once for the process as a whole.
// Only the loop writes it; last and trouble are written under Watchdog.mu because
// Verdicts reads them. Of a healthy hold no more than this is kept, since a process may
// have 100,000 of them.
type hold struct {
	id       uint64        // Facts.ID
	owner    time.Duration // Facts.Since of the owner that holder verdicts are about
	nextLook time.Duration // when the local checks are due
	asked    time.Duration // when Redis was last asked and answered; the least value before that
	// stopped is when the Watchdog stopped its renewal, so that a renewal that does not
	// come is no fault; isStopped: it did.
	stopped time.Duration
	last    [checkCount]time.Duration // when each check reached its last verdict, after Watchdog.epoch
	trouble *trouble                  // nil while all these verdicts are healthy, without a remark
	place   int32                     // in Watchdog.places; the loop's
	set     uint8                     // a bit for each check that has reached a verdict at all

	isStopped bool
	// remarked: the last verdict of Holder is healthy with the remark HolderBlocked, whose
	// reason stands in Watchdog.remarks. All locks of a goroutine that works for long get
	// one, so that it must not cost a trouble.
	remarked bool
}

// trouble is the rare rest of a hold's state.
type trouble struct {
	facts    Facts // the latest, for OnClear after the hold has ended
	verdicts [checkCount]record
	reasons  [checkCount]string
	remedy   [checkCount]*remedy
}

// record is the last verdict of one check, without its moment and its text. The zero
// value is that of a check that has not spoken.
type record struct {
	fails   int32 // Unhealthy verdicts in a row; Unknown leaves it alone
	health  Health
	finding Finding
	alerted bool // OnAlert was called and OnClear was not yet
}

// isSet tells whether the check has reached a verdict.
func (h *hold) isSet(c Check) bool { return h.set&(1<<c) != 0 }

// verdict returns the last verdict of a check.
func (h *hold) verdict(c Check) record {
	switch {
	case h.trouble != nil:
		return h.trouble.verdicts[c]
	case h.remarked && c == Holder:
		return record{health: Healthy, finding: HolderBlocked}
	case h.isSet(c):
		return record{health: Healthy}
	}
	return record{}
}

// inTrouble makes the place for what is not healthy, and fills in that all else is. The
// caller has Watchdog.mu.
func (w *Watchdog) inTrouble(h *hold) {
	if h.trouble != nil {
		return
	}
	t := new(trouble)
	for c := range t.verdicts {
		t.verdicts[c] = h.verdict(Check(c))
	}
	t.reasons[Holder] = w.remarks[h.id]
	w.unremark(h)
	h.trouble = t
}

// remark notes a remark of the holder check on a hold that is not in trouble, and unremark
// that there is none. The caller has Watchdog.mu.
func (w *Watchdog) remark(h *hold, reason string) {
	h.remarked, w.remarks[h.id] = true, reason
}

func (w *Watchdog) unremark(h *hold) {
	if h.remarked {
		h.remarked = false
		delete(w.remarks, h.id)
	}
}

// remedy returns what is being done about the check, or nil.
func (h *hold) remedy(c Check) *remedy {
	if h.trouble == nil {
		return nil
	}
	return h.trouble.remedy[c]
}

// newRemedy opens an episode. record has made sure that trouble exists, since a remedy
// follows an Unhealthy verdict only.
func (h *hold) newRemedy(c Check, f Facts) *remedy {
	h.trouble.facts = f
	h.trouble.remedy[c] = new(remedy)
	return h.trouble.remedy[c]
}

// statusClean tells that Redis' last word on the hold was not a bad one, so that a
// confirmed renewal may stand for the next one.
func (h *hold) statusClean() bool {
	last := h.verdict(LockStatus)
	return last.finding == None && last.fails == 0
}

// gaveUp tells that the action is not taken any more for the check.
func (h *hold) gaveUp(c Check, action string) bool {
	r := h.remedy(c)
	return r != nil && r.tries[action] > maxTries
}

// failing tells that an action for another check than c did not help and its episode is
// still open, so that the Recovery check as a whole is not healthy.
func (h *hold) failing(c Check) bool {
	for other := range h.last {
		if r := h.remedy(Check(other)); r != nil && r.failed && other != int(c) {
			return true
		}
	}
	return false
}

// forget closes an episode.
func (h *hold) forget(c Check) {
	if h.trouble != nil {
		h.trouble.remedy[c] = nil
	}
}

// stoppedRenewing tells that the Watchdog stopped the renewal and that nothing has
// renewed the hold since. A confirmation younger than that shows that somebody started it
// again.
func (h *hold) stoppedRenewing(w *Watchdog, f Facts) bool {
	return h.isStopped && w.since(f.LastConfirmed) <= h.stopped
}

// quiet tells that nothing in trouble is of use any more.
func (h *hold) quiet() bool {
	for c, r := range h.trouble.verdicts {
		calm := record{}
		if h.isSet(Check(c)) {
			calm.health = Healthy
		}
		if r != calm || h.trouble.reasons[c] != "" || h.trouble.remedy[c] != nil {
			return false
		}
	}
	return true
}

// record keeps the verdict, reports it, and raises or clears the alert of its check.
func (w *Watchdog) record(h *hold, f Facts, v Verdict) {
	w.mu.Lock()
	if w.lastRun[v.Check].Before(v.At) {
		w.lastRun[v.Check] = v.At
	}
	h.last[v.Check] = w.since(v.At)
	var raise, clear bool
	var fails int
	h.set |= 1 << v.Check
	switch remark := v.Health == Healthy && v.Check == Holder && v.Finding == HolderBlocked; {
	case h.trouble == nil && remark:
		w.remark(h, v.Reason)
	case h.trouble != nil || v.Health != Healthy || v.Reason != "":
		w.inTrouble(h)
		raise, clear, fails = w.note(h, f, v)
	case v.Check == Holder:
		w.unremark(h)
	}
	w.mu.Unlock()

	w.cfg.OnVerdict(f, v)
	if raise {
		w.cfg.OnAlert(f, v.Check, fails)
	}
	if clear {
		w.cfg.OnClear(f, v.Check)
	}
}

// note keeps a verdict that is not healthy, or comes after one that was not, and tells
// whether an alert is to be raised or cleared. The caller has Watchdog.mu.
func (w *Watchdog) note(h *hold, f Facts, v Verdict) (raise, clear bool, fails int) {
	r := &h.trouble.verdicts[v.Check]
	r.health, r.finding = v.Health, v.Finding
	switch v.Health {
	case Unhealthy:
		r.fails++
		if raise = !r.alerted && int(r.fails) >= w.thresholdOf(f); raise {
			r.alerted = true
		}
	case Healthy:
		clear, r.alerted, r.fails = r.alerted, false, 0
	}
	fails = int(r.fails)
	h.trouble.facts = f
	h.trouble.reasons[v.Check] = v.Reason
	if h.quiet() {
		h.trouble = nil
	}
	return raise, clear, fails
}

// reset drops what one check has said about a hold, because its subject has changed.
func (w *Watchdog) reset(now time.Time, h *hold, f Facts, c Check) {
	w.mu.Lock()
	clear := h.verdict(c).alerted
	h.set &^= 1 << c
	if c == Holder {
		w.unremark(h)
	}
	if h.trouble != nil {
		h.trouble.verdicts[c] = record{}
		h.trouble.reasons[c] = ""
	}
	w.mu.Unlock()
	if r := h.remedy(c); r != nil {
		w.endEpisode(h, r, f, healthy(c, now))
	}
	if clear {
		w.cfg.OnClear(f, c)
	}
}

// drop ends the state of a hold that is not listed any more: alerts are cleared, and an
// action that was meant to end the hold has helped.
func (w *Watchdog) drop(id uint64) {
	w.mu.Lock()
	h := w.holds[id]
	delete(w.holds, id)
	w.unremark(h)
	w.mu.Unlock()
	w.places.remove(h)
	if h.trouble != nil {
		w.closeEpisodes(h, true)
	}
}

// closeEpisodes clears every alert of a hold that is not looked at any more, and says what
// came of pending actions: where the hold has ended, which was the aim of some of them.
func (w *Watchdog) closeEpisodes(h *hold, ended bool) {
	f := h.trouble.facts
	for c := range h.last {
		r := h.trouble.remedy[c]
		if r == nil || !r.pending {
			continue
		}
		v := unhealthy(Check(c), w.epoch.Add(h.last[c]), r.attempt.Finding, h.trouble.reasons[c])
		if ended && endsHold(r.attempt.Action) {
			w.cfg.OnRecovery(f, v, r.attempt.Action, Helped)
		} else {
			w.unsettled(r, f, v)
		}
	}
	for c := range h.last {
		w.mu.Lock()
		clear := h.trouble.verdicts[c].alerted
		h.trouble.verdicts[c].alerted = false
		w.mu.Unlock()
		if clear {
			w.cfg.OnClear(f, Check(c))
		}
	}
}
