package lock

import (
	"context"
	"time"

	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/renewal"
)

// Named is a Key or a SharedKey, or a grant of one.
type Named interface {
	Name() string // of the key
	Settings() *Settings
}

// AnyHeld is what a Held and a SharedHeld have in common.
type AnyHeld interface {
	Named
	Number() uint64 // by which the watchdog knows it
	Field() string  // in Redis
	Since() Moment
	Lease() *renewal.Lease
	Terms() *Lease
	Loss() *Loss
	Someone() Possession // one of those who have it, or had it last; nil: it is not known that somebody had
}

// Possession is what an Owner and a Share have in common: one local possession of a lock, from its admission to its last
// exit.
type Possession interface {
	Named
	Grant() AnyHeld
	Number() uint64 // by which the watchdog knows it, or its grant
	Who() Who
	Since() Moment
	HandOffs() int // owners of this process that had the grant before, since Redis was asked
	Token() int64  // 0 without Fencing
	Deadline() time.Time
	Err() *Loss
	LossOr(renewal.Reason) *Loss
	Again() error
	Exit(context.Context) ExitResult
}

// Who is who came in, and how.
type Who struct {
	Goroutine uint64
	Kind      queue.Kind
	CallSite  string // "" unless call sites are recorded
}

func (o *Owner) Name() string                       { return o.g.k.name }
func (o *Owner) Settings() *Settings                { return o.g.k.set }
func (o *Owner) Grant() AnyHeld                     { return o.g }
func (o *Owner) Number() uint64                     { return o.g.n }
func (o *Owner) Who() Who                           { return Who{o.Goroutine, o.Kind, o.CallSite} }
func (o *Owner) LossOr(reason renewal.Reason) *Loss { return o.g.LossOr(reason) }

func (s *Share) Name() string        { return s.g.k.name }
func (s *Share) Settings() *Settings { return s.g.k.set }
func (s *Share) Grant() AnyHeld      { return s.g }
func (s *Share) Who() Who            { return Who{s.Goroutine, s.Kind, s.CallSite} }

// HandOffs returns 0: Redis does not say whose units another one had before.
func (s *Share) HandOffs() int { return 0 }

// Has returns how many units s has.
func (s *Share) Has() int64 {
	s.g.k.mu.Lock()
	defer s.g.k.mu.Unlock()
	return int64(s.Need)
}

// Entered returns how many Exits of s are due.
func (s *Share) Entered() int { return s.g.k.q.Entries(&s.Stay) }

// Loss returns why the units of s are lost, nil while nobody has concluded that.
func (s *Share) Loss() *Loss {
	s.g.k.mu.Lock()
	defer s.g.k.mu.Unlock()
	if s.loss != nil {
		return s.loss
	}
	return s.g.loss
}

// LossOr returns why the units of s are lost, or, where nobody has concluded that yet, that they are over for the reason.
func (s *Share) LossOr(reason renewal.Reason) *Loss {
	if l := s.Loss(); l != nil {
		return l
	}
	return &Loss{Cause: s.g.lease.Loss(reason)}
}

// Limit ends s, which has come in, after the fixed lease, less its margin. The units stay the process': their lease is
// another.
func (s *Share) Limit(lease *Lease) { s.endAt(s.since+lease.For-lease.Margin, lease.Margin) }

// StopRenewing ends s as if the lease of its process were not renewed any more. It returns false where s is limited already.
func (s *Share) StopRenewing() bool {
	if s.Limited() || s.stopped.Swap(true) {
		return false
	}
	s.endAt(s.g.deadline(), s.g.k.set.Lease.Margin)
	return true
}

// endAt ends s at the moment until, if it does not end sooner.
func (s *Share) endAt(until Moment, margin time.Duration) {
	k := s.g.k
	s.until.Store(int64(until))
	t := time.AfterFunc(until-k.l.now(), func() { s.lose(s.fixed(), margin) })
	k.mu.Lock()
	s.timer = t
	k.mu.Unlock()
}

// Limited reports whether s ends by itself.
func (s *Share) Limited() bool { return s.until.Load() > 0 }

// Stopped reports whether StopRenewing was called.
func (s *Share) Stopped() bool { return s.stopped.Load() }

// fixed is why a limited share is over.
func (s *Share) fixed() renewal.Cause {
	c := s.g.lease.Loss(renewal.ReasonDeadline)
	c.Deadline = s.g.k.at(Moment(s.until.Load()))
	if !s.Stopped() {
		c.Reason = renewal.ReasonFixed
	}
	return c
}

// Revoke takes the units from s alone. Its holder is notified, and has them until it exits or the lease would have ended
// without a further renewal.
func (s *Share) Revoke(reason renewal.Reason) bool {
	c := s.g.lease.Loss(reason)
	return s.lose(c, max(time.Until(c.Deadline), 0)+s.g.k.set.Lease.Margin)
}

// lose ends s alone. Its units serve others after margin, in which the holder can react. One that cannot is a writer, which
// loses all that the process has: others of it stay out until that has left.
func (s *Share) lose(c renewal.Cause, margin time.Duration) bool {
	g, k, l := s.g, s.g.k, &Loss{Cause: c, Of: []Possession{s}}
	if !s.Kind.CanNotify() {
		k.mu.Lock()
		defer k.mu.Unlock()
		return s.Entered() > 0 && g.lease.Lose(c)
	}
	k.mu.Lock()
	if s.loss != nil || g.loss != nil || s.Entered() == 0 {
		k.mu.Unlock()
		return false
	}
	s.loss = l
	k.mu.Unlock()
	if s.Holder != nil {
		s.Holder.Lost(s, l)
	}
	k.l.Unregister(s)
	out := func() {
		k.mu.Lock()
		delete(g.owners, s)
		k.q.Leave(&s.Stay)
		k.exitedLocked(g)
		k.mu.Unlock()
		k.kick()
	}
	time.AfterFunc(margin, out)
	k.l.cfg.Reporter.Lost(g, l)
	return true
}

// Join is the way in for a reader that nobody knows by name, while the queue is open. The key may be over: its queue is
// closed then. False: the caller must call Enter.
func (k *SharedKey) Join() bool {
	now, slept := k.l.leases.Present()
	return k.q.AcquireShared(now + slept - Moment(k.slept.Load()))
}
