package lock

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/renewal"
)

// Owner is one local possession of a grant, from its admission to its last exit. The caller makes it, with Goroutine,
// Kind and Notify; it must not be copied.
type Owner struct {
	Goroutine uint64     // 0: no goroutine may re-enter by its id
	Kind      queue.Kind // how it waits
	// Notify is called once when the lock is lost, before anybody else can get it, by a goroutine that must not be held
	// up: it does no I/O and calls nobody. nil for an owner that cannot be notified.
	Notify func(*Loss)

	k        *Key
	g        *Held
	lease    *Lease
	waiter   queue.Waiter
	handOffs int
	token    int64
	since    Moment
	units    atomic.Int32 // that have not exited
	gone     atomic.Bool  // its reference on the key was given back
}

// ErrClosed is why a closing client admits nobody.
var ErrClosed = errors.New("closed")

// Acquire brings the owner in, with one reference on k more until its exit, or returns why it is not: ErrRefused,
// ErrClosed, an *AnswerError, what was given to Close, or the cause of ctx. lease is nil for that of the settings.
//
// A waiter that finds its grant lost or too old goes back to the head of the queue: being woken is a ticket to look,
// not the lock.
func (k *Key) Acquire(ctx context.Context, o *Owner, lease *Lease) error {
	if lease == nil {
		lease = &k.set.Lease
	}
	o.k, o.lease = k, lease
	w := &o.waiter
	w.Owner, w.Kind, w.Note = o.Goroutine, o.Kind, o
	for {
		if k.l.closing.Load() {
			return ErrClosed
		}
		in, order, err := k.q.Enter(w)
		if err != nil {
			return err
		}
		if failed := k.l.closeErr.Load(); failed != nil {
			k.carryOut(k.q.Fail(*failed)) // Close may have looked at this queue before
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
		if err = k.admit(ctx, o); err == nil {
			return nil
		}
		if !errors.Is(err, errAgain) {
			return err
		}
		w.Again()
		w.First = true
	}
}

// errAgain: the grant was lost or too old when its waiter was admitted.
var errAgain = errors.New("again")

// admit makes o, which the queue has admitted, the owner of the grant, or gives its place back.
func (k *Key) admit(ctx context.Context, o *Owner) error {
	w := &o.waiter
	g := k.cur.Load()
	k.mu.Lock()
	ok := g != nil && g.n == w.Grant && g.loss == nil && g.lease.Load().Valid(k.l.leases.Glance()) && !g.unrenewed.Load()
	if ok {
		o.g, o.handOffs, o.since = g, w.HandOffs, k.l.now()
		if g.token > 0 {
			o.token = g.token + int64(o.handOffs)
		}
		o.units.Store(1)
		o.gone.Store(false)
		k.refs.Add(1)
		g.owner = o
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
			g.release(g.lastToken(), false)
			break
		}
		g.lease.Load().Lose(renewal.Cause{Reason: renewal.ReasonDeadline})
		k.q.Released()
		k.kick()
	default: // lost meanwhile
		k.hear(News{Word: Exited, N: g.n}, nil)
		k.kick()
	}
	return why
}

// secure makes the lease what the owner has asked for before it is told that it has the lock: a fixed one, or one that
// replicas have confirmed. Too few replicas, or no answer, give the lock back.
func (k *Key) secure(ctx context.Context, o *Owner) error {
	g := o.g
	r := k.l.wire.Extend(ctx, lettucecompat.Renewal{
		Key: k.name, Field: g.Field(), Lease: o.lease.For, Replicas: k.set.Replicas, ReplicaTimeout: k.set.ReplicaTimeout,
	}, k.set.Timeout)
	if r.Outcome == lettucecompat.OutcomeOK {
		if !o.lease.Fixed() {
			g.lease.Load().Extend(r.SentAt, o.lease.For)
			return nil
		}
		k.mu.Lock()
		k.talk = k.talk.Lasts(k.l.now() + o.lease.For)
		k.mu.Unlock()
		if g.fix(o.lease, r.SentAt) {
			return nil
		}
	}
	k.mu.Lock()
	k.retryAt = k.l.now() + pause()
	k.mu.Unlock()
	if r.Outcome == lettucecompat.OutcomeGone {
		g.lease.Load().Lose(renewal.Cause{Reason: renewal.ReasonGone, Err: r.Err})
	}
	o.Exit(ctx)
	if r.Err == nil { // lost meanwhile
		return errAgain
	}
	return &AnswerError{Err: r.Err, Permanent: lettucecompat.Permanent(r.Err), Unknown: r.Outcome == lettucecompat.OutcomeUnknown}
}

