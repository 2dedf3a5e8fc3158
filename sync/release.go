package anteroom

import (
	"context"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/renewal"
)

// none stands for "no owner yet" where the hand-offs of a turn's last owner are asked.
const none = -1

// release carries out the queue's order to release: it removes the grant's field from Redis,
// or ends the turn, and tells the queue. handOffs is that of the turn's last owner, or none.
// It returns after the first answer, or after CommandTimeout without one; what is not
// confirmed then is burnt, and the queue moves on, because no later attempt of ours uses the
// same field. A caller that may be held returns after the client's own time limit at the
// latest. failed says what is not as it should be; its Op is the caller's to tell.
func (g *grant) release(handOffs int, mayBeHeld bool) (outcome Outcome, failed *Error) {
	e := g.e
	// Marked before anything is sent: a renewal under way that finds the field
	// gone must not report a loss.
	if !g.lease.Load().End() {
		return g.releaseLost()
	}
	if e.q.Len() > 0 && g.mayKeepTurn() {
		return g.endTurn(handOffs)
	}
	req := lettucecompat.ReleaseRequest{
		Key: e.key, Field: g.name(), Fenced: e.cfg.Fencing, RecordTime: e.cfg.FenceRecordTime, Timeout: e.timeout, MayBeHeld: mayBeHeld,
	}
	if e.cfg.MinHold > 0 {
		req.Keep = g.minHoldLeft()
	}
	if e.cfg.Fencing {
		req.LastToken, req.ReservedUpTo = g.usedTokens(handOffs)
	}
	if e.cfg.StringHolders {
		e.holdBack()
		e.ref() // or it would be forgotten with the entry, if nobody else uses that
		time.AfterFunc(stringWindow, e.unref)
	}
	sent := time.Now()
	reply := e.m.wire.Release(context.Background(), req)
	return g.released(handOffs, reply, sent)
}

// releaseByOwner is release for an owner, on its goroutine: a job, or Close would not see a release
// that is under way, and end what it needs.
func (g *grant) releaseByOwner(handOffs int, mayBeHeld bool) (outcome Outcome, failed *Error) {
	g.e.beginJob()
	defer g.e.endJob()
	return g.release(handOffs, mayBeHeld)
}

// releaseWithin is releaseByOwner for a caller that waits until wait ends: where the release is not
// confirmed also for what its repetitions find, up to two CommandTimeouts in all.
func (g *grant) releaseWithin(wait context.Context, handOffs int) (outcome Outcome, failed *Error) {
	e, began := g.e, time.Now()
	if wait.Done() == nil {
		outcome, failed = g.releaseByOwner(handOffs, false)
	} else {
		var o Outcome
		var f *Error
		answered := make(chan struct{})
		e.beginJob()
		go func() {
			defer e.endJob()
			o, f = g.release(handOffs, false)
			close(answered)
		}()
		select {
		case <-answered:
			outcome, failed = o, f
		case <-wait.Done(): // the release goes on without its caller
			return OutcomeUnknown, g.notConfirmed(OutcomeUnknown, ErrUnknown, context.Cause(wait))
		}
	}
	if outcome != OutcomeUnknown && outcome != OutcomeUnavailable {
		return outcome, failed
	}
	enough := time.NewTimer(2*e.timeout - time.Since(began))
	defer enough.Stop()
	select {
	case <-g.cleaned:
	case <-wait.Done():
		return outcome, failed
	case <-enough.C:
		return outcome, failed
	}
	e.mu.Lock() // an attempt that named the field may still be under way
	defer e.mu.Unlock()
	switch f := g.field; {
	case f.ours:
		return OutcomeReleased, nil
	case f.confirmed && f.vanished: // else its lease has ended it
		since := time.Now()
		if since.After(f.deadline) { // this process was stopped, and finds it long after that
			since = f.deadline
		}
		return OutcomeLost, g.lossError("", &loss{Cause: renewal.Cause{Reason: LostGone, At: since}})
	}
	return outcome, failed
}

