package lock

import (
	"cmp"
	"context"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/sync/internal/conversation"
)

// This file is how those who have given something back learn how that ended: for all kinds of lock.

// ReleaseResult says how a release ended.
type ReleaseResult struct {
	Lost    *Loss // the lock had been lost before
	Err     error // no answer says that the release took effect; it is repeated in the background
	Unknown bool  // it may have, all the same
}

// giving is what is given back of a grant because somebody has left, until it is known how that ended.
type giving struct {
	g       *Held
	n       uint64   // of the command that states it
	by      []*Owner // of units: those who have left and are known by name. Of a Mutex see Held.by
	unnamed bool     // others have left
	late    bool     // of a Mutex: the owner has left after the deadline, or after the loss
	lost    bool     // after the loss, which Held.Lost reports: nothing is stated for b
	before  *giving  // stated before, without an answer: one to this shows how it ended, too

	// Guarded by Key.mu.
	ended    bool
	reported bool          // its loss was reported
	r        ExitResult    // how it ended, or how the first answer failed
	failed   bool          // that has
	over     chan struct{} // closed at the end; nil: nobody waits for that
}

// whose returns who has left and is known by name.
func (b *giving) whose() []*Owner {
	if b.g.u == nil {
		return of(b.g.by)
	}
	return b.by
}

// endLocked notes how b has ended. It is known then that all that was stated before is free.
func (b *giving) endLocked(r ExitResult) {
	for ; b != nil && !b.ended; b, r = b.before, (ExitResult{}) {
		if b.r, b.ended = r, true; b.over != nil {
			close(b.over)
		}
	}
}

// freed is what there is to report of what was given back.
type freed struct {
	b       *giving
	err     error // the first answer is missing, or is that
	givenUp bool  // nothing shows how it ended, and by now nothing is left of it
	lost    *Loss // it was not there
}

// freedLocked notes how what is given back has ended, if e shows that, of which f is the effect. cmd is what e answers, if it is an
// answer, and a that as it came; the mark is until when Redis was to keep what was given back. What holds for an exit:
//
//	what is heard                                    | before the deadline | after it
//	-------------------------------------------------+---------------------+----------------------------
//	an answer to the release: it was there           | released            | released
//	before the deadline: it was not                  | lost: gone, forced  | –
//	after it: it was not; or all has ended by itself | lost: deadline; the error, where the first answer was one
//	an answer to what was stated since               | released            | lost: deadline
//	nothing (yet)                                    | the error           | lost: deadline
//
// After the deadline nobody can rely on the lock. What is repeated is not lost where it finds nothing: the command before may have taken
// effect. A ticket gets nothing from who has left after the deadline.
func (k *Key) freedLocked(cmd *conversation.Command, e conversation.Event, f conversation.Effect, a *lettucecompat.Answer, mark Moment) freed {
	b := k.freeing
	if b == nil {
		return freed{}
	}
	g := b.g
	answers := cmd != nil && cmd.N >= b.n // else a call has overtaken the command
	if answers && (e.Kind == conversation.Silence || e.Kind == conversation.Failed) {
		return freed{b: b, err: b.failLocked(a)}
	}
	own := answers && cmd.Have > 0 && cmd.Keep == 0 && e.Kind < conversation.Lost
	known := answers || f == conversation.GivenUp
	if g.u == nil { // a call, too, shows how it ended
		known = own || k.openLocked() != g.n
	}
	if !known {
		return freed{}
	}
	k.freeing = nil
	notThere := f == conversation.Missing && (cmd.Have > 0 || k.l.now() < mark)
	expired := !time.Now().Before(g.lease.Deadline())
	n := freed{b: b}
	lapsed := notThere || f == conversation.GivenUp || b.late && (!own || g.bequestLocked() != nil)
	var r ExitResult
	switch {
	case f == conversation.Vanished && g.u != nil && g == k.cur.Load() && !b.failed: // those who have not left are notified of the same loss
		r.Lost = g.missingLocked(b, expired)
		g.u.left, g.u.unnamed, b.reported = append(g.u.left, b.by...), g.u.unnamed || b.unnamed, true
	case notThere && !expired, e.Kind == conversation.Lost && g.u == nil && g.leavesLocked():
		r.Lost = g.missingLocked(b, false)
	case lapsed:
		if n.givenUp = b.failed; b.failed && !b.late {
			r = b.r
		} else {
			r.Lost = g.missingLocked(b, true)
		}
	}
	b.endLocked(r)
	if r.Lost != nil && !b.reported && g.bequestLocked() == nil { // a ticket may have been resumed since: who waits for b says so
		b.reported, n.lost = true, r.Lost
	}
	return n
}

