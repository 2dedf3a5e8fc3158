package watchdog

import (
	"context"
	"time"
)

// statusAnswer is what came back from one question about holds.
type statusAnswer struct {
	asked    time.Time
	statuses []Status
}

// judge keeps and reports a verdict, and acts on it.
func (w *Watchdog) judge(h *hold, f *Facts, v Verdict) {
	w.note(h, f, v)
	w.recover(h, f, v)
}

// checkLocally runs the local checks of one hold. What the facts of this round accuse is
// judged again on fresh ones: between the pass and now the owner may have released, or
// a renewal may have been confirmed. Blind, it checks nothing but the deadline.
func (w *Watchdog) checkLocally(r round, h *hold, f *Facts) {
	if f.Lost {
		if !r.blind {
			w.checkHolder(r.now, h, f)
		}
		return
	}
	renewal := func(f Facts) Verdict {
		f.Fixed = f.Fixed || h.stoppedRenewing(&f)
		// What this process slept is not held against the renewal.
		f.LastConfirmed = f.LastConfirmed.Add(r.late)
		return CheckRenewal(r.now, f, r.stats)
	}
	v, listed := w.confirm(f, renewal)
	if !listed || r.blind && v.Finding != LeaseOver {
		return
	}
	w.judge(h, f, v)
	if !h.localDue(r, f.Period) {
		return // here for the deadline only
	}
	w.renewalCounts(h, f)
	w.checkHolder(r.now, h, f)
}

// checkHolder runs the holder check and plans the next local checks.
func (w *Watchdog) checkHolder(now time.Time, h *hold, f *Facts) {
	holder := func(f Facts) Verdict {
		// A lease that is fixed only since the Watchdog stopped its renewal is none that
		// its owner chose.
		f.Fixed = f.Fixed && !h.stopped()
		return CheckHolder(now, f, w.scan)
	}
	v, listed := w.confirm(f, holder)
	if !listed {
		return
	}
	if owner := w.since(f.Since); owner != h.owner {
		w.newOwner(now, h, f)
		h.owner = owner
	}
	w.judge(h, f, v)
	h.nextLocal = w.since(now) + f.Period
}

// confirm runs a check, and runs it again on fresh facts where it accuses. It leaves in f
// the facts behind the verdict, and returns false when the hold has ended.
func (w *Watchdog) confirm(f *Facts, check func(Facts) Verdict) (v Verdict, listed bool) {
	v = check(*f)
	if v.Health != Unhealthy {
		return v, true
	}
	fresh, listed := w.cfg.Source.Lookup(f.ID)
	if !listed {
		return v, false
	}
	*f = fresh
	return check(fresh), true
}

// renewalCounts lets a confirmed renewal replace the lock-status check.
func (w *Watchdog) renewalCounts(h *hold, f *Facts) {
	if h.statusClean() && !f.LastConfirmed.IsZero() && (!h.isSet(LockStatus) || w.since(f.LastConfirmed) > h.last[LockStatus]) {
		w.judge(h, f, healthy(LockStatus, f.LastConfirmed))
	}
}

// askStatus asks Redis about the holds, on a goroutine that ends with the answer. There
// is at most one such goroutine: nothing is collected while it lives, so that it may read
// what was.
func (w *Watchdog) askStatus() {
	if w.askingStatus || len(w.asks.facts) == 0 {
		return
	}
	w.askingStatus = true
	facts := w.asks.facts
	w.wg.Go(func() {
		ctx, cancel := context.WithTimeout(w.ctx, w.cfg.CommandTimeout)
		defer cancel()
		asked := time.Now()
		statuses := w.cfg.Prober.Status(ctx, facts)
		send(w, w.statuses, statusAnswer{asked, statuses})
	})
}

