package lock

import (
	"cmp"
	"context"
	"errors"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/sync/internal/conversation"
)

// enter brings w in, or returns why it is not. A waiter that finds its grant lost or too old goes back to the head of the queue:
// being woken is a ticket to check, not the lock. admit checks it, and out gives its place back if it returns an error: errAgain
// is one after which w comes again.
func (k *Key) enter(ctx context.Context, w *queue.Waiter, admit func() error, out func()) error {
	if k.l.closing.Load() {
		k.sendAsync() // an attempt in vain to join may have hidden the last one who left
		return ErrClosed
	}
	for left := false; ; left = true {
		in, order, err := k.enqueue(w)
		if left {
			k.l.settled()
		}
		if k.l.closing.Load() { // BeginClose may have visited this queue before
			k.beginClose()
		}
		if order == queue.Restate && !in && ctx.Done() == nil && k.q.Demand().Units == 0 { // else this process may free what w needs
			k.sendNext() // the caller waits in any case, and cannot be stopped
		} else {
			k.carryOut(order)
		}
		if err != nil {
			return err
		}
		if !in {
			k.parks(w)
			waits, end := k.limited(ctx, w)
			order, err := k.q.Park(waits, w)
			end()
			if err != nil {
				err = k.gaveUp(w, err)
			}
			if k.u != nil { // how long units stay that nobody uses depends on who waits
				order = queue.Restate
			}
			k.carryOut(order)
			if err != nil {
				return err
			}
		}
		if err = admit(); err == nil {
			w.Reset()
			k.l.waiters.Put(w)
			return nil
		}
		k.l.unsettled.Add(1) // until it is in the queue again or has returned: Close names who is parked in Lock
		out()
		// A try that comes in without a wait has found what was left here: what became of that is not its own.
		again := err == errAgain && (in || !w.Kind.IsTry()) || err == ErrClosed && !w.Kind.IsRefusable() //nolint:errorlint // never wrapped
		if !again {
			k.l.settled()
			if err == errAgain { //nolint:errorlint // never wrapped
				err = errLate
			}
			return err
		}
		w.Again()
	}
}

// Acquire brings the owner in, of a Mutex with one reference on k more until its exit, or returns why it is not: ErrRefused,
// ErrClosed, for one that takes the lock from a field ErrNotThere, an *AnswerError, or the cause of ctx where Redis is not why.
// lease is a fixed one, nil for that of the settings. Units of a fixed lease end for o alone, counted from its admission.
func (k *Key) Acquire(ctx context.Context, o *Owner, lease *Lease) error {
	if o.Share() != nil {
		return k.acquireUnits(ctx, o, lease)
	}
	if lease == nil {
		lease = &k.set.Lease
	}
	o.lease = lease
	w := k.l.waiters.Get().(*queue.Waiter)
	o.Need = 1
	w.Stay, w.Note, w.Takes = &o.Stay, o, o.more().Takes != nil
	if t := o.more().Takes; t != nil {
		var end context.CancelCauseFunc
		ctx, end = context.WithCancelCause(ctx)
		t.ctx, t.spoil = context.WithCancelCause(context.Background()) // the key remembers t, and a Hold in ctx must not stay reachable
		context.AfterFunc(t.ctx, func() { end(context.Cause(t.ctx)) })
		defer t.spoil(nil)
		t.after = k.l.number.Load()
	}
	if o.resumes() {
		if err := k.mayTake(ctx, o.more().Takes); err != nil {
			return err
		}
	}
	err := k.enter(ctx, w, func() error { return k.admit(ctx, o, w) }, func() { k.leave(ctx, w) })
	if err != nil && o.more().Takes != nil {
		k.oust() // it may have kept the next one waiting
	}
	return err
}

// parks is called before w parks.
func (k *Key) parks(w *queue.Waiter) {
	if w.Takes {
		k.oust()
		k.sendAsync() // there may be a place already
	}
}

// errAgain: the grant was lost or too old when its waiter was admitted, or its lease could not be secured.
var errAgain = errors.New("again")

