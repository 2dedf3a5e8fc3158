package lock

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/renewal"
)

// Possession is what an Owner and a Share have in common: one local possession of a lock, from its admission to its last
// exit.
type Possession interface {
	Name() string // of the key
	Settings() *Settings
	Who() Who
	Field() string // in Redis
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
func (o *Owner) Who() Who                           { return Who{o.Goroutine, o.Kind, o.CallSite} }
func (o *Owner) Field() string                      { return o.g.Field() }
func (o *Owner) LossOr(reason renewal.Reason) *Loss { return o.g.LossOr(reason) }

func (s *Share) Name() string        { return s.g.k.name }
func (s *Share) Settings() *Settings { return s.g.k.set }
func (s *Share) Who() Who            { return Who{s.Goroutine, s.Kind, s.CallSite} }

// Field returns the field of the client, whose shares of the key have one together.
func (s *Share) Field() string { return s.g.Field() }

// Since returns the Moment of the grant.
func (g *SharedHeld) Since() Moment { return g.since }

// Field returns the field in Redis.
func (g *SharedHeld) Field() string { return g.k.l.cfg.ClientID }

// HandOffs returns 0: Redis does not say whose units another one had before.
func (s *Share) HandOffs() int { return 0 }

// Has returns how many units s has.
func (s *Share) Has() int64 {
	s.g.k.mu.Lock()
	defer s.g.k.mu.Unlock()
	return s.Units
}

// errExited is why Again does not enter.
var errExited = errors.New("it has exited")

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
func (s *Share) Limit(lease *Lease) {
	k := s.g.k
	until := s.since + lease.For - lease.Margin
	s.until.Store(int64(until))
	t := time.AfterFunc(until-k.l.now(), func() { s.lose(s.fixed(), lease.Margin) })
	k.mu.Lock()
	s.timer = t
	k.mu.Unlock()
}

// Limited reports whether s ends by itself.
func (s *Share) Limited() bool { return s.until.Load() > 0 }

// fixed is why a limited share is over.
func (s *Share) fixed() renewal.Cause {
	c := s.g.lease.Loss(renewal.ReasonDeadline)
	c.Reason, c.Deadline = renewal.ReasonFixed, s.g.k.at(Moment(s.until.Load()))
	return c
}

// Revoke takes the units from s alone. Its holder is notified before anybody else of this process can get them.
func (s *Share) Revoke(reason renewal.Reason) bool { return s.lose(s.g.lease.Loss(reason), 0) }

// lose ends s alone. Its units serve others after margin, in which the holder can react.
func (s *Share) lose(c renewal.Cause, margin time.Duration) bool {
	g, k, l := s.g, s.g.k, &Loss{Cause: c, Shares: []*Share{s}}
	k.mu.Lock()
	if s.loss != nil || g.loss != nil || s.entered.Load() == 0 {
		k.mu.Unlock()
		return false
	}
	s.loss = l
	k.mu.Unlock()
	if s.Holder != nil {
		s.Holder.LostShare(s, l)
	}
	k.l.Unregister(s)
	out := func() {
		k.mu.Lock()
		delete(g.owners, s)
		k.gate.Exit(&s.w)
		k.exitedLocked(g)
		k.mu.Unlock()
		k.kick()
	}
	if margin > 0 && s.Kind.CanNotify() {
		time.AfterFunc(margin, out)
	} else if s.Kind.CanNotify() {
		out()
	}
	if r := k.l.cfg.Shared; r != nil {
		r.LostShared(g, l)
	}
	return true
}

// Over reports whether nobody has a reference any more.
func (k *SharedKey) Over() bool { return k.refs.Load() == 0 }

// Join is the way in for a reader that nobody knows by name, while the gate is open. The key may be over: its gate is
// closed then. False: the caller must call Enter.
func (k *SharedKey) Join() bool { return k.gate.TryJoin(k.l.leases.Glance()) }

// Writer returns who is inside to write and came by a Lock, nil where there is nobody.
func (k *SharedKey) Writer() *Share {
	k.mu.Lock()
	defer k.mu.Unlock()
	g := k.cur.Load()
	if g == nil {
		return nil
	}
	for s := range g.owners {
		if s.whole() && !s.Kind.CanNotify() {
			return s
		}
	}
	return nil
}

// Use of a name by the other kind of lock, and shares for the watchdog.

// UsedShared returns the settings with which the name is in use as an RWMutex or a Semaphore, nil where it is not.
func (l *Locks) UsedShared(name string) *Settings {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := l.shared[name]; k != nil && !k.Over() {
		return k.set
	}
	return nil
}

// sharesFrom is above all numbers of grants.
const sharesFrom = 1 << 63

// IsShare reports whether a number is of a share, which may be over.
func IsShare(n uint64) bool { return n > sharesFrom }

// Register makes Changes name s, under a number of its own, until Unregister.
func (l *Locks) Register(s *Share) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.registrations++
	n := sharesFrom + l.registrations
	s.number.Store(n)
	l.shares[n] = s
	l.came = append(l.came, n)
	l.trimLocked()
}

// trimLocked forgets what came and went between two calls of Changes.
func (l *Locks) trimLocked() {
	if len(l.came) > 2*(len(l.grants)+len(l.shares))+grown {
		l.came = slices.DeleteFunc(l.came, func(n uint64) bool { return l.registered(n) == nil && l.shares[n] == nil })
	}
}

// Unregister ends Register.
func (l *Locks) Unregister(s *Share) {
	n := s.number.Load()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shares[n] == s {
		delete(l.shares, n)
		if s.watched {
			l.went = append(l.went, n)
		}
	}
}

// Number returns that of Register.
func (s *Share) Number() uint64 { return s.number.Load() }

// Share returns the registered share of that number, nil where there is none.
func (l *Locks) Share(n uint64) *Share {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.shares[n]
}
