package watchdog

import "time"

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

// nextQuestion is when Redis is asked about the hold unless it has had a word for it before.
// With the default times a renewal is two periods after the one before, and one question
// lies between them:
//
//	grant             question              renewal             question             renewal
//	  ├── at most W ─────┼────── W ────────────┼─────── W ──────────┼─────── W ──────────┤
//	                            checked soon after that ─► ╎
//
// The moments are counted back from the renewal that is due, so that the word after the last
// question is that renewal's. Where that is due within a period there is nothing to ask,
// unless at most a tick later it has brought no word: it failed, or it was not sent.
func (w *Watchdog) nextQuestion(h *hold, f Facts) time.Duration {
	known, period := w.known(h, f), w.periodOf(f)
	if suspect := w.since(w.suspect); known < suspect {
		return suspect
	}
	last := known + period
	if f.Fixed || f.NextRenewal.IsZero() || h.isStopped || !h.statusClean() {
		if h.nextLook <= last {
			return w.meet(h.nextLook-tickFor(period), h.nextLook) // one visit for both
		}
		return w.meet(last-tickFor(period), last)
	}
	renewal := w.since(f.NextRenewal)
	if tick := tickFor(period); renewal <= last {
		// Its word counts from then, so the one after it is due a period later.
		end := max(last, min(last+tick, renewal+period))
		return w.meet(min(last+tick/2, end), end)
	}
	questions := (renewal - known - 1) / period // each leaves at most a period to the next word
	return w.meet(renewal-questions*period, last)
}

// meet returns a moment from first to last at which other holds are visited too: that of a
// tick or of the finest tick. Where neither lies between them it is the one before, and one
// more question follows. Only where there is no choice is it that very moment: renewals that
// keep a rhythm of two periods go out in batches, and so do the questions between them.
func (w *Watchdog) meet(first, last time.Duration) time.Duration {
	if first == last {
		return first
	}
	if tick := tickFor(w.cfg.Period); last/tick*tick >= first {
		return last / tick * tick
	}
	return last / minTick * minTick
}

// lookDue tells whether the local checks are run at a visit. They are due once a period; a
// visit that is made anyhow, for a question, may bring them half a period earlier.
func (h *hold) lookDue(r round, period time.Duration) bool {
	return !r.blind && r.at >= h.nextLook-period/2
}

// plan sets the moment before which nothing is to be done about the hold: question, look
// or deadline, whichever is first. It may be too early, never too late: what is confirmed
// meanwhile only moves it on. What is due at the present turn has been done, or is done at
// the next tick.
func (w *Watchdog) plan(h *hold, f Facts, question, now time.Duration) {
	step := tickFor(w.periodOf(f))
	next := h.nextLook
	if !f.Lost {
		next += step // it is in time for the question that waited for a renewal
		next = min(next, question)
		if !f.Deadline.IsZero() && !h.gaveUp(Renewal, ActionLose) {
			next = min(next, w.since(f.Deadline)+overGrace)
		}
	}
	if next <= now {
		next = now + step
	}
	w.places.set(h, next)
}
