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
	if !kind.IsTry() && k.Join() { // which no Semaphore lets anybody
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
	}, func() { k.out(func() { k.leaveUnits(k.l.leases.Now(), units, of) }) })
}

// Join is the way in for a reader that nobody knows by name, while the queue is open. The key may be over: its queue is
// closed then. False: the caller must call Enter.
func (k *Key) Join() bool {
	now, slept := k.l.leases.Present()
	return k.q.AcquireShared(now + slept - Moment(k.u.slept.Load()))
}

// leaveUnits takes so many off those inside. Turns, about which now says whether they are over, go on during a suspension; who has
// lost the units meanwhile is found before.
func (k *Key) leaveUnits(now Moment, units, of int64) queue.Order {
	if k.set.Capacity == 0 {
		return k.q.ReleaseShared(now, 1, 0)
	}
	k.q.ReleaseShared(0, units, of)
	return queue.Restate
}

// Leave is the way out of what came in by Enter. Where units go back because of that, it returns after the answer, as Exit
// does: a program that ends then leaves nothing that others wait for, but for what lingers. It returns the grant if that was lost before; what Redis
// still has of it goes back later.
func (k *Key) Leave(units, of int64) (lost *Held) {
	// As in Owner.Exit both clocks are read: a process that was stopped or suspended learns here that its units are lost.
	now, sent := k.l.leases.Now(), k.l.number.Load()
	if g := k.cur.Load(); g != nil {
		g.expire(now)
		if _, is := g.lease.Lost(); is {
			lost = g
		}
	}
	if k.leaveUnits(now, units, of) != queue.Nothing || lost != nil || k.u.lossy.Load() || k.l.closing.Load() { // while it closes nothing stays
		g := k.cur.Load()
		k.giveBack(context.Background(), giving{g: g, unnamed: true}, sent, func() { k.exitedLocked(g) })
	}
	return lost
}

// exitUnits is Exit for an owner of units. After the last one its units serve others of this process, or go back to Redis.
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
	loss, left := o.Err(), giving{g: g, by: of(o)}
	if loss != nil {
		left.by = nil
	}
	var reported <-chan struct{}
	r := k.giveBack(ctx, left, 0, func() {
		switch {
		case loss == nil, s.loss != nil:
		case g.lease.Valid(k.l.leases.Now()):
			own := &Loss{Cause: loss.Cause, Of: of(o)} // of o alone, which nobody has noticed
			s.loss = own
			reported = k.reports(g, own)
		default:
			g.lease.Lose(renewal.Cause{Reason: renewal.ReasonDeadline}) // before the units can go back because of this exit
			if g.loss == nil {
				g.u.left = append(g.u.left, o)
			}
		}
		if s.timer != nil {
			s.timer.Stop()
		}
		delete(g.u.owners, o)
		k.q.Leave(&o.Stay)
		k.exitedLocked(g)
	})
	if reported != nil {
		<-reported
	}
	if loss != nil { // whatever has become of the units, which are the process'
		return ExitResult{ReleaseResult: ReleaseResult{Lost: loss}}
	}
	return r
}

// reports reports l, which waits for no answer, and closes done. Close waits for it.
func (k *Key) reports(g *Held, l *Loss) (done <-chan struct{}) {
	over := make(chan struct{})
	k.l.flying.Add(1)
	go func() {
		defer close(over)
		defer k.l.landed()
		k.l.cfg.Reporter.Lost(g, l)
	}()
	return over
}

// giveBack lets somebody out, whom left says, and says how that ended, as Owner.Exit does:
//
//	the next command gives something back     it waits for that, which is due now or after the unanswered one
//	who came between gave it back already     it waits for that. Only who is not known by name leaves before mu is locked: after is
//	                                          the number of the last command before that
//	the grant is lost, and not notified yet   the notification counts who has left
//	otherwise                                 others use the units, or they linger
func (k *Key) giveBack(ctx context.Context, left giving, after uint64, outLocked func()) ExitResult {
	limit, g := time.Now().Add(2*k.set.Timeout), left.g
	k.mu.Lock()
	outLocked()
	_, lost := g.lease.Lost()
	now, b := k.l.now(), (*giving)(nil)
	switch d := k.unitsDemandLocked(now); {
	case g.loss == nil && k.usableLocked() && k.conv.Grant.Record == g.n && k.givesLocked(&d, now):
		if k.u.next == nil {
			k.u.next = &giving{g: g}
		}
		b = k.u.next
		b.by, b.unnamed = append(b.by, left.by...), b.unnamed || left.unnamed
	case left.unnamed && k.freeing != nil && k.freeing.g == g && k.freeing.n > after:
		b = k.freeing
		b.unnamed = true
	case lost && g.loss == nil:
		g.u.left, g.u.unnamed = append(g.u.left, left.by...), g.u.unnamed || left.unnamed
	}
	s := k.nextLocked()
	mine := s.N > 0 && b != nil && b == k.freeing
	k.mu.Unlock()
	bounded := ctx.Done() != nil && ctx.Err() == nil // one that has ended before bounds nothing
	switch {
	case mine && !bounded:
		k.send(s)
	case s.N > 0:
		go k.send(s)
	}
	switch {
	case b == nil && lost:
		return ExitResult{ReleaseResult: ReleaseResult{Lost: g.LossOr(renewal.ReasonGone)}}
	case b == nil:
		return ExitResult{HandedOff: true}
	case !mine && !bounded: // the first answer is still to come
		ctx = context.Background()
	}
	return k.await(ctx, b, limit)
}
