package watchdog

import (
	"math"
	"time"
)

// never is later than every moment.
const never = time.Duration(math.MaxInt64)

// nextQuestion is when Redis is asked about the hold unless it has had a word for it
// before. Answers from before a jump of the clock are none.
func (w *Watchdog) nextQuestion(h *hold, f *Facts) time.Duration {
	known, renewal := h.asked, never
	if h.statusClean() { // a renewal says nothing about other fields or the count
		known = max(known, w.since(f.LastConfirmed))
		if !f.Fixed && !f.NextRenewal.IsZero() && !h.stopped() {
			renewal = w.since(f.NextRenewal)
		}
	}
	if suspect := w.since(w.suspect); known < suspect {
		return suspect
	}
	return askAt(known, renewal, h.nextLocal, f.Period, tickFor(w.cfg.Period))
}

// askAt returns the moment of the next question about a hold of which Redis had a good
// word last at known, whose next renewal is due at renewal (never: none), whose local
// checks are due at local, and in which no period may pass without a word. The rhythm is that of
// the package's page: the moments are counted back from the renewal that is due, so that the
// word after the last question is that renewal's. Where that is due within a period there is
// nothing to ask, unless at most a tick later it has brought no word: it failed, or it was
// not sent. Without a renewal one visit serves for local checks and question.
func askAt(known, renewal, local, period, grid time.Duration) time.Duration {
	last, tick := known+period, tickFor(period)
	switch {
	case renewal == never:
		last = min(last, local)
		return meet(last-tick, last, grid)
	case renewal <= last:
		// Its word counts from then, so the one after it is due a period later.
		end := max(last, min(last+tick, renewal+period))
		return meet(min(last+tick/2, end), end, grid)
	}
	questions := (renewal - known - 1) / period // each leaves at most a period to the next word
	return meet(renewal-questions*period, last, grid)
}

// meet returns a moment from first to last at which other holds are visited too: that of a
// tick or of the finest tick. Where neither lies between them it is the one before, and one
// more question is asked. Only where there is no choice is it that very moment: renewals that
// keep a rhythm of two periods go out in batches, and so do the questions between them.
func meet(first, last, grid time.Duration) time.Duration {
	switch {
	case first == last:
		return first
	case last/grid*grid >= first:
		return last / grid * grid
	}
	return last / minTick * minTick
}

// localDue reports whether the local checks are run at a visit. They are due once a period; a
// visit that is made anyhow, for a question, may bring them half a period earlier.
func (h *hold) localDue(r round, period time.Duration) bool {
	return !r.blind && r.at >= h.nextLocal-period/2
}

// plan sets the moment before which nothing is to be done about the hold: question, local checks
// or deadline, whichever is first. It may be too early, never too late: what is confirmed
// meanwhile only moves it on. What is due now has been done, or is done at the next tick.
func (w *Watchdog) plan(h *hold, f *Facts, question, now time.Duration) {
	step := tickFor(f.Period)
	next := h.nextLocal
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
	w.agenda.Set(h, int64(next))
}
