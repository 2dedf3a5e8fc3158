package lock

import (
	"cmp"
	"context"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/sync/internal/conversation"
)

// This file is how a grant is given back, and how it learns how that ended.

// stage is how far the end of a grant has come.
type stage uint8

const (
	active    stage = iota // no release has ended its lease: a loss may have
	leaving                // its lease was ended, for the release
	releasing              // that was stated, and no answer says how it ended
	released               // it was there, or, for an exit before the deadline, nothing of it is left and nothing shows a loss
	missing                // it was not there, and should have been
	lapsed                 // its lease has ended by now: nothing shows that it was released
)

// ReleaseResult says how a release ended.
type ReleaseResult struct {
	Lost    *Loss // the lock had been lost before
	Err     error // no answer says that the release took effect; it is repeated in the background
	Unknown bool  // it may have, all the same
}

// endLease ends the lease, before anything is sent: a renewal under way that finds the field gone must not report a loss.
// o has exited for that; nil: nobody was the owner.
func (g *Held) endLease(o *Owner, now time.Duration) {
	untrack(g)
	l := g.lease
	late, ended := !l.Valid(now), l.End()
	g.k.mu.Lock()
	defer g.k.mu.Unlock()
	g.late, g.by = late || !ended, o
	if ended {
		g.stage = leaving
	}
}

// release gives the grant back after endLease, for an owner that has exited or that never came, and returns after the first
// answer, or after the time limit of a command without one. The queue is in the state Releasing. What is stated is a
// turn if somebody waits here. mayBeHeld is as in lettucecompat.Statement.
func (g *Held) release(mayBeHeld bool) ReleaseResult {
	k := g.k
	k.mu.Lock()
	k.q.Shrink(0)
	has := k.unitsLocked() > 0 && k.talk.Grant.Record == g.n
	if now := k.l.now(); has {
		if left := g.minHoldLeft(now); left > 0 { // a release and not a turn: only that can be repeated with the mark
			g.mark = now + left
		}
		if b := g.bequestLocked(); b != nil && !g.late { // a ticket of a lost hold is nobody's
			g.mark = max(g.mark, b.until)
		}
	}
	var cmd *conversation.Command
	switch {
	case g.stage == active: // lost before
	case !has:
		g.stage = missing // a confirmation of a place has found it gone: nothing is there that MinHold would keep
		k.talk, _ = k.talk.Handle(conversation.Event{Kind: conversation.Exited, N: g.n}, k.l.moment())
	default:
		g.stage = releasing
		cmd = k.nextLocked()
	}
	k.mu.Unlock()
	defer k.l.unregister(g, nil)
	if cmd == nil {
		g.exited()
		k.kick()
		return g.verdict(ReleaseResult{})
	}
	a := k.say(cmd, mayBeHeld)
	k.mu.Lock()
	if g.stage != releasing { // so says this answer, or one to what was stated since
		k.mu.Unlock()
		return g.verdict(ReleaseResult{})
	}
	g.freed = make(chan struct{})
	k.mu.Unlock()
	err, unknown := cmp.Or(a.Err, errVoid), a.Outcome == lettucecompat.OutcomeUnknown
	k.l.cfg.Reporter.ReleaseFailed(g, err)
	return g.verdict(ReleaseResult{Err: err, Unknown: unknown})
}

// concludeLocked notes how the release of g ended, if e shows that, of which f is the effect, and ends the pause for its
// mark; cmd is what e answers, if it is an answer. It returns true if e shows that.
func (g *Held) concludeLocked(cmd *conversation.Command, e conversation.Event, f conversation.Effect) bool {
	open, mark := g.k.openLocked(), g.mark
	if open != g.n && g.k.talk.Grant.Record != g.n {
		g.mark = 0 // Redis has it, or there is none
	}
	if g.stage != releasing {
		return false
	}
	// What is repeated may find neither the unit nor the mark because that is over.
	notThere := f == conversation.Missing && (cmd.Have > 0 || g.k.l.now() < mark)
	switch {
	case cmd != nil && cmd.Have > 0 && cmd.Keep == 0 && cmd.Since == g.n && e.Kind < conversation.Lost:
		g.stage = released
	case open == g.n:
		return false
	case notThere && time.Now().Before(g.lease.Deadline()), e.Kind == conversation.Lost && g.leavesLocked():
		g.stage = missing
	case notThere, f == conversation.GivenUp, g.late: // what lands after the deadline may find nothing
		g.stage = lapsed
	default:
		g.stage = released
	}
	if g.freed != nil {
		close(g.freed)
	}
	return true
}

// verdict says how the release of g ended, and reports a loss. r is what is known without an answer.
//
//	an answer says          | exit before the deadline | exit after it
//	------------------------+--------------------------+--------------
//	it was there            | released                 | released
//	before the deadline:    |                          |
//	it was not              | lost: gone or forced     | –
//	after it: it was not    | lost: deadline, or r     | lost: deadline
//	                        | where that has an error  |
//	nothing (yet)           | r                        | lost: deadline
//
// After the deadline nobody can rely on the lock. A release that is repeated is not lost where it finds nothing: the one
// before may have taken effect.
func (g *Held) verdict(r ReleaseResult) ReleaseResult {
	g.k.mu.Lock()
	stage, late, by := g.stage, g.late, g.by
	unleft := late && g.bequestLocked() != nil // released, and not left to its ticket
	g.k.mu.Unlock()
	var c renewal.Cause
	switch {
	case stage == active: // endLease has found it lost
		return ReleaseResult{Lost: g.LossOr(renewal.ReasonDeadline)}
	case stage == released && !unleft:
		return ReleaseResult{}
	case stage == missing && g.said():
		c = g.lease.Loss(renewal.ReasonForced)
	case stage == missing:
		c = g.lease.Loss(renewal.ReasonGone)
		c.By = ByRelease
	case late, stage == lapsed && r.Err == nil:
		c = g.lease.Loss(renewal.ReasonDeadline)
	default:
		return r
	}
	l := &Loss{Cause: c, Of: of(by)}
	g.report(l)
	return ReleaseResult{Lost: l}
}

// confirmed waits, within ctx, until what a release without an answer may have left is gone, and says how it ended.
func (g *Held) confirmed(ctx context.Context, r ReleaseResult) ReleaseResult {
	g.k.mu.Lock()
	freed := g.freed
	g.k.mu.Unlock()
	if freed != nil {
		select {
		case <-freed:
		case <-ctx.Done():
		}
	}
	return g.verdict(r)
}

// giveBack is endLease and release for whom nobody waits in Exit. The channel is closed when that returns.
func (g *Held) giveBack() <-chan struct{} {
	g.endLease(nil, g.k.l.leases.Glance())
	done := make(chan struct{})
	go func() { // the conversation, which is not settled, keeps the key in use
		g.release(false)
		close(done)
	}()
	return done
}

// lastToken is the newest token that an owner has.
func (g *Held) lastToken() int64 {
	if o := g.Owner(); o != nil {
		return o.token
	}
	return g.token
}

// minHoldLeft is how long the key must stay taken from now on. A grant that nobody has owned need not stay.
func (g *Held) minHoldLeft(now Moment) time.Duration {
	if g.k.set.MinHold == 0 || g.Owner() == nil {
		return 0
	}
	return max(g.since+g.k.set.MinHold-now, 0)
}

// exited: the owner of the grant, which is lost, has exited, so that it can be given back before its lease ends. One
// that must stay taken is left to its lease.
func (g *Held) exited() {
	if g.minHoldLeft(g.k.l.now()) == 0 {
		g.k.hear(conversation.Event{Kind: conversation.Exited, N: g.n})
	}
}
