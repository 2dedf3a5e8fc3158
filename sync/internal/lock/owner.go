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

// Owner is one local possession of a grant, from its admission to its last exit: of the lock of a Mutex, or with a Share of some
// units. The caller makes it, with the exported fields; it must not be copied. Readers of an RWMutex, and permits of a Semaphore, that
// nobody knows by name need none: see Key.Enter.
type Owner struct {
	// Stay is that in the queue. The caller sets Goroutine, 0 if no goroutine may re-enter by its id, and Kind; of units Need, too: of an
	// RWMutex 1 to read, lettucecompat.AllUnits to write.
	queue.Stay
	CallSite string // "" unless call sites are recorded
	Holder   Holder // nil: nobody is notified

	extra    atomic.Pointer[More] // see With; nil: nothing
	g        *Held
	lease    *Lease // of a Mutex: what it has asked for
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
	share   *Share   // see Shares
}

// nothing is that of all other owners.
var nothing = new(More)

// With makes o, which does not wait yet, ask for more.
func (o *Owner) With(more More) { o.extra.Store(&more) }

// Shares makes o, which does not wait yet, one of units, of which s has the rest.
func (o *Owner) Shares(s *Share) {
	s.more.share = s
	o.extra.Store(&s.more)
}

func (o *Owner) more() *More { return cmp.Or(o.extra.Load(), nothing) }

// Share returns what an owner of units has beside, nil of one of a Mutex.
func (o *Owner) Share() *Share { return o.more().share }

// live reports whether the tenure has not ended.
func (o *Owner) live() bool { return o.g.k.q.Owner() == &o.Stay }

// Name returns the key's name in Redis.
func (o *Owner) Name() string { return o.g.k.name }

// Settings returns those with which the key is in use.
func (o *Owner) Settings() *Settings { return o.g.k.set }

// Held returns the grant.
func (o *Owner) Held() *Held { return o.g }

// Number returns that by which the watchdog knows o, or the grant that o alone has.
func (o *Owner) Number() uint64 {
	if s := o.Share(); s != nil {
		return s.number.Load()
	}
	return o.g.n
}

// Err returns nil while what o has can be relied on, and otherwise why not.
func (o *Owner) Err() *Loss {
	if l := o.Loss(); l != nil {
		return l
	}
	g, now := o.g, o.g.k.l.leases.Now()
	if s := o.Share(); s != nil && s.over(now) {
		return &Loss{Cause: o.limit()}
	}
	if !g.lease.Valid(now) {
		return g.LossOr(renewal.ReasonDeadline)
	}
	return nil
}

// Loss returns why what o has is lost, nil while nobody has concluded that.
func (o *Owner) Loss() *Loss {
	g := o.g
	g.k.mu.Lock()
	defer g.k.mu.Unlock()
	if s := o.Share(); s != nil && s.loss != nil {
		return s.loss
	}
	return g.loss
}

// LossOr returns why what o has is lost, or, where nobody has concluded that yet, that it is over for the reason.
func (o *Owner) LossOr(reason renewal.Reason) *Loss {
	if l := o.Loss(); l != nil {
		return l
	}
	return o.g.LossOr(reason)
}

// HandOffs returns how many owners of this process had the grant before; 0 of units, of which Redis does not say whose they were.
func (o *Owner) HandOffs() int { return int(o.handOffs) }

// Since returns the Moment at which the tenure began.
func (o *Owner) Since() Moment { return o.since }

// Token returns the fencing token, 0 without Fencing. Those of readers that are inside together may be equal.
func (o *Owner) Token() int64 { return o.token }

// Note returns what is stored with the lock while o owns it.
func (o *Owner) Note() string { return o.more().Note }

// Deadline returns until when what o has can be relied on without a further renewal.
func (o *Owner) Deadline() time.Time {
	d := o.g.lease.Deadline()
	if s := o.Share(); s != nil && s.Limited() {
		if own := o.g.k.at(Moment(s.until.Load())); own.Before(d) {
			return own
		}
	}
	return d
}

// Entered returns how many Exits of o are due.
func (o *Owner) Entered() int { return o.g.k.q.Entries(&o.Stay) }

// Reenter enters o once more, one more Exit of which is due then. The error is that of queue.Synchronizer.Reenter. Only the goroutine of
// o itself may enter a lost lock again.
func (o *Owner) Reenter(allowLost bool) error { return o.g.k.q.Reenter(&o.Stay, allowLost) }

// Extend makes the lease of a Mutex last at least d from now on, in Redis too. Where it did not, the deadline stays where it was,
// though Redis may keep the key longer; OutcomeGone means that the lock is lost.
func (o *Owner) Extend(ctx context.Context, d time.Duration) lettucecompat.RenewReply {
	g, k := o.g, o.g.k
	lease := g.lease
	if d > k.set.Lease.For {
		g.set(stretched)
	}
	k.mu.Lock()
	k.conv = k.conv.Lasts(k.l.moment().Add(d))
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