// admit makes o, whose waiter w the queue has admitted, the owner of the grant. Nobody sees o as the owner before all that it has
// asked for is true.
func (k *Key) admit(ctx context.Context, o *Owner, w *queue.Waiter) error {
	g := k.cur.Load()
	switch {
	case g == nil || g.n != w.Grant:
		return errAgain
	case o.lease.Fixed() || k.set.Replicas > 0 || o.more().Note != "":
		k.mu.Lock()
		wrong := k.mistakenLocked(o, g) // whose note would stay with the ticket
		k.mu.Unlock()
		if wrong != nil {
			return wrong
		}
		if err := k.secure(ctx, g, o); err != nil {
			return err
		}
	}
	if k.l.closing.Load() { // asked after the round trip of secure
		return ErrClosed
	}
	now := k.l.leases.Glance()
	if k.set.Linger > 0 {
		now = k.l.leases.Now() // the machine may have been suspended while it lingered
	}
	k.mu.Lock()
	// What was held against the owner before, who had decided to pass the grant on already, is not held against o.
	// The conversation is asked, too: what it has heard may still be on its way to the lease.
	ok := g.loss == nil && k.conv.Grant.Record == g.n && g.lease.Valid(now) && !g.is(unrenewed)
	var wrong error
	if ok {
		wrong = k.mistakenLocked(o, g)
		ok = wrong == nil
	}
	if ok {
		o.g, o.handOffs, o.since = g, int32(w.HandOffs), now
		if g.token > 0 {
			o.token = g.token + int64(o.handOffs)
			if t := o.more().Takes; t != nil && t.Token > 0 {
				o.token = t.Token
			}
		}
		k.refs.Add(1)
		if o.resumes() {
			g.set(stretched)
			g.mark = 0
		}
		g.owner.Store(o)
		g.clear(kept)
		k.answer = nil
	}
	k.mu.Unlock()
	if !ok {
		return cmp.Or(wrong, errAgain)
	}
	if l := g.lease; k.set.Linger > 0 && !l.Fresh(now) {
		l.Hurry() // it was not renewed while it lingered
	}
	k.oust() // if it was quicker than one who takes the lock
	return nil
}

// leave ends a tenure that has not begun for its caller. The release is awaited, within ctx.
func (k *Key) leave(ctx context.Context, w *queue.Waiter) {
	exit, _ := k.q.Release(w.Stay, queue.EndTurn)
	switch {
	case exit != queue.Final: // lost meanwhile
		k.handle(conversation.Event{Kind: conversation.Exited, N: w.Grant})
		k.sendAsync()
	default: // so it is the last grant
		g := k.cur.Load()
		g.expire(k.l.leases.Glance())
		select {
		case <-g.giveBack():
		case <-ctx.Done():
		}
	}
}

// secure makes g what o has asked for: one of a fixed lease, with a note, or that replicas have confirmed. Where it
// cannot, who may wait comes again after a pause.
func (k *Key) secure(ctx context.Context, g *Held, o *Owner) error {
	if o.lease.Fixed() { // a renewal under way would make the key outlast it
		g.lease.StopRenewing()
	}
	k.mu.Lock()
	k.conv = k.conv.Lasts(k.l.moment().Add(o.lease.For + k.set.ReplicaTimeout))
	k.mu.Unlock()
	secured := lettucecompat.Renewal{Key: k.name, Field: g.Field(), Lease: o.lease.For, Note: o.more().Note}
	if o.lease.Fixed() && k.set.Replicas > 0 { // nothing renews it, and replicas may confirm it later than the call lease lasts
		if r := k.l.wire.Extend(ctx, secured, k.set.Timeout); r.Outcome == lettucecompat.OutcomeOK {
			g.lease.Extend(r.SentAt, o.lease.For)
		}
	}
	secured.Replicas, secured.ReplicaTimeout = k.set.Replicas, k.set.ReplicaTimeout
	r := k.l.wire.Extend(ctx, secured, k.set.Timeout)
	if r.Outcome == lettucecompat.OutcomeOK {
		k.mu.Lock()
		k.retries = 0
		k.mu.Unlock()
		if !o.lease.Fixed() {
			g.lease.Extend(r.SentAt, o.lease.For)
		} else if !g.fix(o.lease, r.SentAt) {
			return errAgain // lost meanwhile
		}
		return nil
	}
	if r.Outcome == lettucecompat.OutcomeGone {
		g.lease.Lose(renewal.Cause{Reason: renewal.ReasonGone, Err: r.Err})
		if g.Owner() != nil {
			return errAgain // what became of a grant of before is no reason for a pause
		}
	}
	if ctx.Err() != nil && (r.Outcome == lettucecompat.OutcomeUnknown || r.Outcome == lettucecompat.OutcomeFailed) {
		return errUnanswered
	}
	k.mu.Lock()
	k.retryAt = k.l.now() + pause()<<k.retries
	k.retries = min(k.retries+1, 6)
	k.answer = &lettucecompat.Answer{Outcome: r.Outcome, Err: r.Err}
	k.mu.Unlock()
	if r.Outcome == lettucecompat.OutcomeGone {
		return errAgain
	}
	if r.Outcome != lettucecompat.OutcomeRefused {
		k.report(r.Err)
	}
	failed := failure(r.Outcome, r.Err)
	if o.Kind.IsTry() || failed.Permanent && o.Kind.IsRefusable() {
		return failed
	}
	return errAgain
}
