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

// maxTurnExtensions bounds how often in a row a process keeps a lock because
// nobody else seems to wait for it: a waiter that only polls is not counted by
// PUBSUB NUMSUB, and gets its turn then.
const maxTurnExtensions = 16

// release sends the release that the queue ordered and waits for it within wait.
func (g *grant) release(op string, wait context.Context, handOffs int) (Outcome, error) {
	e := g.e
	// One that has ended bounds nothing any more, and the first answer is worth the wait.
	repeats := wait != nil && wait.Err() == nil
	if !repeats {
		wait = context.Background()
	}
	began := time.Now()
	var end ending
	if wait.Done() == nil {
		end = e.endGrant(g, handOffs)
	} else {
		result := make(chan ending, 1)
		e.ref()
		go func() {
			defer e.unref()
			result <- e.endGrant(g, handOffs)
		}()
		select {
		case end = <-result:
		case <-wait.Done():
			// The release goes on without its caller.
			return OutcomeUnknown, &Error{
				Op: op, Key: e.key, Outcome: OutcomeUnknown, Err: joined(ErrUnknown, context.Cause(wait), releasedLater),
			}
		}
	}
	if end.cleanup != nil && repeats {
		enough := time.NewTimer(2*e.timeout - time.Since(began))
		defer enough.Stop()
		select {
		case <-end.cleanup.done:
			end = end.after(e)
		case <-wait.Done():
		case <-enough.C:
		}
	}
	if end.loss == nil && end.err == nil {
		return end.outcome, nil
	}
	return end.outcome, end.error(op, g)
}

// ending is how the release of a grant went.
type ending struct {
	outcome Outcome
	loss    *loss
	err     error    // of the first try, where it was not confirmed
	cleanup *cleanup // the clean-up that goes on
}

// after turns an unconfirmed ending into what its clean-up found out.
func (n ending) after(e *entry) ending {
	e.mu.Lock() // an attempt that named the field may still be under way
	defer e.mu.Unlock()
	switch f := n.cleanup.f; {
	case f.ours:
		return ending{outcome: OutcomeReleased}
	case f.confirmed:
		return ending{outcome: OutcomeLost, loss: &loss{Cause: renewal.Cause{Reason: LostGone, At: goneSince(f.deadline)}}}
	}
	return n
}

// error words an ending that was not as it should be.
func (n ending) error(op string, g *grant) error {
	switch {
	case n.loss != nil:
		return g.lossError(op, n.loss)
	case n.outcome == OutcomeUnknown:
		return &Error{Op: op, Key: g.e.key, Outcome: n.outcome, Err: joined(ErrUnknown, n.err, releasedLater)}
	}
	return &Error{Op: op, Key: g.e.key, Outcome: n.outcome, Err: joined(ErrUnavailable, n.err, releasedLater)}
}

// endGrant carries out SendRelease: it releases g in Redis, or ends its turn,
// and tells the queue. handOffs is that of the turn's last owner, or none. It
// returns after the first answer, or after CommandTimeout without one; what is
// not confirmed then is cleaned up in the background, and the queue moves on,
// because no later attempt of ours uses the same field.
func (e *entry) endGrant(g *grant, handOffs int) ending {
	// Marked before anything is sent: a renewal under way that finds the field
	// gone must not report a loss.
	if !g.lease.Load().End() {
		return e.endLost(g)
	}
	overdue := g.mayKeepTurn()
	if overdue && g.turns < maxTurnExtensions {
		return e.endTurn(g, handOffs)
	}
	req := lettucecompat.ReleaseRequest{
		Key: e.key, Field: g.name(), Fenced: e.cfg.Fencing, RecordTime: e.cfg.FenceRecordTime, Timeout: e.timeout,
	}
	if e.cfg.MinHold > 0 {
		req.Keep = g.minHoldLeft()
	}
	if e.cfg.Fencing {
		req.LastToken, req.ReservedUpTo = g.usedTokens(handOffs)
	}
	sent := time.Now()
	reply := e.m.wire.Release(context.Background(), req)
	if overdue {
		e.holdBack()
	}
	return e.released(g, handOffs, reply.Outcome, reply.Err, sent)
}

// endLost is endGrant for a grant that was lost while it was about to be released.
func (e *entry) endLost(g *grant) ending {
	reason := LostDeadline
	if e.m.closing.Load() {
		reason = LostClosed // given up by Close: a late release is still sent
		g.burn(false, (*field).letGo)
	} else {
		g.burnLost()
	}
	e.do(e.q.Released())
	return ending{outcome: OutcomeLost, loss: g.lossOr(reason)}
}

