package lock

import (
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom/renewal"
)

// Held is one grant: what Redis has given to this process, which had nothing. That of a Mutex may pass through many local owners,
// until it is released or lost. One of units lasts until all of them are given back or lost.
type Held struct {
	k     *Key
	n     uint64 // of its record: units may have come by later commands, too
	token int64  // of a Mutex that of its first owner, of units the newest that Redis has made; 0 without Fencing
	since Moment
	lease *renewal.Lease
	u     *heldUnits // what only one of units has; nil: of a Mutex

	owner   atomic.Pointer[Owner] // of a Mutex the last one that was admitted; written under Key.mu
	fixed   atomic.Pointer[Lease] // what that has asked for, if that is a fixed one
	force   atomic.Int64          // the Moment at which somebody last said that it was deleted on purpose; 0: nobody has. See said
	flags   atomic.Uint32         // see below
	watched bool                  // Changes has named it; guarded by Locks.mu

	// Guarded by Key.mu.
	from *Taking // by which it was taken from a ticket; nil: it was not
	loss *Loss   // set once
	by   *Owner  // the owner whose exit ended it; nil: none
	mark Moment  // see below
}

// Held.flags, of a Mutex.
const (
	unrenewed    = 1 << iota // the watchdog stopped the renewal on purpose
	stretched                // Redis may keep it for longer than a lease, as an owner has asked
	ownerEnded               // the goroutine that would have to exit has ended
	deleteOnLoss             // when it is lost, what is left of it is removed without waiting for its owner to react: see Revoke and Locks.Forced
	kept                     // it lingers, or has lingered and nobody was admitted since
)

func (g *Held) is(flag uint32) bool        { return g.flags.Load()&flag != 0 }
func (g *Held) set(flag uint32) (was bool) { return g.flags.Or(flag)&flag != 0 }
func (g *Held) clear(flag uint32)          { g.flags.And(^flag) }

// Held.mark is a moment until which Redis keeps the key taken, or is to:
//
//	set by         | until when                               | read by
//	---------------+------------------------------------------+----------------------------------------
//	newGrantLocked | the ticket that g was taken from lasts   | markLocked, if nobody comes to own it
//	admit          | 0: g has an owner                        |
//	release        | MinHold or a bequest keeps the key taken | markLocked, for each command that releases g
//	               |                                          | quietUntilLocked: nothing is pending before
//	apply          | 0: Redis has the mark, or there is none  |

// newGrantLocked makes the conversation's grant one that the queue can give to owners. The lease is there before
// anybody finds the grant.
func (k *Key) newGrantLocked() *Held {
	c := k.conv.Grant
	g := &Held{k: k, n: c.Record, token: c.Token, since: k.l.now()}
	if k.u != nil {
		g.u = &heldUnits{made: g.since, owners: map[*Owner]struct{}{}}
	}
	g.lease = k.l.leases.Add(renewal.Spec{
		Lease: k.set.Lease.For, First: c.Lease, Shard: k.l.wire.Shard(k.name) + k.set.batch, Period: k.set.Lease.Period, Margin: k.set.Lease.Margin,
		SentAt: k.at(Moment(c.Sent)), Owner: g,
	})
	if k.u == nil && k.took == g.n && k.takes.From != "" {
		g.from, g.mark = k.takes, k.takes.until
	}
	k.cur.Store(g)
	k.l.register(g)
	if k.u == nil && k.deleted.Load() == g.n {
		g.forced()
	}
	return g
}

// Names returns the key and the field, for renewals; nothing while the lock lingers, which is not renewed, or nobody uses the units,
// which then go back.
func (g *Held) Names() (key, field string) {
	if g.u != nil && g.unused() || g.u == nil && g.lingers() {
		return "", ""
	}
	return g.k.name, g.Field()
}

// Key returns the grant's key.
func (g *Held) Key() *Key { return g.k }

