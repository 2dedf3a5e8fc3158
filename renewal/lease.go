package renewal

import (
	"sync/atomic"
	"time"
)

// Spec describes a lease that was just granted.
type Spec struct {
	// Item is what each renewal sends. Item.Lease is also the length that the
	// first deadline is made of. Key and Field may be left empty where Owner is a
	// Namer.
	Item
	// Shard names the server that the key lives on; leases of one shard share
	// batches. Any string, also an empty one.
	Shard string
	// Period is the time between two renewals. With ≤ 0 the lease is fixed:
	// it is never renewed, and only its deadline is kept. A Period that is
	// not well below Item.Lease leaves no time for a second try.
	Period time.Duration
	// Margin is how long before Redis' own expiry the holder is told.
	Margin time.Duration
	// SentAt is the moment before the acquire was sent, with its monotonic
	// reading. The first deadline is SentAt + Lease − Margin.
	SentAt time.Time
	// Owner is told of a loss; nil: nobody is to be told. See Lease.Owner.
	Owner Owner
}

// Owner is who has a lease.
type Owner interface {
	// Lost is called once if the lease is lost, by the loop goroutine, never
	// after End or Stop returned, and possibly before Add returns. It must
	// not block and does no I/O: while it runs nobody else is told. It may
	// call the Manager's and the lease's methods except Start and Stop.
	Lost(Cause)
}

// Namer is an Owner that is asked for the lock's key and the holder's field whenever a
// renewal is sent. Its leases need not keep them: names are a third of a lease.
type Namer interface {
	Owner
	// Names returns the same names each time. It is called with the Manager's mutex
	// not held, concurrently, and must not block.
	Names() (key, field string)
}

// named makes a Namer of any Owner, and of none.
type named struct {
	owner      Owner
	key, field string
}

func (n *named) Names() (key, field string) { return n.key, n.field }

func (n *named) Lost(c Cause) {
	if n.owner != nil {
		n.owner.Lost(c)
	}
}

// terms are what the leases of one kind of lock have in common. Leases on the same
// terms share them.
type terms struct {
	lease, period, margin time.Duration
	reacquire             bool
}

// maxTerms bounds the terms that a Manager remembers; beyond it each lease has its own.
const maxTerms = 256

// termsLocked returns those of s.
func (m *Manager) termsLocked(s Spec) *terms {
	t := terms{lease: s.Lease, period: s.Period, margin: s.Margin, reacquire: s.Reacquire}
	shared := m.terms[t]
	if shared == nil {
		made := t // a copy, so that what is found costs nothing
		shared = &made
		if len(m.terms) < maxTerms {
			m.terms[t] = shared
		}
	}
	return shared
}

// Reason says how a lease was lost.
type Reason uint8

const (
	// ReasonNone is the zero value: no reason was given.
	ReasonNone Reason = iota
	// ReasonGone: Redis' master said that the field is no longer there.
	ReasonGone
	// ReasonDeadline: no renewal was confirmed before the deadline.
	ReasonDeadline
	// ReasonForced: somebody released the lock by force.
	ReasonForced
	// ReasonWatchdog: the watchdog found the lease gone or ended the hold.
	ReasonWatchdog
	// ReasonTakenOver: another holder was seen at the key.
	ReasonTakenOver
	// ReasonClosed: the owner of the Manager is closing.
	ReasonClosed
)

// String returns the reason in lower case, fit for a log or a metric label.
func (r Reason) String() string {
	names := [...]string{"none", "gone", "deadline", "forced", "watchdog", "taken_over", "closed"}
	if int(r) < len(names) {
		return names[r]
	}
	return "invalid"
}

// Cause is what the holder is told about a loss.
type Cause struct {
	Reason Reason
	// At is since when the lease may no longer be relied on: the deadline for
	// ReasonDeadline, else the moment at which the loss was concluded, and never later
	// than the deadline.
	At time.Time
	// LastConfirmed is when the last confirmed command was sent.
	LastConfirmed time.Time
	// Deadline is until when the lease could have been relied on, and Failures how many
	// renewals had no usable answer since LastConfirmed. Both are filled in by the Manager.
	Deadline time.Time
	Failures int
	// Err is what Redis answered, or the last failure before the deadline.
	Err error
}

// State is where a lease is in its life. It leaves StateActive exactly once.
type State uint32

const (
	// StateActive: neither ended nor lost. Whether it can still be relied on
	// is a question of the clock; ask Valid.
	StateActive State = iota
	// StateEnded: the owner called End.
	StateEnded
	// StateLost: a loss was concluded; Lost was called or is about to be.
	StateLost
)

