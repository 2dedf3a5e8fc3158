package watchdog

import (
	"fmt"
	"time"
)

// The actions, as OnRecovery names them. The set is closed.
const (
	// ActionReport: the finding is reported and nothing is done, because nothing can be done or the
	// strategy asks for no more. No Actor sees it.
	ActionReport = "report"
	// ActionRestartRenewal replaces a renewal loop that does not turn.
	ActionRestartRenewal = "restart_renewal"
	// ActionHurryRenewal makes the hold's renewal due now.
	ActionHurryRenewal = "hurry_renewal"
	// ActionReconnect makes a new subscription connection: places are confirmed, and a listener for a release asks.
	ActionReconnect = "reconnect"
	// ActionLose concludes that the hold is lost (FieldGone, LeaseOver) and notifies its holder.
	ActionLose = "lose"
	// ActionStopRenewing lets the lease end by itself.
	ActionStopRenewing = "stop_renewing"
	// ActionCancel ends the hold's context and stops renewing.
	ActionCancel = "cancel"
	// ActionDelete ends the hold and releases it in Redis: only for HolderGone under
	// Release, when nobody is left who could run under the lock. Of a lost hold nothing is
	// in Redis any more, and under every strategy its place is given to the next waiter of
	// this process.
	ActionDelete = "delete"
)

// RecoveryOutcome says what came of an action. The set is closed.
type RecoveryOutcome uint8

const (
	// Reported: the finding was reported, and nothing else was meant to happen.
	Reported RecoveryOutcome = iota
	// Acted: the action was taken; whether it helped is checked next time.
	Acted
	// Declined: the Actor had nothing to act on, mostly because the hold ended
	// meanwhile.
	Declined
	// Helped: the check is healthy again, or the hold that prevented that has ended.
	Helped
	// NotHelped: the finding is still there.
	NotHelped
	// GaveUp: the action was tried as often as makes sense, and is not tried again
	// before the check has been healthy.
	GaveUp
	// Unsettled: the action was taken, and it will not be known whether it helped: something
	// else was done about the check first, or the hold ended otherwise, or its owner
	// changed, or the Watchdog stopped.
	Unsettled
)

// String returns the outcome's name as metrics and logs show it.
func (o RecoveryOutcome) String() string {
	return nameOf(o, "reported", "acted", "declined", "helped", "not_helped", "gave_up", "unsettled")
}

const (
	// maxTries bounds how often one action is taken on one hold, for one check, before that
	// check has been healthy again.
	maxTries = 3
	// maxBackoff bounds the pause, in periods, between two actions on the process as a
	// whole. These are never given up: a connection may come back after a day.
	maxBackoff = 16
)

// Attempt is one action whose outcome is not known yet.
type Attempt struct {
	// Check and Finding are what it is meant to mend; Action is what was done.
	Check   Check
	Finding Finding
	Action  string
	// At is when it was done. Until is the moment before which a lasting finding
	// proves nothing: a lease that was left to end takes its time.
	At, Until time.Time
}

// CheckRecovery judges whether an action helped, by the latest verdict of the check
// that it was meant to mend. Without a verdict reached after the action, and before
// Until, there is no verdict on the action either. It reads nothing but its arguments.
func CheckRecovery(now time.Time, a Attempt, latest Verdict) Verdict {
	switch {
	case latest.Check != a.Check || latest.Health == Unknown || !latest.At.After(a.At):
		return unknown(Recovery, now, None, "nothing was checked since")
	case latest.Health == Healthy:
		return healthy(Recovery, now)
	case latest.Finding != a.Finding:
		return unknown(Recovery, now, None, "something else is found now")
	case now.Before(a.Until):
		return unknown(Recovery, now, None, "the lease has not ended yet")
	}
	return unhealthy(Recovery, now, RecoveryFailed,
		fmt.Sprintf("%s did not mend %s", a.Action, a.Finding))
}

// plan chooses the action for an Unhealthy verdict. renews says that the hold's
// renewal is alive, so that hurrying it means something; fails is the row of failures including this one.
func plan(f Facts, v Verdict, renews bool, fails int) string {
	switch v.Finding {
	case LeaseOver, FieldGone:
		return ActionLose
	case RenewalLate, TTLMissing:
		if f.Strategy != Notify && renews {
			return ActionHurryRenewal
		}
	case ForeignField, WrongCount, HolderUnreachable:
		// The work may still run, so by default the lock is kept.
		if f.Strategy == Release {
			return ActionCancel
		}
	case HolderGone, OverMaxHold:
		switch {
		case v.Finding == HolderGone && (f.Lost || f.Strategy == Release):
			return ActionDelete
		case f.Strategy == Release:
			return ActionCancel
		case f.Strategy != Notify && renews:
			return ActionStopRenewing
		}
	case RenewalStalled:
		if f.ID == 0 {
			return ActionRestartRenewal
		}
	case DeliveryDead:
		return ActionReconnect
	case RedisUnreachable:
		// A server that is slow once keeps its subscriptions: dropping them would make
		// it slower.
		if fails >= failuresThatCount {
			return ActionReconnect
		}
	}
	return ActionReport
}

// endsHold reports whether the action is meant to end the hold, so that its end is success.
func endsHold(action string) bool {
	return action == ActionLose || action == ActionStopRenewing || action == ActionCancel || action == ActionDelete
}

