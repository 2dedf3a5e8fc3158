package lock

import (
	"cmp"
	"context"
	"time"

	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/renewal"
)

// This file is the way in and out of those who have units.

// acquireUnits is Acquire for an owner of units. Its caller has a reference on k meanwhile.
func (k *Key) acquireUnits(ctx context.Context, o *Owner, lease *Lease) error {
	w := k.l.waiters.Get().(*queue.Waiter)
	w.Stay, w.Of, w.Note = &o.Stay, cmp.Or(o.Share().Of, k.set.Capacity), o
	wait := time.Duration(0)
	err := k.enter(ctx, w, func() (err error) {
		wait, err = k.admitUnits(o, w)
		return err
	}, func() { k.out(func() { k.q.Leave(&o.Stay) }) })
	if wait > 0 { // some microseconds
		time.Sleep(wait)
	}
	if err != nil {
		return err
	}
	k.l.registerOwner(o)
	if o.Loss() != nil { // meanwhile
		k.l.unregisterOwner(o)
	}
	if lease != nil {
		o.bound(lease)
	}
	return nil
}

// admitUnits makes o, whose waiter w the queue has admitted, one of the grant, and returns for how long it must wait for its token.
func (k *Key) admitUnits(o *Owner, w *queue.Waiter) (wait time.Duration, err error) {
	now := k.l.leases.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	g := k.cur.Load()
	switch {
	case k.l.closing.Load():
		return 0, ErrClosed
	case g == nil || g.loss != nil || w.Grant != g.n || !g.lease.Valid(now):
		return 0, errAgain
	}
	o.g, o.since = g, now
	o.token, wait = g.tokenLocked(o, now)
	if o.whole() {
		o.Share().writes = 1
	}
	g.u.owners[o] = struct{}{}
	return wait, nil
}

// out gives back what somebody was let in by, who cannot rely on that.
func (k *Key) out(leave func()) {
	if g := k.cur.Load(); g != nil {
		g.expire(k.l.leases.Now())
	}
	leave()
	k.sendAsync()
}

// Enter brings in so many units that nobody knows by name: a reader of an RWMutex, or permits of a Semaphore of that
// capacity. Nobody can notify them of a loss, which keeps others of this process out until they have left. Otherwise it is as
// Acquire.
func (k *Key) Enter(ctx context.Context, kind queue.Kind, units, of int64) error {
	if !kind.IsTry() && k.Join() { // never of a Semaphore
		return nil
	}
	w := k.l.waiters.Get().(*queue.Waiter)
	w.Stay, w.Of = &queue.Stay{Kind: kind | queue.NoNotify, Need: int32(units)}, cmp.Or(of, k.set.Capacity)
	return k.enter(ctx, w, func() error {
		switch g := k.cur.Load(); {
		case k.l.closing.Load():
			return ErrClosed
		case g == nil || !g.lease.Valid(k.l.leases.Now()):
			return errAgain
		}
		return nil
	}, func() { k.out(func() { k.leaveUnits(units, of) }) })
}

// Join is the way in for a reader that nobody knows by name, while the queue is open. The key may be over: its queue is
// closed then. False: the caller must call Enter.
func (k *Key) Join() bool {
	now, slept := k.l.leases.Present()
	return k.q.AcquireShared(now + slept - Moment(k.u.slept.Load()))
}

func (k *Key) leaveUnits(units, of int64) queue.Order {
	if k.set.Capacity == 0 {
		return k.q.ReleaseShared(1, 0)
	}
	k.q.ReleaseShared(units, of)
	return queue.Restate
}

// Leave is the way out of what came in by Enter. Where units go back because of that, it returns after the answer, as Exit
// does: a program that ends then leaves nothing that others wait for. It returns the grant if that was lost before.
func (k *Key) Leave(units, of int64) (lost *Held) {
	g := k.cur.Load()
	if g != nil {
		// As in Owner.Exit both clocks are read: a process that was stopped or suspended learns here that its units are lost.
		g.expire(k.l.leases.Now())
		if _, is := g.lease.Lost(); is {
			lost = g
		}
	}
	if k.leaveUnits(units, of) != queue.Nothing || lost != nil || k.u.lossy.Load() || k.l.closing.Load() { // while it closes nothing stays
		g := k.cur.Load()
		k.giveBack(g, nil, true, func() { k.exitedLocked(g) })
	}
	return lost
}

