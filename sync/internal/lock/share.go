package lock

import (
	"errors"
	"sync/atomic"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/renewal"
)

// Share is what an Owner of units has beside: see Owner.Shares. It must not be copied.
type Share struct {
	Of int64 // the capacity of a Semaphore with which it counts; 0: that of the key's settings

	more    More
	number  atomic.Uint64 // see Locks.registerOwner
	watched bool          // Changes has named it; guarded by Locks.mu
	until   atomic.Int64  // the Moment at which it ends by itself; 0: never. See Owner.bound
	stopped atomic.Bool   // StopRenewing was called

	// Guarded by Key.mu.
	writes int         // entries that write
	timer  *time.Timer // of until
	loss   *Loss       // of this owner alone
}

// whole reports whether o, which has units, writes an RWMutex.
func (o *Owner) whole() bool { return o.Need == lettucecompat.AllUnits && o.g.k.set.Capacity == 0 }

// Has returns how many units o has.
func (o *Owner) Has() int64 {
	o.g.k.mu.Lock()
	defer o.g.k.mu.Unlock()
	return int64(o.Need)
}

// Limited reports whether s ends by itself.
func (s *Share) Limited() bool { return s.until.Load() > 0 }

// over reports whether s has ended by itself.
func (s *Share) over(now Moment) bool { return s.Limited() && now >= Moment(s.until.Load()) }

// bound ends o, which has come in and has units, after the fixed lease, less its margin. The units stay the process': their lease is
// another.
func (o *Owner) bound(lease *Lease) { o.endAt(o.since+lease.For-lease.Margin, lease.Margin) }

// StopRenewing ends o, which has units, as if the lease of its process were not renewed any more. It returns false where that is
// limited already.
func (o *Owner) StopRenewing() bool {
	if s := o.Share(); s.Limited() || s.stopped.Swap(true) {
		return false
	}
	at, _ := o.g.until()
	o.endAt(at, o.g.k.set.Lease.Margin)
	return true
}

// Stopped reports whether StopRenewing was called for o, which has units.
func (o *Owner) Stopped() bool { return o.Share().stopped.Load() }

// endAt ends o at the moment until, if it does not end sooner.
func (o *Owner) endAt(until Moment, margin time.Duration) {
	k, s := o.g.k, o.Share()
	s.until.Store(int64(until))
	t := time.AfterFunc(until-k.l.now(), func() { o.lose(o.limit(), margin) })
	k.mu.Lock()
	s.timer = t
	k.mu.Unlock()
}

// limit is why a limited o is over.
func (o *Owner) limit() renewal.Cause {
	s := o.Share()
	c := o.g.lease.Loss(renewal.ReasonDeadline)
	if c.Deadline = o.g.k.at(Moment(s.until.Load())); c.Deadline.Before(c.At) {
		c.At = c.Deadline
	}
	if !s.stopped.Load() {
		c.Reason = renewal.ReasonFixed
	}
	return c
}

// Revoke takes the units from o alone. Its holder is notified, and has them until it exits or the lease would have ended
// without a further renewal.
func (o *Owner) Revoke(reason renewal.Reason) bool {
	c := o.g.lease.Loss(reason)
	return o.lose(c, max(time.Until(c.Deadline), 0)+o.g.k.set.Lease.Margin)
}

// lose ends o alone. Its units serve others after margin, in which the holder can react. One that cannot is a writer, which
// loses all that the process has: others of it stay out until that has left.
func (o *Owner) lose(c renewal.Cause, margin time.Duration) bool {
	g, k, s, l := o.g, o.g.k, o.Share(), &Loss{Cause: c, Of: []*Owner{o}}
	if !o.Kind.CanNotify() {
		k.mu.Lock()
		defer k.mu.Unlock()
		return o.Entered() > 0 && g.lease.Lose(c)
	}
	k.mu.Lock()
	if s.loss != nil || g.loss != nil || o.Entered() == 0 {
		k.mu.Unlock()
		return false
	}
	s.loss = l
	k.mu.Unlock()
	if o.Holder != nil {
		o.Holder.Lost(o, l)
	}
	k.l.unregisterOwner(o)
	out := func() {
		k.mu.Lock()
		delete(g.u.owners, o)
		k.q.Leave(&o.Stay)
		k.exitedLocked(g)
		k.mu.Unlock()
		k.sendAsync()
	}
	time.AfterFunc(margin, out)
	k.l.cfg.Reporter.Lost(g, l)
	return true
}

// ErrReads is why AgainToWrite does not enter.
var ErrReads = errors.New("it reads")

// AgainToWrite is Reenter for one that writes an RWMutex. It returns ErrReads if none of those inside does.
func (o *Owner) AgainToWrite() error {
	k, s := o.g.k, o.Share()
	k.mu.Lock()
	defer k.mu.Unlock()
	if s.writes == 0 {
		return ErrReads
	}
	err := o.Reenter(false)
	if err == nil {
		s.writes++
	}
	return err
}

// EndWriting is called before the Exit of an entry that writes, if others are inside: after the last one that writes o
// becomes a reader.
func (o *Owner) EndWriting() {
	k := o.g.k
	k.mu.Lock()
	o.Share().writes--
	k.mu.Unlock()
}

// Downgrade makes an entry that writes one that reads. After the last one o is a reader; nobody comes between, and readers
// that wait come in beside it.
func (o *Owner) Downgrade() {
	o.EndWriting()
	o.downgrade()
}

// downgrade makes a writer a reader once no entry writes.
func (o *Owner) downgrade() {
	k := o.g.k
	k.mu.Lock()
	becomes := o.whole() && o.Share().writes == 0 && o.Entered() > 0
	if becomes {
		k.q.Downgrade(&o.Stay)
	}
	k.mu.Unlock()
	if becomes {
		k.sendAsync()
	}
}
