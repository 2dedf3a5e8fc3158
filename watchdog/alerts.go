package watchdog

import "time"

// hold is what the Watchdog keeps for one hold, and once for the process as a whole.
// Only the loop writes it; last, set, remark and concerns are written under Watchdog.mu
// because Verdicts reads them. Of a healthy hold no more than this is kept, since a process
// may have 100,000 of them.
type hold struct {
	id        uint64                    // Facts.ID
	owner     time.Duration             // Facts.Since of the owner that holder verdicts are about
	nextLocal time.Duration             // when the local checks are due
	asked     time.Duration             // when Redis was last asked and answered; the least value before that
	last      [checkCount]time.Duration // when each check reached its last verdict, after Watchdog.epoch
	concerns  *concerns                 // nil while all these verdicts are healthy and nothing was done
	// remark is the reason of a Holder verdict that is healthy with the finding
	// HolderBlocked, otherwise nil. All locks of a goroutine that works for long get one, so
	// it must not cost concerns.
	remark *string
	place  int32 // in Watchdog.agenda
	set    uint8 // a bit for each check that has reached a verdict at all
}

// Place is for the heap.
func (h *hold) Place() *int32 { return &h.place }

// concerns is the rare part of a hold's state.
type concerns struct {
	facts Facts // the latest, for OnClear after the hold has ended
	of    [checkCount]concern
	// stopped is when the Watchdog stopped its renewal, so that a renewal that does not
	// come is no fault; zero: it did not.
	stopped time.Time
}

// concern is what one check holds against a hold. The zero value is that of a check
// that has not spoken.
type concern struct {
	reason  string
	err     error    // Verdict.Err
	episode *episode // what is being done about it
	fails   int32    // Unhealthy verdicts in a row; Unknown leaves it alone
	health  Health
	finding Finding
	alerted bool // OnAlert was called and OnClear was not yet
}

// isSet reports whether the check has reached a verdict.
func (h *hold) isSet(c Check) bool { return h.set&(1<<c) != 0 }

// concern returns what a check holds against the hold.
func (h *hold) concern(c Check) concern {
	switch {
	case h.concerns != nil:
		return h.concerns.of[c]
	case h.remark != nil && c == Holder:
		return concern{health: Healthy, finding: HolderBlocked, reason: *h.remark}
	case h.isSet(c):
		return concern{health: Healthy}
	}
	return concern{}
}

// worry makes the place for what is not healthy, and fills in that all else is. The
// caller has Watchdog.mu.
func (h *hold) worry() {
	if h.concerns != nil {
		return
	}
	var all concerns
	for c := range all.of {
		all.of[c] = h.concern(Check(c))
	}
	h.remark, h.concerns = nil, &all
}

// episode returns what is being done about the check, or nil.
func (h *hold) episode(c Check) *episode {
	if h.concerns == nil {
		return nil
	}
	return h.concerns.of[c].episode
}

// statusClean reports whether Redis' last word on the hold was not a bad one, so that a
// confirmed renewal may replace the next one.
func (h *hold) statusClean() bool {
	last := h.concern(LockStatus)
	return last.finding == None && last.fails == 0
}

// gaveUp reports whether the action is not taken any more for the check.
func (h *hold) gaveUp(c Check, action string) bool {
	e := h.episode(c)
	return e != nil && e.tries[action] > maxTries
}

// failing reports whether an action for another check than c did not help and its episode is
// still open, so that the Recovery check as a whole is not healthy.
func (h *hold) failing(c Check) bool {
	for other := range h.last {
		if e := h.episode(Check(other)); e != nil && e.failed && other != int(c) {
			return true
		}
	}
	return false
}

// stopped reports whether the Watchdog stopped the renewal.
func (h *hold) stopped() bool { return h.concerns != nil && !h.concerns.stopped.IsZero() }

// stoppedRenewing reports whether the Watchdog stopped the renewal and that nothing has
// renewed the hold since. A confirmation younger than that shows that somebody started it
// again.
func (h *hold) stoppedRenewing(f *Facts) bool {
	return h.stopped() && !f.LastConfirmed.After(h.concerns.stopped)
}

