package lock

import (
	"context"
	"sync/atomic"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/renewal"
)

// Held is one grant: Redis has given the key to this process. It may pass through many local owners, until it is
// released or lost.
type Held struct {
	k     *Key
	n     uint64 // of its record
	token int64  // of its first owner; 0 without Fencing
	since Moment
	lease atomic.Pointer[renewal.Lease] // a fixed lease replaces that of the grant

	turn     atomic.Int64 // the Moment when this turn began
	turnFrom atomic.Int64 // hand-offs when it did

	owner     atomic.Pointer[Owner] // the last one that was admitted; written under Key.mu
	fixed     atomic.Pointer[Lease] // what its owner has asked for, if that is a fixed one
	unrenewed atomic.Bool           // the watchdog stopped the renewal on purpose
	ended     atomic.Bool           // the goroutine that would have to exit has ended
	doomed    atomic.Bool           // when it is lost nothing waits for its owner, which provably cannot run, or whose lock this process has deleted
	force     atomic.Bool           // somebody says that it was deleted on purpose
	told      atomic.Bool           // its loss is reported
	watched   bool                  // Changes has named it; guarded by Locks.mu

	// Guarded by Key.mu.
	loss  *Loss         // set once
	end   ending        // how far its release has come
	freed chan struct{} // closed when that is over; nil: nobody waits for it
}

// ending is how far the release of a grant has come.
type ending uint8

const (
	notReleased ending = iota
	releasing
	released // nothing of it is left in Redis, as in what follows
	missing  // the lock had been lost before
	lapsed   // its lease had ended by then: it was not released
)

// newGrantLocked makes the conversation's grant one that the queue can give to owners. The lease is there before
// anybody finds the grant.
func (k *Key) newGrantLocked() *Held {
	c := k.talk.Grant
	now := k.l.now()
	g := &Held{k: k, n: c.Unit, token: c.Token, since: now}
	g.turn.Store(int64(now))
	// A batch shares one time limit, so leases of different limits never share one.
	g.lease.Store(k.l.leases.Add(renewal.Spec{
		Lease: k.set.Lease.For, First: min(c.Lease, k.set.Lease.For), Reacquire: k.set.Reacquire,
		Shard:  k.l.wire.Shard(k.name) + "|" + k.set.Timeout.String(),
		Period: k.set.Lease.Period, Margin: k.set.Lease.Margin, SentAt: k.l.leases.Dated(k.l.zero.Add(c.Sent)), Owner: g,
	}))
	k.cur.Store(g)
	k.l.list(g)
	return g
}

// Names returns the key and the field, for renewals.
func (g *Held) Names() (key, field string) { return g.k.name, g.Field() }

// Key returns the grant's key.
func (g *Held) Key() *Key { return g.k }

// Number returns that of its record, which no other grant of this client has.
func (g *Held) Number() uint64 { return g.n }

// Since returns the Moment at which the answer or the call came that granted it.
func (g *Held) Since() Moment { return g.since }

// Lease returns the grant's lease.
func (g *Held) Lease() *renewal.Lease { return g.lease.Load() }

// Owner returns the last one that was admitted, whose tenure may have ended; nil: nobody was.
func (g *Held) Owner() *Owner { return g.owner.Load() }

// Current returns the owner, nil where nobody is one.
func (g *Held) Current() *Owner {
	if o := g.Owner(); o != nil && o.live() {
		return o
	}
	return nil
}

// Terms returns what its lease is to be.
func (g *Held) Terms() *Lease {
	if l := g.fixed.Load(); l != nil {
		return l
	}
	return &g.k.set.Lease
}

// Unrenewed reports whether StopRenewing was called.
func (g *Held) Unrenewed() bool { return g.unrenewed.Load() }

// Field is the grant's field in Redis.
func (g *Held) Field() string { return lettucecompat.NewField(g.k.l.cfg.ClientID, g.n) }

