package renewal

import (
	"sync/atomic"
	"time"
)

// Spec describes a lease that was just granted.
type Spec struct {
	// Lease is the time to live that the acquire asked for, and that each renewal asks
	// for.
	Lease time.Duration
	// First is the time to live that the command at SentAt has set, where that is not Lease: Redis
	// has granted the lock by itself, and waits for the first renewal, or keeps it for longer. 0: Lease.
	First time.Duration
	// Shard names the server that the key lives on; leases of one shard share
	// batches. Any string, also an empty one.
	Shard string
	// Period is the time between two renewals. With ≤ 0 the lease is fixed:
	// it is never renewed, and only its deadline is kept. A Period that is
	// not well below Lease leaves no time for a second try.
	Period time.Duration
	// Margin is how long before Redis' own expiry the holder is notified. Until the first renewal of
	// a lease with First it is a tenth of First, if that is less: see Usable.
	Margin time.Duration
	// SentAt is the moment before the acquire was sent, with its monotonic
	// reading. The first deadline is SentAt + Lease − Margin.
	SentAt time.Time
	// Owner has the lease, and is notified of its loss. It is required.
	Owner Owner
}

// Owner is who has a lease.
type Owner interface {
	// Lost is called once if the lease is lost, by the loop goroutine, never
	// after End or Stop returned, and possibly before Add returns. It must
	// not block and does no I/O: while it runs nobody else is notified. It may
	// call the Manager's and the lease's methods except Start and Stop.
	Lost(Cause)
	// Names returns the lock's key and the holder's field in it, the same ones each
	// time. It is called whenever a renewal is sent, so that a lease need not keep
	// them: without the Manager's mutex and concurrently. It must not block. No key:
	// nobody uses the lease now; it is not renewed, and the question comes again as after
	// a failure.
	Names() (key, field string)
}

// Reason is why a lease was lost, as logs and metric labels show it.
type Reason string

// The reasons.
const (
	ReasonGone     Reason = "gone"     // Redis' master said that the field is no longer there
	ReasonDeadline Reason = "deadline" // no renewal was confirmed before the deadline
	ReasonFixed    Reason = "fixed"    // a fixed lease, which is not renewed, ended as agreed
	ReasonForced   Reason = "forced"   // somebody released the lock by force
	ReasonWatchdog Reason = "watchdog" // the watchdog ended the hold
	ReasonClosed   Reason = "closed"   // the owner of the Manager is closing
)

// ByRenewal is Cause.By of what a renewal was answered.
const ByRenewal = "by a renewal"

// Cause is what the holder learns of a loss. The caller of Lose gives the first
// three; the Manager fills in the others.
type Cause struct {
	Reason Reason
	// By says, for people, what found that Redis no longer has the lease: ByRenewal, or
	// what the caller of Lose gives. It is empty where the reason says enough.
	By string
	// Err is what Redis answered, or the last failure before the deadline.
	Err error

	// At is since when the lease may no longer be relied on: the moment at which the
	// loss was concluded, and never later than the deadline.
	At time.Time
	// LastConfirmed is when the last confirmed command was sent.
	LastConfirmed time.Time
	// Deadline is until when the lease could have been relied on.
	Deadline time.Time
	// Failures is how many renewals had no usable answer since LastConfirmed.
	Failures int
}

// Lease is one lease that a Manager keeps. All its methods are safe for
// concurrent use. Those that only read take no lock; their answers belong
// to one moment each and not to one moment together.
type Lease struct {
	// Written once by Add.
	owner Owner
	shard *shard // and through it the Manager

	// Written with Manager.mu held, read without it.
	lease     atomic.Int64 // that, period and margin change only when it becomes a fixed one
	period    atomic.Int64 // fixed: not above 0
	margin    atomic.Int64
	deadline  atomic.Int64 // moves back only when it becomes a fixed one
	confirmed atomic.Int64
	due       atomic.Int64          // never: no renewal is planned
	cause     atomic.Pointer[Cause] // set before state becomes StateLost
	state     atomic.Uint32
	failures  atomic.Int32
	renewals  atomic.Uint32

	// Guarded by Manager.mu.
	place   int32    // in the heap
	failing *failing // nil after a confirmation
	stage   stage
	stopped bool // StopRenewing was called
	offbeat bool // the renewal that is planned or under way is a retry or hurried
	again   bool // hurried while under way: that answer speaks of before
}

// Place is for the heap.
func (l *Lease) Place() *int32 { return &l.place }

// Valid reports whether the lease can be relied on at now, which is Manager.Now, or
// Manager.Glance where it is enough to know of the suspensions that others have noticed: the
// lease is neither lost nor ended, and its deadline is after now. It compares with the clock
// and so is right also when the loop is late. Once false for the present moment it stays
// false.
func (l *Lease) Valid(now time.Duration) bool { return l.Remaining(now) > 0 }