// calm reports whether nothing in concerns is of use any more.
func (h *hold) calm() bool {
	for c, now := range h.concerns.of {
		calm := concern{}
		if h.isSet(Check(c)) {
			calm.health = Healthy
		}
		if now != calm {
			return false
		}
	}
	return h.concerns.stopped.IsZero()
}

// note keeps the verdict, reports it, and raises or clears the alert of its check.
func (w *Watchdog) note(h *hold, f *Facts, v Verdict) {
	w.mu.Lock()
	h.last[v.Check] = w.since(v.At)
	h.set |= 1 << v.Check
	var raised, cleared bool
	var fails int
	switch blocked := v.Health == Healthy && v.Finding == HolderBlocked; {
	case h.concerns == nil && blocked:
		if h.remark == nil || *h.remark != v.Reason {
			reason := v.Reason
			h.remark = &reason
		}
	case h.concerns != nil || v.Health != Healthy || v.Reason != "":
		h.worry()
		raised, cleared, fails = w.weigh(h, f, v)
	case v.Check == Holder:
		h.remark = nil
	}
	w.mu.Unlock()

	w.cfg.OnVerdict(*f, v)
	if raised {
		w.cfg.OnAlert(*f, v.Check, fails)
	}
	if cleared {
		w.cfg.OnClear(*f, v.Check)
	}
}

// weigh keeps a verdict that is not healthy, or comes after one that was not, and reports
// whether an alert is to be raised or cleared. The caller has Watchdog.mu.
func (w *Watchdog) weigh(h *hold, f *Facts, v Verdict) (raise, clear bool, fails int) {
	c := &h.concerns.of[v.Check]
	c.health, c.finding, c.reason, c.err = v.Health, v.Finding, v.Reason, v.Err
	switch v.Health {
	case Unhealthy:
		c.fails++
		raise = !c.alerted && int(c.fails) >= f.AlertThreshold
		c.alerted = c.alerted || raise
	case Healthy:
		clear, c.alerted, c.fails = c.alerted, false, 0
	}
	fails = int(c.fails)
	h.concerns.facts = *f
	if h.calm() {
		h.concerns = nil
	}
	return raise, clear, fails
}

// newOwner drops what the holder check has said about the owner before.
func (w *Watchdog) newOwner(now time.Time, h *hold, f *Facts) {
	if e := h.episode(Holder); e != nil {
		w.endEpisode(h, e, f, healthy(Holder, now))
	}
	w.mu.Lock()
	cleared := h.concern(Holder).alerted
	h.set &^= 1 << Holder
	h.remark = nil
	if h.concerns != nil {
		h.concerns.of[Holder] = concern{}
	}
	w.mu.Unlock()
	if cleared {
		w.cfg.OnClear(*f, Holder)
	}
}

// drop ends the state of a hold that is not listed any more: alerts are cleared, and an
// action that was meant to end the hold has helped.
func (w *Watchdog) drop(id uint64) {
	w.mu.Lock()
	h := w.holds[id]
	delete(w.holds, id)
	w.mu.Unlock()
	w.agenda.Remove(h)
	w.close(h, true)
}

// close clears every alert of a hold that is not checked any more, and reports what
// came of pending actions: where the hold has ended, which was the aim of some of them.
func (w *Watchdog) close(h *hold, ended bool) {
	if h.concerns == nil {
		return
	}
	f := h.concerns.facts
	for c := range h.last {
		e := h.episode(Check(c))
		if e == nil {
			continue
		}
		v := unhealthy(Check(c), w.epoch.Add(h.last[c]), e.attempt.Finding, h.concerns.of[c].reason)
		if ended && endsHold(e.attempt.Action) {
			w.outcome(e, &f, v, Helped)
		} else {
			w.outcome(e, &f, v, Unsettled)
		}
	}
	for c := range h.last {
		w.mu.Lock()
		cleared := h.concerns.of[c].alerted
		h.concerns.of[c].alerted = false
		w.mu.Unlock()
		if cleared {
			w.cfg.OnClear(f, Check(c))
		}
	}
}