// episode is what is being done about one check of one hold. It exists from the first
// Unhealthy verdict until the next Healthy one, whichever findings come in between.
type episode struct {
	attempt Attempt // the last action that was taken
	// pending: the outcome of attempt is not known yet.
	pending bool
	// tries counts the calls of each action, one more than maxTries where it was given up.
	tries map[string]int
	// handled has a bit for each finding that was acted on or reported.
	handled uint32
	// notBefore is when the next try is due.
	notBefore time.Time
	// failed: an action of this episode did not help.
	failed bool
}

// recover acts on a verdict. In words: while an action is pending, ask
// whether it helped, and wait if that is not known. Healthy ends the episode. Otherwise
// plan: what was only reported is not reported twice, and what was done is repeated until it has
// been tried often enough. What was tried and reported counts for the whole episode, so that
// findings that alternate bring neither for ever.
func (w *Watchdog) recover(h *hold, f *Facts, v Verdict) {
	e := h.episode(v.Check)
	if e != nil && e.pending {
		known := w.judgeAttempt(h, e, f, v)
		if !known && e.attempt.Finding == v.Finding {
			return
		}
	}
	switch {
	case v.Health == Healthy && e != nil:
		w.endEpisode(h, e, f, v)
		return
	case v.Health != Unhealthy:
		return
	}
	if e == nil {
		w.mu.Lock()
		e = new(episode)
		h.concerns.of[v.Check].episode = e // Verdicts copies the concern; v is not a good one, so there are some
		w.mu.Unlock()
	}
	handled := e.handled&(1<<v.Finding) != 0
	action := plan(*f, v, !f.Fixed && !h.stoppedRenewing(f), int(h.concern(v.Check).fails))
	switch {
	case action == ActionReport && handled, e.tries[action] > maxTries && f.ID != 0:
		return
	case action != ActionReport && v.At.Before(e.notBefore):
		return
	}
	e.handled |= 1 << v.Finding
	if action == ActionReport {
		w.cfg.OnRecovery(*f, v, action, Reported)
		return
	}
	w.try(h, e, f, v, action)
}

// outcome reports what came of an action, if that is not known yet; v carries the reason of
// the last verdict.
func (w *Watchdog) outcome(e *episode, f *Facts, v Verdict, o RecoveryOutcome) {
	if !e.pending {
		return
	}
	e.pending = false
	v.Check, v.Finding = e.attempt.Check, e.attempt.Finding // also where nothing is found now
	w.cfg.OnRecovery(*f, v, e.attempt.Action, o)
}

// endEpisode closes an episode. Where an action had failed and the check became healthy by
// itself, the Recovery check is healthy again too: nothing is left to be recovered.
func (w *Watchdog) endEpisode(h *hold, e *episode, f *Facts, v Verdict) {
	w.outcome(e, f, v, Unsettled)
	w.mu.Lock() // Verdicts copies the concern
	h.concerns.of[v.Check].episode = nil
	w.mu.Unlock()
	if e.failed && h.concern(Recovery).health == Unhealthy && !h.failing(v.Check) {
		w.note(h, f, healthy(Recovery, v.At))
	}
}

// try takes one action, or reports that no more is taken.
func (w *Watchdog) try(h *hold, e *episode, f *Facts, v Verdict, action string) {
	// Not v.At, which is the moment of the question: what happened between that and the
	// action is no consequence of the action.
	now := time.Now()
	w.outcome(e, f, v, Unsettled)
	e.attempt = Attempt{Check: v.Check, Finding: v.Finding, Action: action, At: now}
	if e.tries == nil {
		e.tries = make(map[string]int)
	}
	tries := e.tries[action]
	e.tries[action]++
	if tries >= maxTries && f.ID != 0 {
		w.cfg.OnRecovery(*f, v, action, GaveUp)
		return
	}
	if f.ID == 0 {
		e.notBefore = v.At.Add(w.cfg.Period * time.Duration(min(1<<min(tries, 8), maxBackoff)))
	}
	if !w.cfg.Actor.Act(f.ID, action, v.Finding) {
		w.cfg.OnRecovery(*f, v, action, Declined)
		return
	}
	e.pending = true
	switch action {
	case ActionDelete:
		h.concerns.stopped = now
	case ActionStopRenewing, ActionCancel:
		h.concerns.stopped = now
		// The lease is left to end; only after its end is a hold that is still there
		// a failure.
		e.attempt.Until = v.At.Add(f.Lease + f.Period)
		if f.Deadline.After(v.At) {
			e.attempt.Until = f.Deadline.Add(f.Period)
		}
	}
	w.cfg.OnRecovery(*f, v, action, Acted)
}

// judgeAttempt asks the recovery check about a pending action and reports what it says. It
// returns false while nothing is known yet.
func (w *Watchdog) judgeAttempt(h *hold, e *episode, f *Facts, v Verdict) bool {
	rv := CheckRecovery(v.At, e.attempt, v)
	if rv.Health == Unknown {
		return false
	}
	e.failed = rv.Health == Unhealthy
	// One action that helped does not make up for another one that did not.
	if e.failed || !h.failing(v.Check) {
		w.note(h, f, rv)
	}
	if e.failed {
		w.outcome(e, f, v, NotHelped)
	} else {
		w.outcome(e, f, v, Helped)
	}
	return true
}