// String returns the state in lower case.
func (s State) String() string {
	switch s {
	case StateActive:
		return "active"
	case StateEnded:
		return "ended"
	case StateLost:
		return "lost"
	}
	return "invalid"
}

// stage is where the next renewal of a lease is.
type stage uint8

const (
	idle    stage = iota // not due yet
	waiting              // due, in the FIFO of its shard
	flying               // in a batch under way
)

// Lease is one lease that a Manager keeps. All its methods are safe for
// concurrent use. Those that only read take no lock; their answers belong
// to one moment each and not to one moment together.
type Lease struct {
	// Written once by Add.
	*terms
	owner Namer
	shard *shard // and through it the Manager

	// Written with Manager.mu held, read without it.
	deadline  atomic.Int64 // never moves back
	confirmed atomic.Int64
	due       atomic.Int64          // never: no renewal is planned
	cause     atomic.Pointer[Cause] // set before state becomes StateLost
	state     atomic.Uint32
	failures  atomic.Int32
	renewals  atomic.Uint32

	// Guarded by Manager.mu.
	place      int32    // in the heap; -1 when not in it
	failing    *failing // nil after a confirmation
	prev, next *Lease   // neighbours in the shard's FIFO while stage is waiting
	stage      stage
	stopped    bool // StopRenewing was called
	offbeat    bool // the renewal that is planned or under way is a retry or hurried
	again      bool // hurried while under way: that answer speaks of before
}

// failing is what is known of a lease whose last renewal failed.
type failing struct {
	err   error
	limit int // most leases in its next batch
}

// End ends the lease because its owner releases it. It is called before the
// release is sent: from here on no renewal is handed to the Sender, and the answer
// of one that was before is ignored. Nothing waits for that answer. It returns true when
// this call ended the lease, and then Lost is never called; false when it had
// been lost or ended before.
func (l *Lease) End() bool {
	l.shard.m.mu.Lock()
	defer l.shard.m.mu.Unlock()
	return l.shard.m.concludeLocked(l, StateEnded)
}

// Lose concludes elsewhere that the lease is lost: by the watchdog, by a
// forced release, at closing. It returns true when this call lost the lease;
// Valid is false when it returns, and Lost is called soon after, by the loop
// goroutine as for every other loss, so the caller may hold locks that Lost
// needs. It returns false, and does nothing, when the lease had been lost or
// ended before. A zero At or LastConfirmed is filled in. While the Manager is
// not running Lost waits for the next Start.
func (l *Lease) Lose(c Cause) bool {
	l.shard.m.mu.Lock()
	defer l.shard.m.mu.Unlock()
	return l.shard.m.loseLocked(l, c)
}

// StopRenewing leaves the lease to end by itself: no renewal is handed to the
// Sender any more, and the deadline still tells. The answer of a renewal under way is
// still heard, because it says until when Redis keeps the key. There is no
// way back.
func (l *Lease) StopRenewing() {
	m := l.shard.m
	m.mu.Lock()
	defer m.mu.Unlock()
	l.stopped = true
	if State(l.state.Load()) != StateActive {
		return
	}
	if l.stage == waiting {
		l.shard.remove(l)
		l.stage = idle
	}
	m.planLocked(l, never)
}

// Extend tells that another confirmed command, sent at sentAt, raised the
// time to live in Redis to lease. The deadline only moves forward, to sentAt +
// lease − Margin; a shorter one changes nothing, since scripts never lower a
// TTL. Once the deadline has passed nothing moves it. The rhythm of the
// renewals, and the lease that they ask for, stay as they are.
func (l *Lease) Extend(sentAt time.Time, lease time.Duration) {
	m := l.shard.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if State(l.state.Load()) != StateActive || l.deadline.Load() <= m.now() {
		return
	}
	m.confirmLocked(l, sentAt, lease)
	m.heap.move(l, l.attention())
}

// Hurry makes the next renewal due now, because the lease is suspect. When a
// renewal is under way another one follows its answer. It returns false, and
// does nothing, when no renewal will be sent: the lease is fixed, lost, ended
// or no longer renewed.
func (l *Lease) Hurry() bool {
	m := l.shard.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if State(l.state.Load()) != StateActive || l.period <= 0 || l.stopped {
		return false
	}
	m.hurryLocked(l, m.now())
	m.heap.move(l, l.attention())
	m.nudgeLocked()
	return true
}