// ExitResult says how an exit ended.
type ExitResult struct {
	Released
	HandedOff bool // to the next owner of this process
	Nested    bool // other units remain
	Stale     bool // the tenure had ended before
}

// Exit ends one unit of o. The last one passes the lock on or releases it, and waits for the first answer of Redis;
// where that confirms nothing and ctx has not ended, for what repetitions bring, within two time limits of a command
// in all.
func (o *Owner) Exit(ctx context.Context) ExitResult {
	k, g := o.k, o.g
	// Both clocks are read: a process that was stopped or suspended learns here that the lock is lost.
	now := k.l.leases.Now()
	may, newTurn := g.mayHandOff(o, now)
	exit, _ := k.q.Exit(o.waiter.Number, may)
	left := o.units.Add(-1)
	switch exit {
	case queue.HandedOff:
		if newTurn {
			g.turn.Store(int64(now))
			g.turnFrom.Store(int64(o.handOffs))
		}
		o.abandon()
		return ExitResult{HandedOff: true}
	case queue.Nested:
		return ExitResult{Nested: true}
	case queue.Final:
		defer o.abandon()
		wait, cancel := context.WithTimeout(ctx, 2*k.set.Timeout)
		defer cancel()
		r := g.release(o.token, !o.Kind.CanNotify())
		if r.Err != nil && ctx.Err() == nil {
			r = g.confirmed(wait, r)
		}
		return ExitResult{Released: r}
	}
	switch {
	case left < 0 || exit == queue.Stale && g.lossNow() == nil:
		return ExitResult{Stale: true}
	case left > 0: // another unit may still work
		return ExitResult{Released: Released{Lost: g.lossOr(renewal.ReasonGone)}}
	}
	k.hear(News{Word: Exited, N: g.n}, nil)
	k.kick()
	o.abandon()
	return ExitResult{Released: Released{Lost: g.lossOr(renewal.ReasonGone)}}
}

// abandon gives back the owner's reference on the key, once.
func (o *Owner) abandon() {
	if !o.gone.Swap(true) {
		o.k.Done()
	}
}

func (g *Held) lossNow() *Loss {
	g.k.mu.Lock()
	defer g.k.mu.Unlock()
	return g.loss
}

// Err returns nil while the lock can be relied on, and otherwise why not.
func (o *Owner) Err() error {
	g := o.g
	if l := g.lossNow(); l != nil {
		return l
	}
	if !g.lease.Load().Valid(g.k.l.leases.Now()) {
		return &Loss{Cause: g.lease.Load().Loss(renewal.ReasonDeadline)}
	}
	return nil
}

// Token returns the fencing token, 0 without Fencing.
func (o *Owner) Token() int64 { return o.token }

// Deadline returns until when the lock can be relied on without a further renewal.
func (o *Owner) Deadline() time.Time { return o.g.lease.Load().Deadline() }

// Again adds a unit to o, one more Exit of which is due then. The error is that of queue.Synchronizer.ReenterTenure.
func (o *Owner) Again() error {
	o.units.Add(1)
	err := o.k.q.ReenterTenure(o.waiter.Number)
	if err != nil {
		o.units.Add(-1)
	}
	return err
}