// mayHandOff reports whether the grant may pass from o to another local owner without Redis. The budget of a turn
// counts where somebody may stand; else the hand-off begins a new turn.
func (g *Held) mayHandOff(o *Owner, now time.Duration) (may, newTurn bool) {
	set, l := g.k.set, g.lease.Load()
	used := o.handOffs - int(g.turnFrom.Load())
	switch {
	case o.lease.Fixed(), g.unrenewed.Load(), set.MaxHandoffs == 0, g.k.l.closing.Load():
		return false, false
	case set.MinHold > 0 && now-g.since < set.MinHold:
		return false, false
	case g.token != 0 && int64(o.handOffs) >= (now-g.since).Microseconds()/2:
		return false, false // tokens stay below the server's clock, from which they begin anew when the record is lost
	case !l.Healthy() || !l.Fresh(now):
		return false, false // also where it is lost
	case g.k.foreign(now):
		return false, false // each of those has the lock for one owner at a time
	case used < set.MaxHandoffs && now-Moment(g.turn.Load()) < set.MaxHandoffTime:
		return true, false
	}
	return !g.k.somebody(g.n, now), true
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

// exited: whoever owned the grant, which is lost, has exited, so that it can be given back before its lease ends. One
// that must stay taken is left to its lease.
func (g *Held) exited() {
	if g.minHoldLeft(g.k.l.now()) == 0 {
		g.k.hear(News{Word: Exited, N: g.n})
	}
}

// Released says how a release ended.
type Released struct {
	Lost    *Loss // the lock had been lost before
	Unknown bool  // the release may have taken effect; it is repeated in the background
	Failed  bool  // it has not, and is repeated in the background
	Err     error // of the two before
	found   bool  // the answer to its first statement says that the lock was there
}

// release gives the grant back, for an owner that has exited or that never came, and returns after the first answer,
// or after the time limit of a command without one. The queue is in the state Releasing. What is stated is a turn if
// somebody waits here. ended is what the End of the lease has returned: that comes before anything is sent, since a
// renewal under way that finds the field gone must not report a loss. mayBeHeld is as in lettucecompat.Statement.
func (g *Held) release(ended bool, token int64, mayBeHeld bool) Released {
	k := g.k
	k.mu.Lock()
	k.q.Released()
	var s *Statement
	has := k.talk.Have() == Unit && k.talk.Grant.Unit == g.n
	if has {
		now := k.l.now()
		k.giving = giving{n: g.n, token: token}
		if left := g.minHoldLeft(now); left > 0 { // a release and not a turn: only that can be repeated with the mark
			k.giving.mark = now + left
		}
	}
	ours := ended && has
	if ours {
		g.end = releasing
		s = k.nextLocked()
	}
	k.mu.Unlock()
	defer k.l.unlist(g, nil)
	if !ours {
		g.exited()
		k.kick()
		if ended {
			l := g.missed()
			g.tell(l)
			return Released{Lost: l}
		}
		return Released{Lost: g.LossOr(renewal.ReasonDeadline)}
	}
	if s == nil {
		return Released{}
	}
	a, e := k.say(s, &lettucecompat.Statement{MayBeHeld: mayBeHeld})
	r := Released{found: a.Outcome == lettucecompat.OutcomeOK && a.Word != lettucecompat.WordLost && a.Word != lettucecompat.WordVoid}
	switch {
	case e == Missing: // and not where a clean-up, sent meanwhile, may have taken the unit
		if r.Lost = g.missed(); g.end == lapsed {
			r.Lost.Cause = g.lease.Load().Loss(renewal.ReasonDeadline)
			g.tell(r.Lost)
		}
	case a.Outcome == lettucecompat.OutcomeUnknown:
		r.Unknown, r.Err = true, a.Err
	case a.Outcome != lettucecompat.OutcomeOK:
		r.Failed, r.Err = true, a.Err
	}
	if r.Err != nil {
		k.l.cfg.Reporter.ReleaseFailed(g, r.Err)
		k.mu.Lock()
		if g.end == releasing {
			g.freed = make(chan struct{})
		}
		k.mu.Unlock()
	}
	return r
}

// confirmed waits, within ctx, until what a release without an answer may have left is gone, and says how it ended.
func (g *Held) confirmed(ctx context.Context, r Released) Released {
	g.k.mu.Lock()
	freed := g.freed
	g.k.mu.Unlock()
	if freed != nil {
		select {
		case <-freed:
		case <-ctx.Done():
		}
	}
	g.k.mu.Lock()
	defer g.k.mu.Unlock()
	switch g.end {
	case released:
		return Released{}
	case missing:
		return Released{Lost: g.missed()}
	}
	return r
}

// missed is the loss of a grant that its release has not found.
func (g *Held) missed() *Loss {
	l := &Loss{Cause: g.lease.Load().Loss(renewal.ReasonGone), Owner: g.Owner()}
	l.By = ByRelease
	return l
}

// fix makes the lease of g a fixed one, which counts from sentAt. It returns false where it was lost meanwhile.
func (g *Held) fix(l *Lease, sentAt time.Time) bool {
	if !g.lease.Load().End() {
		return false
	}
	g.fixed.Store(l)
	lease := g.k.l.leases.Add(renewal.Spec{Lease: l.For, Period: -1, Margin: l.Margin, SentAt: sentAt, Owner: g})
	g.lease.Store(lease)
	if g.force.Load() || g.doomed.Load() { // that was said of the lease before, which had ended
		lease.Lose(renewal.Cause{Reason: renewal.ReasonForced})
	}
	return true
}