// mayKeepTurn tells whether it makes sense to ask Redis if anybody else waits.
func (g *grant) mayKeepTurn() bool {
	e := g.e
	return e.cfg.MaxHandoffs > 0 && e.q.Len() > 0 && !g.terms.fixed() && !g.unrenewed.Load() && g.minHoldLeft() == 0 && !e.m.closing.Load()
}

// holdBack keeps this process from trying again before others have had the time to.
func (e *entry) holdBack() {
	until := time.Now().Add(max(2*e.m.wire.RTT(), time.Millisecond))
	e.mu.Lock()
	e.notBefore = until
	e.mu.Unlock()
}

// endTurn ends the hand-off budget: Redis keeps the lock for us if nobody else
// waits for it, and releases it otherwise, in one script.
func (e *entry) endTurn(g *grant, handOffs int) ending {
	req := lettucecompat.TurnRequest{Key: e.key, Field: g.name(), Lease: g.terms.lease, Fenced: e.cfg.Fencing, RecordTime: e.cfg.FenceRecordTime, Tokens: e.tokens, Timeout: e.timeout}
	req.LastToken, req.ReservedUpTo = g.usedTokens(handOffs)
	sent := time.Now()
	reply := e.m.wire.EndTurn(context.Background(), req)
	if reply.Outcome == lettucecompat.OutcomeOK && reply.Kept {
		g.e.mu.Lock()
		g.turns++
		g.turn, g.token, g.owner = time.Since(g.since), reply.Token, nil
		g.e.mu.Unlock()
		g.startLease(reply.SentAt)
		e.m.list(g) // again: it may have been announced, or forced, while it had no lease
		if o := e.q.Resumed(); o == queue.SendRelease {
			// All waiters left meanwhile.
			return e.endGrant(g, none)
		}
		return ending{outcome: OutcomeHandedOff}
	}
	if reply.Outcome == lettucecompat.OutcomeOK {
		e.holdBack()
	}
	return e.released(g, handOffs, reply.Outcome, reply.Err, sent)
}

// released lets the queue move on after the first answer to a release, sent at sent.
// The grant stays listed until its clean-up, if it needs one, is counted: Close waits
// for both.
func (e *entry) released(g *grant, handOffs int, o lettucecompat.Outcome, err error, sent time.Time) ending {
	e.mu.Lock()
	usual := g.field == nil
	e.mu.Unlock()
	end := ending{outcome: OutcomeReleased}
	// Where the release has removed the field of a grant to which nothing unusual has
	// happened, nothing is left of it: nobody need know more.
	if o != lettucecompat.OutcomeOK || !usual {
		end = g.judge(handOffs, o, err, sent)
	}
	e.do(e.q.Released())
	e.m.unlist(g)
	e.unref() // the grant's own reference
	return end
}

// judge says how a release ended, by its first answer and all that is known of the
// grant's field, and has removed what may be left.
func (g *grant) judge(handOffs int, o lettucecompat.Outcome, err error, sent time.Time) ending {
	e, deadline := g.e, g.deadline()
	var unused lettucecompat.GiveBack
	unused.LastToken, unused.ReservedUpTo = g.usedTokens(handOffs)
	answered := o == lettucecompat.OutcomeOK || o == lettucecompat.OutcomeGone
	released := false
	c := g.burn(!answered, func(f *field, now time.Time) bool {
		f.burn(now, now)
		unused.Field = f.name
		f.deadline, f.unused = deadline, unused
		f.released(o, false, sent)
		released = f.ours
		_, left := f.left(now)
		return left
	})
	switch {
	case released:
		return ending{outcome: OutcomeReleased}
	case answered:
		c := g.lease.Load().Loss(LostGone)
		c.By = byRelease
		l := &loss{Cause: c, owners: 1, owner: g.lastOwner(), verdicts: g.verdicts(g.lastOwner())}
		e.m.reports.lost(g, l)
		return ending{outcome: OutcomeLost, loss: l}
	}
	outcome := OutcomeUnavailable
	if o == lettucecompat.OutcomeUnknown {
		outcome = OutcomeUnknown
	}
	e.m.reports.releaseFailed(g, err)
	return ending{outcome: outcome, err: err, cleanup: c}
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
