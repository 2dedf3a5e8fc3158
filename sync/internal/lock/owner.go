package lock

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/renewal"
)

// Owner is one local possession of a grant, from its admission to its last exit. The caller makes it, with the
// exported fields; it must not be copied.
type Owner struct {
	Goroutine uint64      // 0: no goroutine may re-enter by its id
	Kind      queue.Kind  // how it waits
	gone      atomic.Bool // its reference on the key was given back
	CallSite  string      // "" unless call sites are recorded
	Holder    Holder      // nil: nobody is notified

	extra    atomic.Pointer[More] // see With; nil: nothing
	g        *Held
	lease    *Lease
	number   uint64 // of the tenure
	token    int64
	since    Moment
	units    atomic.Int32 // that have not exited
	handOffs int32
}

// More is what few owners ask for. It is never changed.
type More struct {
	Takes *Taking // nil: it waits for its turn
	Note  string  // is stored with the lock while it owns it; "": nothing

	bequest *bequest // see Bequeath
}

// nothing is that of all other owners.
var nothing = new(More)

// With makes o, which does not wait yet, ask for more.
func (o *Owner) With(more More) { o.extra.Store(&more) }

func (o *Owner) more() *More { return cmp.Or(o.extra.Load(), nothing) }

// Holder is notified of a loss.
type Holder interface {
	// Lost is called once when the lock of o is lost, before anybody else can get it, by a goroutine that must not be
	// held up: it does no I/O and calls nobody. It may set Loss.Note.
	Lost(o *Owner, l *Loss)
}

// live reports whether the tenure has not ended.
func (o *Owner) live() bool { return o.g.k.q.Current().Number == o.number }

// Err returns nil while the lock can be relied on, and otherwise why not.
func (o *Owner) Err() *Loss {
	g := o.g
	if l := g.Loss(); l != nil {
		return l
	}
	if !g.lease.Load().Valid(g.k.l.leases.Now()) {
		return g.LossOr(renewal.ReasonDeadline)
	}
	return nil
}

// Held returns the grant.
func (o *Owner) Held() *Held { return o.g }

// Number returns that of the tenure in the queue.
func (o *Owner) Number() uint64 { return o.number }

// HandOffs returns how many owners of this process had the grant before.
func (o *Owner) HandOffs() int { return int(o.handOffs) }

// Since returns the Moment at which the tenure began.
func (o *Owner) Since() Moment { return o.since }

// Token returns the fencing token, 0 without Fencing.
func (o *Owner) Token() int64 { return o.token }

// Note returns what is stored with the lock while o owns it.
func (o *Owner) Note() string { return o.more().Note }

// Deadline returns until when the lock can be relied on without a further renewal.
func (o *Owner) Deadline() time.Time { return o.g.lease.Load().Deadline() }

// Entered returns how many units of o have not exited.
func (o *Owner) Entered() int { return int(o.units.Load()) }

// Again adds a unit to o, one more Exit of which is due then. The error is that of queue.Synchronizer.ReenterTenure.
func (o *Owner) Again() error {
	o.units.Add(1)
	err := o.g.k.q.ReenterTenure(o.number)
	if err != nil && o.units.Add(-1) == 0 {
		o.exitedBesideALoss()
	}
	return err
}

// Extend makes the lease last at least d from now on, in Redis too. Where it did not, the deadline stays where it was,
// though Redis may keep the key longer; OutcomeGone means that the lock is lost.
func (o *Owner) Extend(ctx context.Context, d time.Duration) lettucecompat.RenewReply {
	g, k := o.g, o.g.k
	lease := g.lease.Load()
	if d > k.set.Lease.For {
		g.stretched.Store(true)
	}
	k.mu.Lock()
	k.talk = k.talk.Lasts(k.l.moment().Add(d))
	k.mu.Unlock()
	r := k.l.wire.Extend(ctx, lettucecompat.Renewal{Key: k.name, Field: g.Field(), Lease: d}, k.set.Timeout)
	switch r.Outcome {
	case lettucecompat.OutcomeOK:
		lease.Extend(r.SentAt, d)
	case lettucecompat.OutcomeGone:
		lease.Lose(renewal.Cause{Reason: renewal.ReasonGone, By: ByExtend, Err: r.Err})
	}
	return r
}