// askProbe asks whether Redis answers and messages arrive, on a goroutine of its own, so
// that a hung subscription delays no question about a hold.
func (w *Watchdog) askProbe(now time.Time) {
	w.askingProbe, w.probeAsked = true, now
	w.wg.Go(func() {
		ask := func(question func(context.Context) error) error {
			ctx, cancel := context.WithTimeout(w.ctx, w.cfg.CommandTimeout)
			defer cancel()
			return question(ctx)
		}
		p := Probe{PingErr: ask(w.cfg.Prober.Ping)}
		if p.PingErr == nil {
			p.DeliveryErr = ask(w.cfg.Prober.ProbeDelivery)
		}
		send(w, w.probes, p)
	})
}

// send hands an answer to the loop. After Stop it is dropped: an error that our own
// cancellation caused accuses nobody.
func send[T any](w *Watchdog, to chan<- T, answer T) {
	if w.ctx.Err() != nil {
		return
	}
	select {
	case to <- answer:
	case <-w.ctx.Done():
	}
}

// judgeStatuses judges what Redis said about holds. The verdicts speak for the moment of
// the question. A hold that is still listed now was not being released when Redis
// answered, so a vanished field is a loss.
func (w *Watchdog) judgeStatuses(a statusAnswer) {
	now := w.since(time.Now())
	for i, h := range w.asks.holds {
		if h.place == 0 {
			continue // it has ended
		}
		f, s := &w.asks.facts[i], a.statuses[i]
		if s.Answered { // silence is no word: the next round asks again
			h.asked = w.since(a.asked)
		}
		w.judgeStatus(h, f, s, a.asked)
		switch {
		case !s.Answered || h.place == 0:
		case h.asked < w.since(w.suspect): // that answer was about before
			w.agenda.Set(h, int64(w.since(w.lastRound)))
		default:
			w.plan(h, f, w.nextQuestion(h, f), now)
		}
	}
	clear(w.asks.holds)
	clear(w.asks.facts)
	w.asks = question{w.asks.holds[:0], w.asks.facts[:0]}
}

// judgeStatus judges what Redis said about one hold when it was asked at that moment.
func (w *Watchdog) judgeStatus(h *hold, f *Facts, s Status, asked time.Time) {
	v, listed := w.confirm(f, func(f Facts) Verdict { return CheckLockStatus(asked, f, s) })
	switch {
	case !listed || f.Lost:
		return
	case v.Finding == TTLTooLong && h.concern(LockStatus).finding != TTLTooLong:
		// An extension may have reached Redis whose answer has not reached us. The
		// second time in a row it is no coincidence.
		v.Health = Unknown
	}
	w.judge(h, f, v)
}

// judgeProbe judges what came back about the connection. A failure that may be our own
// lateness is no verdict.
func (w *Watchdog) judgeProbe(now time.Time, p Probe) {
	v := CheckConnection(now, p)
	patience := 2*w.cfg.CommandTimeout + selfLateAfter(w.cfg.Period)
	if v.Health == Unhealthy && (w.lateAt.After(w.probeAsked) || now.Sub(w.probeAsked) > patience) {
		v = unknown(Connection, now, SelfLate, "this process was late itself: "+v.Reason).because(v.Err)
	}
	w.judge(&w.process, w.aboutProcess(), v)
}

// checkProcess checks, once a period, what concerns all holds. A renewal loop that
// has stopped is not left to wait for that.
func (w *Watchdog) checkProcess(now time.Time, blind bool, stats RenewalStats) {
	due := !now.Before(w.nextAll)
	loop := CheckRenewalLoop(now, w.cfg.Period, stats)
	news := loop.Finding == RenewalStalled && w.process.concern(Renewal).finding != RenewalStalled
	if !blind && (due || news) {
		w.judge(&w.process, w.aboutProcess(), loop)
	}
	if !due {
		return
	}
	w.nextAll = w.nextAll.Add(w.cfg.Period * (now.Sub(w.nextAll)/w.cfg.Period + 1))
	switch patience := 2*w.cfg.CommandTimeout + w.cfg.Period; {
	case !w.askingProbe:
		w.askProbe(now)
	case !blind && now.Sub(w.probeAsked) > patience:
		v := unhealthy(Connection, now, RedisUnreachable, "the last question to Redis has not come back")
		w.judge(&w.process, w.aboutProcess(), v)
	}
}