// failLocked notes that an answer to what states b was none, and returns why if it was the first.
func (b *giving) failLocked(a *lettucecompat.Answer) error {
	if b.failed {
		return nil
	}
	b.failed = true
	b.r.Err, b.r.Unknown = cmp.Or(a.Err, errVoid), a.Outcome == lettucecompat.OutcomeUnknown
	if b.before != nil { // that has failed, too
		return nil
	}
	return b.r.Err
}

// missingLocked is the loss of what b gives back: Redis did not have it, or the deadline was over.
func (g *Held) missingLocked(b *giving, expired bool) *Loss {
	l := &Loss{Cause: g.lease.Loss(renewal.ReasonDeadline), Of: b.whose(), Unnamed: b.unnamed}
	switch {
	case expired:
	case g.forcedLocked():
		l.Cause = g.lease.Loss(renewal.ReasonForced)
	default:
		l.Cause = g.lease.Loss(renewal.ReasonGone)
		l.By = ByRelease
	}
	return l
}

// reportFreed reports what freedLocked has found. Who waits does not wait for an Observer that is slow.
func (k *Key) reportFreed(f freed) {
	r := k.l.cfg.Reporter
	if f.err != nil || f.givenUp || f.lost != nil {
		k.kick()
	}
	if f.err != nil {
		r.ReleaseFailed(f.b.g, f.err)
	}
	if f.givenUp {
		r.ReleaseGivenUp(f.b.g)
	}
	if f.lost != nil {
		f.b.g.report(f.lost)
	}
}

// await waits until it is known how b has ended, at most until limit or ctx ends, and returns that, or what is known by then. A ctx that
// has ended waits for nothing.
func (k *Key) await(ctx context.Context, b *giving, limit time.Time) ExitResult {
	otherwise := ReleaseResult{Err: errUnanswered, Unknown: true}
	if over := k.over(b); over != nil {
		t := time.NewTimer(time.Until(limit))
		defer t.Stop()
		select {
		case <-over:
		case <-t.C:
		case <-ctx.Done():
			otherwise.Err = context.Cause(ctx)
		}
	}
	return k.resultOf(b, otherwise)
}

// over returns what is closed when b ends, nil if it has, or nothing is stated for it.
func (k *Key) over(b *giving) <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	if b.ended || b.lost {
		return nil
	}
	if b.over == nil {
		b.over = make(chan struct{})
	}
	return b.over
}

// resultOf returns how b has ended, or what is known of that; otherwise if that is nothing. It reports a loss that nobody has.
func (k *Key) resultOf(b *giving, otherwise ReleaseResult) ExitResult {
	if b.lost {
		return ExitResult{ReleaseResult: ReleaseResult{Lost: b.g.LossOr(renewal.ReasonDeadline)}}
	}
	k.mu.Lock()
	if b.late && !b.ended {
		b.endLocked(ExitResult{ReleaseResult: ReleaseResult{Lost: b.g.missingLocked(b, true)}})
	}
	r, reported := b.r, b.reported
	if !b.ended && !b.failed {
		r.ReleaseResult = otherwise
	}
	b.reported = reported || r.Lost != nil
	k.mu.Unlock()
	if r.Lost != nil && !reported {
		b.g.report(r.Lost)
	}
	return r
}