// Remaining returns how long after now, which is as for Valid, the lease can still be relied
// on; zero when it can't.
func (l *Lease) Remaining(now time.Duration) time.Duration {
	if l.State() != StateActive {
		return 0
	}
	return max(0, time.Duration(l.deadline.Load()-l.shard.m.clock.present(now)))
}

// Fresh reports whether enough of the lease remains at now, which is as for Valid, to pass the
// lock on: half of it. Before the first renewal of a lock that Redis has granted by itself, a
// quarter of what it was granted for: the renewal is due by then.
func (l *Lease) Fresh(now time.Duration) bool {
	enough := time.Duration(l.lease.Load()) / 2
	if l.brief() {
		enough = time.Duration(l.deadline.Load()-l.confirmed.Load()) / 4
	}
	return l.Remaining(now) >= enough
}

// brief reports whether the lease is shorter than it is to be: see Spec.First.
func (l *Lease) brief() bool {
	return l.deadline.Load()-l.confirmed.Load() < l.lease.Load()-l.margin.Load()
}

// Usable is how long a lock that Redis has granted by itself, for first, can be relied on, where
// the lock's margin is margin: a margin is for what two clocks differ by in the time of a lease,
// which is in proportion, and for a holder that is late.
func Usable(first, margin time.Duration) time.Duration { return first - min(margin, first/10) }

// Deadline returns the moment until which the lease can be relied on, with a
// monotonic reading. It keeps its last value when the lease is lost or ended.
func (l *Lease) Deadline() time.Time { return l.shard.m.clock.time(l.deadline.Load()) }

// Until is Deadline as the time since Manager.Zero, in which the machine was also suspended.
func (l *Lease) Until() time.Duration { return time.Duration(l.deadline.Load()) }

// LastConfirmed returns when the last command that Redis confirmed was sent:
// the acquire, a renewal or an Extend.
func (l *Lease) LastConfirmed() time.Time { return l.shard.m.clock.past(l.confirmed.Load()) }

// NextDue returns when the next renewal is, or was, due; the zero time when
// none is planned. A time in the past means that it waits for a slot, is
// under way, or that the loop is late.
func (l *Lease) NextDue() time.Time { return l.shard.m.clock.time(l.due.Load()) }

// Times is what a lease says about its times at one moment.
type Times struct {
	Confirmed, Deadline, NextDue time.Time     // see LastConfirmed, Deadline and NextDue
	Left                         time.Duration // see Remaining
}

// Times returns all of them for one reading of the clocks, now as for Valid.
func (l *Lease) Times(now time.Duration) Times {
	c := l.shard.m.clock
	e := c.epoch.Load()
	return Times{
		Confirmed: e.past(l.confirmed.Load()), Deadline: c.onward(e, l.deadline.Load()), NextDue: c.onward(e, l.due.Load()),
		Left: l.Remaining(now),
	}
}

// Failures returns the number of failed renewals since the last success.
func (l *Lease) Failures() int { return int(l.failures.Load()) }

// Healthy reports whether the last renewal did not fail.
func (l *Lease) Healthy() bool { return l.failures.Load() == 0 }

// Renewals returns the number of confirmed renewals.
func (l *Lease) Renewals() uint32 { return l.renewals.Load() }

// State returns where the lease is in its life. It says nothing of the
// deadline: a lease is active until the loop has noticed; ask Valid.
func (l *Lease) State() State { return State(l.state.Load()) }

// Lost returns why the lease is lost, and true from the moment at which that was
// concluded: the call of Owner.Lost may still be on its way.
func (l *Lease) Lost() (Cause, bool) {
	if l.State() != StateLost {
		return Cause{}, false
	}
	return *l.cause.Load(), true
}

// Loss returns why the lease is lost. If nobody has concluded that yet, it returns
// what there is to report now of a lease that is over for the reason otherwise.
func (l *Lease) Loss(otherwise Reason) Cause {
	if c, lost := l.Lost(); lost {
		return c
	}
	return l.known(Cause{Reason: otherwise})
}

// known fills in what the Manager knows of the lease now. A process that was stopped
// finds a loss late; the lease was not to be relied on from its deadline on.
func (l *Lease) known(c Cause) Cause {
	if c.Reason == ReasonDeadline && l.period.Load() <= 0 {
		c.Reason = ReasonFixed
	}
	c.At, c.Deadline = time.Now(), l.shard.m.clock.past(l.deadline.Load())
	c.LastConfirmed, c.Failures = l.LastConfirmed(), l.Failures()
	if c.Deadline.Before(c.At) {
		c.At = c.Deadline
	}
	return c
}

// Owner returns Spec.Owner.
func (l *Lease) Owner() Owner { return l.owner }
