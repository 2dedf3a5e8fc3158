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

// giving is what is given back of a grant, because somebody has left or nobody uses it, until it is known how that ended.
type giving struct {
	g       *Held
	by      []*Owner // of units: those who have left and are known by name. Of a Mutex see Held.by
	unnamed bool     // others have left
	late    bool     // of a Mutex: the owner has left after the deadline
	lost    bool     // of a Mutex: after the loss, which Held.Lost reports. Nothing is sent

	// Guarded by Key.mu.
	n        uint64        // of the command that gives it back; 0: it is not sent yet. Of units, that is Key.u.next, and not Key.freeing
	before   *giving       // given back before, without an answer
	failure  ReleaseResult // why the first answer is missing; nil Err: it is not
	r        ExitResult    // how it has ended
	ended    bool
	reported bool          // the loss in r is reported, or somebody else does
	over     chan struct{} // closed at the end; nil: nobody waits for that
}

// whose returns who has left and is known by name.
func (b *giving) whose() []*Owner {
	if b.g.u == nil {
		return of(b.g.by)
	}
	return b.by
}

// endLocked notes how b has ended, once.
func (b *giving) endLocked(r ExitResult) {
	if b == nil || b.ended {
		return
	}
	if b.r, b.ended = r, true; b.over != nil {
		close(b.over)
	}
}

// freed is what there is to report of what was given back.
type freed struct {
	of      *Held
	failure error // why the first answer is missing
	givenUp bool  // nothing shows how it ended, and by now nothing is left of it
	lost    *Loss // it was not there
}

// freedLocked notes how what is given back has ended, if e shows that, of which f is the effect. cmd is what e answers, if it is an
// answer, and a that as it came. What it means:
//
//	what is heard                                    | exit before the deadline     | exit after it
//	-------------------------------------------------+------------------------------+---------------
//	an answer to the release: it was there           | released                     | released
//	before the deadline: it was not                  | lost: gone, forced           | –
//	after it: it was not; or all has ended by itself | lost: deadline; if the first | lost: deadline
//	                                                 | answer is missing, that      |
//	it was not, nor its ticket, whose time is not    | lost: gone, forced           | lost: deadline
//	over                                             |                              |
//	an answer to a command since                     | released                     | lost: deadline
//	nothing (yet): see resultOf                      | why the first is missing     | lost: deadline
//
// After the deadline nobody can rely on the lock, and a ticket gets nothing from who leaves then. A repetition that names no units finds
// nothing where the command before has taken effect, so that it finds nothing is no loss, unless a mark should be there.
func (k *Key) freedLocked(cmd *conversation.Command, e conversation.Event, f conversation.Effect, a *lettucecompat.Answer) freed {
	b := k.freeing
	if b == nil || b.n == 0 && f != conversation.Vanished && f != conversation.GivenUp {
		return freed{}
	}
	g := b.g
	answers := cmd != nil && b.n > 0 && cmd.N >= b.n // else a call has overtaken the command
	if answers && (e.Kind == conversation.Silence || e.Kind == conversation.Failed) {
		return b.failLocked(a)
	}
	own := answers && cmd.Have > 0 && cmd.Keep == 0 && e.Kind < conversation.Lost
	// A call, too, shows that. Of a Mutex the record is not open any more. Of units, of which only some may have been given back, its
	// number does: the place that is called came by that command, or a later one.
	called := e.Kind == conversation.Called && e.N >= b.n && g.u != nil && k.u.lastServed >= b.n
	known := own || f == conversation.GivenUp || g.u != nil && (answers || called) || g.u == nil && k.openLocked() != g.n
	if !known {
		return freed{}
	}
	k.freeing = nil
	// Others are inside, who are notified of the same loss, unless they were.
	beside := g.u != nil && f == conversation.Vanished && g == k.cur.Load() && b.failure.Err == nil && g.loss == nil
	notThere := f == conversation.Missing && (cmd.Have > 0 || k.l.now() < g.mark) || f == conversation.Vanished && (g.u == nil || g.loss != nil)
	expired := !time.Now().Before(g.lease.Deadline())
	ticketGone := g.u == nil && e.Kind == conversation.Lost && !b.late && g.leavesLocked()
	late := b.late && (!own || g.bequestLocked() != nil)
	n, r := freed{of: g}, ExitResult{}
	switch open := notThere || beside || f == conversation.GivenUp; {
	case (notThere || beside) && !expired, ticketGone:
		r.Lost = g.missingLocked(b, false)
	case open && !late && b.failure.Err != nil:
		r.ReleaseResult, n.givenUp = b.failure, true
	case open || late:
		r.Lost, n.givenUp = g.missingLocked(b, true), f == conversation.GivenUp && b.failure.Err != nil
	}
	if beside {
		g.u.left, g.u.unnamed, b.reported = append(g.u.left, b.by...), g.u.unnamed || b.unnamed, true
	}
	b.endLocked(r)
	for r.Lost = nil; b.before != nil; b.before = b.before.before { // free, too, or given up
		b.before.endLocked(r)
	}
	if b.r.Lost != nil && !b.reported && g.bequestLocked() == nil { // a ticket may have been resumed since: who waits for b says so
		b.reported, n.lost = true, b.r.Lost
	}
	return n
}

// failLocked notes that an answer to the command that gives b back is none.
func (b *giving) failLocked(a *lettucecompat.Answer) (n freed) {
	if b.failure.Err != nil {
		return freed{}
	}
	b.failure = ReleaseResult{Err: cmp.Or(a.Err, errVoid), Unknown: a.Outcome == lettucecompat.OutcomeUnknown}
	if b.before == nil || b.before.g != b.g || b.before.failure.Err == nil { // else that was reported
		n = freed{of: b.g, failure: b.failure.Err}
	}
	return n
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

// reportFreed reports n. What comes next was sent before: nobody waits for an Observer that is slow.
func (k *Key) reportFreed(n freed) {
	r := k.l.cfg.Reporter
	if n.failure != nil {
		r.ReleaseFailed(n.of, n.failure)
	}
	if n.givenUp {
		r.ReleaseGivenUp(n.of)
	}
	if n.lost != nil {
		n.of.report(n.lost)
	}
}

// await waits until it is known how b has ended, at most until limit or ctx ends, and returns that, or what is known by then. A ctx that
// has ended waits for nothing.
func (k *Key) await(ctx context.Context, b *giving, limit time.Time) ExitResult {
	otherwise, had := ReleaseResult{Err: errUnanswered, Unknown: true}, ctx.Err() != nil
	if over := k.over(b); over != nil {
		t := time.NewTimer(time.Until(limit))
		defer t.Stop()
		select {
		case <-over:
		case <-t.C:
		case <-ctx.Done():
			if !had {
				otherwise.Err = context.Cause(ctx)
			}
		}
	}
	return k.resultOf(b, otherwise)
}

// over returns what is closed when b ends, nil if it has, or nothing is sent for it.
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
	if b.late {
		b.endLocked(ExitResult{ReleaseResult: ReleaseResult{Lost: b.g.missingLocked(b, true)}})
	}
	r, reported := b.r, b.reported
	switch {
	case b.ended:
		b.reported = reported || r.Lost != nil
	case b.failure.Err != nil:
		r.ReleaseResult = b.failure
	default:
		r.ReleaseResult = otherwise
	}
	k.mu.Unlock()
	if r.Lost != nil && !reported {
		b.g.report(r.Lost)
	}
	return r
}