// Name returns the key's name in Redis.
func (g *Held) Name() string { return g.k.name }

// Settings returns those with which the key is in use.
func (g *Held) Settings() *Settings { return g.k.set }

// Number returns that by which the watchdog knows it, which no other grant of this client has.
func (g *Held) Number() uint64 {
	if g.u != nil {
		return g.n | ofUnits
	}
	return g.n
}

// Since returns the Moment at which the answer or the call came that granted it.
func (g *Held) Since() Moment { return g.since }

// Lease returns the grant's lease.
func (g *Held) Lease() *renewal.Lease { return g.lease }

// Owner returns the last one of a Mutex that was admitted, whose tenure may have ended; nil: nobody was.
func (g *Held) Owner() *Owner { return g.owner.Load() }

// Current returns the owner of a Mutex, nil where nobody is one.
func (g *Held) Current() *Owner {
	if o := g.Owner(); o != nil && o.live() {
		return o
	}
	return nil
}

// Owners returns those inside that have units and are known by name.
func (g *Held) Owners() []*Owner {
	if g.u == nil {
		return nil
	}
	g.k.mu.Lock()
	defer g.k.mu.Unlock()
	return slices.Collect(maps.Keys(g.u.owners))
}

// AnyOwner returns one of those who have it, or had it last: of a Mutex the last owner, of units who came first; nil: it is not known
// that somebody had.
func (g *Held) AnyOwner() (first *Owner) {
	if g.u == nil {
		return g.Owner()
	}
	g.k.mu.Lock()
	defer g.k.mu.Unlock()
	for o := range g.u.owners {
		if first == nil || o.since < first.since {
			first = o
		}
	}
	return first
}

// Terms returns what its lease is to be.
func (g *Held) Terms() *Lease {
	if l := g.fixed.Load(); l != nil {
		return l
	}
	return &g.k.set.Lease
}

// leaseLeft is how long Redis may keep it, which owners rely on until the deadline.
func (g *Held) leaseLeft(deadline time.Time) time.Duration {
	return max(time.Until(deadline)+g.Terms().Margin, 0)
}

// Stretched reports whether Redis may keep it for longer than a lease.
func (g *Held) Stretched() bool { return g.is(stretched) }

// Unrenewed reports whether StopRenewing was called.
func (g *Held) Unrenewed() bool { return g.is(unrenewed) }

// Field is the grant's field in Redis: of units that of the client.
func (g *Held) Field() string {
	if g.u != nil {
		return g.k.l.cfg.ClientID
	}
	return g.k.l.Field(g.n)
}

// mayHandOff reports whether the grant may pass from o to another local owner without Redis. If another client may wait,
// a turn has a budget.
func (g *Held) mayHandOff(o *Owner, now time.Duration) bool {
	set, l := g.k.set, g.lease
	switch {
	case o.more().bequest != nil, o.more().Note != "", o.lease.Fixed(), g.is(unrenewed), g.is(stretched), set.MaxHandoffs == 0, g.k.l.closing.Load():
		return false
	case now < g.keptUntil():
		return false
	case g.token != 0 && int64(o.handOffs) >= (now-g.since).Microseconds()/2:
		return false // tokens stay below the server's clock, from which they begin anew when the record is lost
	case !l.Healthy() || !l.Fresh(now):
		return false // also where it is lost
	case g.k.foreign(now):
		return false // each of those has the lock for one owner at a time
	}
	return int(o.handOffs) < set.MaxHandoffs && now-g.since < set.MaxHandoffTime || !g.k.othersMayWait(g.n, now)
}

// fix makes the lease of g a fixed one, which counts from sentAt. It returns false where it was lost meanwhile.
func (g *Held) fix(l *Lease, sentAt time.Time) bool {
	if !g.lease.Fix(sentAt, l.For, l.Margin) {
		return false
	}
	g.fixed.Store(l)
	if g.said() { // a renewal was to ask
		g.ask()
	}
	return true
}