// exitUnits is Exit for an owner of units. After the last one its units serve others of this process, or go back to Redis. Where they go
// back immediately, it waits for the first answer, and where that confirms nothing, for what repetitions bring, within two
// time limits of a command in all. A ctx that ends meanwhile ends the wait, not the release.
func (o *Owner) exitUnits(ctx context.Context) ExitResult {
	g, k, s := o.g, o.g.k, o.Share()
	switch left, ok := k.q.EndEntry(&o.Stay); {
	case !ok:
		return ExitResult{Stale: true}
	case left > 0:
		o.downgrade() // the last one that writes may have left
		return ExitResult{Nested: true}
	}
	k.l.unregisterOwner(o)
	outLocked := func() {
		if s.timer != nil {
			s.timer.Stop()
		}
		delete(g.u.owners, o)
		k.q.Leave(&o.Stay)
		k.exitedLocked(g)
	}
	if loss := o.Err(); loss != nil {
		var own *Loss // of s alone, which nobody has noticed
		k.mu.Lock()
		switch {
		case s.loss != nil:
		case g.lease.Valid(k.l.leases.Now()):
			own = &Loss{Cause: loss.Cause, Of: []*Owner{o}}
			s.loss = own
		default:
			g.lease.Lose(renewal.Cause{Reason: renewal.ReasonDeadline}) // before the units can go back because of this exit
			if g.loss == nil {
				g.u.left = append(g.u.left, o)
			}
		}
		outLocked()
		k.mu.Unlock()
		k.sendAsync()
		if own != nil {
			k.l.cfg.Reporter.Lost(g, own)
		}
		return ExitResult{ReleaseResult: ReleaseResult{Lost: loss}}
	}
	if ctx.Done() == nil || ctx.Err() != nil {
		return k.giveBack(g, o, !o.Kind.CanNotify(), outLocked)
	}
	done := make(chan ExitResult, 1)
	go func() { done <- k.giveBack(g, o, false, outLocked) }()
	select {
	case r := <-done:
		return r
	case <-ctx.Done():
		return ExitResult{ReleaseResult: ReleaseResult{Unknown: true, Err: context.Cause(ctx)}}
	}
}

// giveBack lets somebody out, by unless nobody knows who it is, gives back what g has too much because of that, if it is not to
// linger, and says how that ended.
func (k *Key) giveBack(g *Held, by *Owner, mayBeHeld bool, outLocked func()) ExitResult {
	limit := time.Now().Add(2 * k.set.Timeout)
	k.mu.Lock()
	outLocked()
	_, lost := g.lease.Lost()
	now, b := k.l.now(), (*giving)(nil)
	switch d := k.unitsDemandLocked(now); {
	case g.loss == nil && k.usableLocked() && k.conv.Grant.Record == g.n && k.givesLocked(&d, now):
		if k.u.next == nil {
			k.u.next = &giving{g: g}
		}
		if by != nil {
			k.u.next.by = append(k.u.next.by, by)
		} else {
			k.u.next.unnamed = true
		}
		b = k.u.next
	case by == nil && k.conv.Unanswered() && k.freeing != nil && k.freeing.g == g: // another command gives it back already
		b = k.freeing
		b.unnamed = true
	case by != nil && lost && g.loss == nil:
		g.u.left = append(g.u.left, by)
	case lost && g.loss == nil:
		g.u.unnamed = true
	}
	s := k.nextLocked()
	mine := s != nil && b != nil && b == k.freeing
	k.mu.Unlock()
	switch {
	case mine:
		k.send(s, mayBeHeld)
	case s != nil:
		go k.send(s, false)
	}
	if b == nil && lost {
		return ExitResult{ReleaseResult: ReleaseResult{Lost: g.LossOr(renewal.ReasonGone)}}
	} else if b == nil {
		return ExitResult{HandedOff: true}
	}
	return k.await(context.Background(), b, limit)
}