// notConfirmed is the *Error of a release that goes on in the background.
func (g *grant) notConfirmed(o Outcome, kind, err error) *Error {
	return &Error{Key: g.e.key, Outcome: o, Err: joined(kind, err, releasedLater)}
}

// releaseLost is release for a grant that was lost while it was about to be released.
func (g *grant) releaseLost() (Outcome, *Error) {
	reason := LostDeadline
	if g.e.m.closing.Load() {
		reason = LostClosed // given up by Close: a late release is still sent
		g.burn(false, (*field).burnNow)
	} else {
		g.burnLost()
	}
	g.e.do(g.e.q.Released())
	return OutcomeLost, g.lossError("", g.lossOr(reason))
}

// mayKeepTurn reports whether it makes sense, where local callers wait, to ask Redis if anybody
// else does.
func (g *grant) mayKeepTurn() bool {
	e := g.e
	return e.cfg.MaxHandoffs > 0 && !e.cfg.StringHolders && !g.terms.fixed() && !g.unrenewed.Load() && g.minHoldLeft() == 0 && !e.m.closing.Load()
}

// endTurn ends the hand-off budget in one script: Redis keeps the lock for us if nobody else
// stands in line for it. Otherwise it calls the first, and those who wait here get a place at
// the end of the line, in the name of the grant that they are to have.
func (g *grant) endTurn(handOffs int) (Outcome, *Error) {
	e := g.e
	req := lettucecompat.TurnRequest{Key: e.key, Field: g.name(), Lease: g.terms.lease, Fenced: e.cfg.Fencing, RecordTime: e.cfg.FenceRecordTime, Tokens: e.tokens, Timeout: e.timeout}
	req.LastToken, req.ReservedUpTo = g.usedTokens(handOffs)
	next, sent := e.newGrant(g.terms), time.Now()
	a := e.m.want(next)
	req.Next, req.Attempt = next.name(), a.n
	reply := e.m.wire.EndTurn(context.Background(), req)
	if reply.Outcome == lettucecompat.OutcomeOK && reply.Kept {
		e.mu.Lock()
		g.turn, g.token, g.owner = e.m.leases.Glance(), reply.Token, nil
		e.mu.Unlock()
		e.m.unwant(next)
		g.startLease(reply.SentAt, 0)
		e.m.list(g) // again: it may have been announced, or forced, while it had no lease
		if e.m.closing.Load() || e.q.Resumed() == queue.SendRelease {
			return g.release(none, false) // all waiters have given up meanwhile, or would come too late for Close
		}
		return OutcomeHandedOff, nil
	}
	switch {
	case reply.Standing:
		e.mu.Lock()
		next.stands(a, reply.Ahead, reply.Holder, reply.TTL)
		e.mu.Unlock()
		e.follow(next)
	case reply.Outcome == lettucecompat.OutcomeUnknown: // it may stand, or be about to
		next.fieldLocked().unanswered(reply.SentAt)
		e.follow(next)
	default:
		e.m.unwant(next)
		if reply.Outcome == lettucecompat.OutcomeOK {
			e.holdBack()
		}
	}
	return g.released(handOffs, lettucecompat.ReleaseReply{Outcome: reply.Outcome, Err: reply.Err}, sent)
}

// holdBack keeps the next driver from trying before others have had the time to: there is no
// line for this key.
func (e *entry) holdBack() {
	window := max(2*e.m.wire.RTT(), time.Millisecond)
	if e.cfg.StringHolders {
		window = stringWindow
	}
	until := e.m.leases.Glance() + window
	e.mu.Lock()
	e.notBefore = until
	e.mu.Unlock()
}

// heldBackLocked is for how long others still have the time to, whichever driver asks and however often.
func (e *entry) heldBackLocked() time.Duration {
	if e.notBefore == 0 {
		return 0 // the usual case, without a look at the clock
	}
	return max(e.notBefore-e.m.leases.Glance(), 0)
}

// follow leaves g, which stands in line or may, to the next driver.
func (e *entry) follow(g *grant) {
	e.mu.Lock()
	e.next = g
	e.mu.Unlock()
}

