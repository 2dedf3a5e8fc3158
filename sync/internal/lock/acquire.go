package lock

import (
	"context"
	"errors"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/renewal"
)

// Acquire brings the owner in, with one reference on k more until its exit, or returns why it is not: ErrRefused,
// ErrClosed, an *AnswerError, or the cause of ctx. lease is nil for that of the settings.
//
// A waiter that finds its grant lost or too old goes back to the head of the queue: being woken is a ticket to look,
// not the lock.
func (k *Key) Acquire(ctx context.Context, o *Owner, lease *Lease) error {
	if lease == nil {
		lease = &k.set.Lease
	}
	o.lease = lease
	w := k.l.waiters.Get().(*queue.Waiter)
	w.Owner, w.Kind, w.Note = o.Goroutine, o.Kind, o
	for {
		if k.l.closing.Load() {
			return ErrClosed
		}
		in, order, err := k.q.Enter(w)
		if err != nil {
			return err
		}
		if k.l.closing.Load() { // BeginClose may have looked at this queue before
			k.carryOut(k.q.Fail(ErrClosed))
		}
		if order == queue.StartAttempt && ctx.Done() == nil {
			k.speak(!o.Kind.CanNotify()) // the caller waits in any case, and cannot be told to stop
		} else {
			k.carryOut(order)
		}
		if !in {
			order, err := k.q.Wait(ctx, w)
			if err != nil {
				k.carryOut(order)
				return err
			}
		}
		err = k.admit(ctx, o, w)
		if err == nil {
			w.Reset()
			k.l.waiters.Put(w)
			return nil
		}
		if err != errAgain { //nolint:errorlint // it is never wrapped
			return err
		}
		w.Again()
	}
}

// errAgain: the grant was lost or too old when its waiter was admitted, or its lease could not be secured.
var errAgain = errors.New("again")

// admit makes o, whose waiter w the queue has admitted, the owner of the grant, or gives its place back.
func (k *Key) admit(ctx context.Context, o *Owner, w *queue.Waiter) error {
	g := k.cur.Load()
	k.mu.Lock()
	ok := g != nil && g.n == w.Grant && g.loss == nil && g.lease.Load().Valid(k.l.leases.Glance()) && !g.unrenewed.Load()
	if ok {
		o.g, o.number, o.handOffs, o.since = g, w.Number, w.HandOffs, k.l.now()
		if g.token > 0 {
			o.token = g.token + int64(o.handOffs)
		}
		o.units.Store(1)
		o.gone.Store(false)
		k.refs.Add(1)
		g.owner.Store(o)
	}
	k.mu.Unlock()
	if !ok {
		return k.leave(g, w, errAgain)
	}
	if k.l.closing.Load() {
		defer o.abandon()
		return k.leave(g, w, ErrClosed)
	}
	if !o.lease.Fixed() && k.set.Replicas == 0 {
		return nil
	}
	return k.secure(ctx, o)
}

// leave ends a tenure that has not begun for its caller.
func (k *Key) leave(g *Held, w *queue.Waiter, why error) error {
	switch exit, _ := k.q.Exit(w.Number, false); exit {
	case queue.Final:
		if g.lease.Load().Valid(k.l.leases.Glance()) {
			go g.release(g.lastToken(), false) // the conversation, which is not settled, keeps the key in use
			break
		}
		g.lease.Load().Lose(renewal.Cause{Reason: renewal.ReasonDeadline})
		k.q.Released()
		k.kick()
	default: // lost meanwhile
		k.hear(News{Word: Exited, N: w.Grant}, nil)
		k.kick()
	}
	return why
}

// secure makes the lease what the owner has asked for before it is told that it has the lock: a fixed one, or one that
// replicas have confirmed. Where it cannot, it gives the lock back; who may wait comes again after a pause.
func (k *Key) secure(ctx context.Context, o *Owner) error {
	g := o.g
	if o.lease.Fixed() {
		k.mu.Lock()
		k.talk = k.talk.Lasts(k.l.now() + o.lease.For + k.set.Timeout)
		k.mu.Unlock()
	}
	r := k.l.wire.Extend(ctx, lettucecompat.Renewal{
		Key: k.name, Field: g.Field(), Lease: o.lease.For, Replicas: k.set.Replicas, ReplicaTimeout: k.set.ReplicaTimeout,
	}, k.set.Timeout)
	if r.Outcome == lettucecompat.OutcomeOK {
		k.mu.Lock()
		k.retries = 0
		k.mu.Unlock()
		if !o.lease.Fixed() {
			g.lease.Load().Extend(r.SentAt, o.lease.For)
			return nil
		}
		if g.fix(o.lease, r.SentAt) {
			return nil
		}
	}
	k.mu.Lock()
	k.retryAt = k.l.now() + pause()<<min(k.retries, 6)
	k.retries++
	k.mu.Unlock()
	if r.Outcome == lettucecompat.OutcomeGone {
		g.lease.Load().Lose(renewal.Cause{Reason: renewal.ReasonGone, Err: r.Err})
	}
	if ctx.Err() == nil {
		o.Exit(ctx)
	} else { // its caller does not wait any more
		go o.Exit(context.Background())
	}
	if r.Err == nil { // lost meanwhile
		return errAgain
	}
	k.answer.Store(&lettucecompat.Answer{Outcome: r.Outcome, Err: r.Err})
	if r.Outcome != lettucecompat.OutcomeRefused {
		k.report(r.Err)
	}
	failed := &AnswerError{Err: r.Err, Permanent: lettucecompat.Permanent(r.Err), Unknown: r.Outcome == lettucecompat.OutcomeUnknown}
	if o.Kind.IsTry() || failed.Permanent && o.Kind.IsRefusable() {
		return failed
	}
	return errAgain
}
