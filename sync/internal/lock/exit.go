package lock

import (
	"context"
	"time"

	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/renewal"
)

// ExitResult says how an exit ended.
type ExitResult struct {
	ReleaseResult
	HandedOff bool // to the next owner of this process, who may be still to come: what nobody takes goes back later
	Nested    bool // other units remain
	Stale     bool // the tenure had ended before
}

// Exit ends one unit of o. The last one passes the lock on or releases it, and waits for the first answer of Redis;
// where that confirms nothing, for what repetitions bring, within two time limits of a command in all. A ctx that ends
// meanwhile ends the wait, not the release. One that has ended before bounds nothing: the first answer is awaited.
func (o *Owner) Exit(ctx context.Context) ExitResult {
	if o.Share() != nil {
		return o.exitUnits(ctx)
	}
	g, k := o.g, o.g.k
	// Both clocks are read: a process that was stopped or suspended learns here that the lock is lost.
	now := k.l.leases.Now()
	may := g.mayHandOff(o, now)
	next := queue.EndTurn
	if may {
		next = queue.HandOff
	}
	until := o.lingersUntil(may, now)
	if until > 0 {
		next = queue.Linger
	}
	exit, _ := k.q.Release(&o.Stay, next)
	if until > 0 && exit != queue.Kept {
		g.clear(kept)
	}
	switch exit {
	case queue.HandedOff, queue.Kept:
		if exit == queue.Kept {
			g.lingersFrom(until, now)
		}
		o.abandon()
		return ExitResult{HandedOff: true}
	case queue.Nested:
		if l := g.Loss(); l != nil && o.Kind.CanNotify() {
			return ExitResult{ReleaseResult: ReleaseResult{Lost: l}}
		}
		return ExitResult{Nested: true}
	case queue.Final:
		return o.release(ctx, g.endLease(o, now))
	case queue.WasLost:
		if !o.Kind.CanNotify() {
			k.l.unregisterLost(g)
		}
		o.exitedLost()
		return ExitResult{ReleaseResult: ReleaseResult{Lost: g.LossOr(renewal.ReasonGone)}}
	}
	return ExitResult{Stale: true}
}

// exitedLost: the last unit of o, which has lost the lock, has exited.
func (o *Owner) exitedLost() {
	o.g.exited()
	o.g.k.sendAsync()
	o.abandon()
}

// release gives b back for o, which has exited.
func (o *Owner) release(ctx context.Context, b *giving) ExitResult {
	k, g := o.g.k, o.g
	limit := time.Now().Add(2 * k.set.Timeout)
	if ctx.Done() == nil || ctx.Err() != nil {
		defer o.abandon()
		g.release(b)
		return k.await(ctx, b, limit)
	}
	first := make(chan struct{})
	go func() {
		defer o.abandon()
		g.release(b)
		close(first)
	}()
	select {
	case <-first:
		return k.await(ctx, b, limit)
	case <-ctx.Done():
		return k.resultOf(b, ReleaseResult{Err: context.Cause(ctx), Unknown: true})
	}
}

// expel exits for an owner that never will.
func (o *Owner) expel() {
	for {
		switch exit, _ := o.g.k.q.Release(&o.Stay, queue.EndTurn); exit {
		case queue.Nested:
			continue
		case queue.WasLost:
			o.g.k.l.unregisterLost(o.g)
			o.exitedLost()
		}
		return
	}
}

// Expel exits for the owner, which has lost the lock and provably will not exit. Where the loss is just being concluded,
// Lost does.
func (g *Held) Expel() {
	g.set(ownerEnded)
	if o := g.Owner(); o != nil && g.k.q.Demand().Lost {
		o.expel()
	}
}

// abandon gives back the owner's reference on the key, once.
func (o *Owner) abandon() {
	if !o.gone.Swap(true) {
		o.g.k.Done()
	}
}