// unfollow burns what no driver takes over.
func (e *entry) unfollow() {
	e.mu.Lock()
	g := e.next
	e.next = nil
	e.mu.Unlock()
	if g != nil {
		g.burn(false, (*field).burnNow)
	}
}

// released lets the queue move on after the first answer to a release, sent at sent.
// The grant stays listed until its clean-up, if it needs one, is counted: Close waits
// for both.
func (g *grant) released(handOffs int, r lettucecompat.ReleaseReply, sent time.Time) (outcome Outcome, failed *Error) {
	e, err := g.e, r.Err
	e.mu.Lock()
	usual := g.field == nil
	e.mu.Unlock()
	outcome = OutcomeReleased
	var l *loss
	// Where the release has removed the field of a grant to which nothing unusual has
	// happened, nothing is left of it: nobody need know more.
	if r.Outcome != lettucecompat.OutcomeOK || r.Left || !usual {
		outcome, l = g.judge(handOffs, r, sent)
	}
	if order := e.q.Released(); order != queue.Nothing {
		e.do(order)
	} else {
		e.unfollow()
	}
	// An Observer may be slow, and Close waits for what is listed.
	switch outcome {
	case OutcomeLost:
		g.tell(l)
		failed = g.lossError("", l)
	case OutcomeUnknown:
		e.m.reports.releaseFailed(g, err)
		failed = g.notConfirmed(outcome, ErrUnknown, err)
	case OutcomeUnavailable:
		e.m.reports.releaseFailed(g, err)
		failed = g.notConfirmed(outcome, ErrUnavailable, err)
	}
	e.m.unlist(g)
	e.unref() // the grant's own reference
	return outcome, failed
}

// judge says how a release ended, by its first answer and all that is known of the
// grant's field, and has removed what may be left. Where the grant was lost it says why.
func (g *grant) judge(handOffs int, r lettucecompat.ReleaseReply, sent time.Time) (Outcome, *loss) {
	o, deadline := r.Outcome, g.deadline()
	unused := lettucecompat.GiveBack{Field: g.name()}
	unused.LastToken, unused.ReservedUpTo = g.usedTokens(handOffs)
	answered := o == lettucecompat.OutcomeOK || o == lettucecompat.OutcomeGone
	ours := false
	g.burn(!answered, func(f *field, now time.Time) bool {
		f.burn(now, now)
		f.deadline, f.unused = deadline, unused
		f.released(r, sent)
		ours = f.ours
		_, left := f.due(now)
		return left
	})
	switch {
	case ours:
		return OutcomeReleased, nil
	case answered:
		return OutcomeLost, g.goneBeforeRelease()
	case o == lettucecompat.OutcomeUnknown:
		return OutcomeUnknown, nil
	}
	return OutcomeUnavailable, nil
}

// tell reports the loss l that a release of g has found. Several may find one.
func (g *grant) tell(l *loss) {
	g.e.mu.Lock()
	first := !g.told
	g.told = true
	g.e.mu.Unlock()
	if first {
		g.e.m.reports.lost(g, l)
	}
}

// goneBeforeRelease is the loss of a grant that its release, or a repetition of that, did not find.
func (g *grant) goneBeforeRelease() *loss {
	c, owner := g.lease.Load().Loss(LostGone), g.lastOwner()
	c.By = byRelease
	return &loss{Cause: c, owners: 1, owner: owner, verdicts: g.verdicts(owner)}
}

// usedTokens returns the last token of the turn that an owner has seen, and the
// last one that was reserved, so that the difference can be given back. Tokens that
// are not given back would make the counter run ahead of the server's clock, and
// they would not grow across a lost record then.
func (g *grant) usedTokens(handOffs int) (last, reserved int64) {
	if !g.e.cfg.Fencing {
		return 0, 0
	}
	g.e.mu.Lock()
	defer g.e.mu.Unlock()
	return g.token + int64(handOffs), g.token + g.e.tokens - 1
}
