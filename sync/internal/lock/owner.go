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
	queue.Stay        // its tenure. The caller sets Goroutine, 0 if no goroutine may re-enter by its id, and Kind
	CallSite   string // "" unless call sites are recorded
	Holder     Holder // nil: nobody is notified

	extra    atomic.Pointer[More] // see With; nil: nothing
	g        *Held
	lease    *Lease
	token    int64
	since    Moment
	gone     atomic.Bool // its reference on the key was given back
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

// live reports whether the tenure has not ended.
func (o *Owner) live() bool { return o.g.k.q.Owner() == &o.Stay }

// Err returns nil while the lock can be relied on, and otherwise why not.
func (o *Owner) Err() *Loss {
	g := o.g
	if l := g.Loss(); l != nil {
		return l
	}
	if !g.lease.Valid(g.k.l.leases.Now()) {
		return g.LossOr(renewal.ReasonDeadline)
	}
	return nil
}

// Held returns the grant.
func (o *Owner) Held() *Held { return o.g }

// HandOffs returns how many owners of this process had the grant before.
func (o *Owner) HandOffs() int { return int(o.handOffs) }

// Since returns the Moment at which the tenure began.
func (o *Owner) Since() Moment { return o.since }

// Token returns the fencing token, 0 without Fencing.
func (o *Owner) Token() int64 { return o.token }

// Note returns what is stored with the lock while o owns it.
func (o *Owner) Note() string { return o.more().Note }

// Deadline returns until when the lock can be relied on without a further renewal.
func (o *Owner) Deadline() time.Time { return o.g.lease.Deadline() }

// Entered returns how many Exits of o are due.
func (o *Owner) Entered() int { return o.g.k.q.Entries(&o.Stay) }

// Again enters o once more, one more Exit of which is due then. The error is that of queue.Synchronizer.Reenter.
func (o *Owner) Again() error { return o.g.k.q.Reenter(&o.Stay, false) }

// Reenter is Again for the goroutine of o itself, also of a lost lock if it may be.
func (o *Owner) Reenter(allowLost bool) error { return o.g.k.q.Reenter(&o.Stay, allowLost) }

// Extend makes the lease last at least d from now on, in Redis too. Where it did not, the deadline stays where it was,
// though Redis may keep the key longer; OutcomeGone means that the lock is lost.
func (o *Owner) Extend(ctx context.Context, d time.Duration) lettucecompat.RenewReply {
	g, k := o.g, o.g.k
	lease := g.lease
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
