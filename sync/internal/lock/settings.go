package lock

import (
	"sync/atomic"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/sync/internal/conversation"
)

// Moment is a monotonic time: how long after the Manager's zero.
type Moment = time.Duration

const never = Moment(conversation.Never)

// Lease is what an owner asks of its lock. It is never changed.
type Lease struct {
	For    time.Duration // L
	Period time.Duration // between renewals; negative: a fixed lease, which is never renewed
	Margin time.Duration
}

// Fixed reports whether the lease is never renewed.
func (l *Lease) Fixed() bool { return l.Period < 0 }

// Settings are those of a lock. They are never changed while a key is in use with them.
type Settings struct {
	Class          string // for reports
	Fair           bool
	Lease          Lease // of a caller that asks for no other
	Fencing        bool
	RecordTime     time.Duration
	MaxHandoffs    int // 0: each owner is granted the lock by Redis
	MaxHandoffTime time.Duration
	Linger         time.Duration // a lock that nobody wants is kept for so long at most; 0: not at all
	MinHold        time.Duration
	Replicas       int
	ReplicaTimeout time.Duration
	StringHolders  bool
	Shared         bool          // of an RWMutex or a Semaphore
	Capacity       int64         // of a Semaphore
	Timeout        time.Duration // of one command
	Of             any           // the caller's, who finds it by Key.Settings

	Wire  lettucecompat.Terms // see Prepare
	times conversation.Terms
	batch string // which grants of a server share a batch of renewals: those of one script and one time limit

	policy atomic.Pointer[queue.Policy] // see policyOf
}

// policyOf is how the queue of a key with the settings s admits: one serves all such keys.
func (l *Locks) policyOf(s *Settings) *queue.Policy {
	p := s.policy.Load()
	if p == nil || p.Zero != l.zero {
		p = &queue.Policy{All: 1, Fair: s.Fair, Returns: true, Zero: l.zero}
		if s.Shared {
			p.All, p.Returns, p.Turn = 0, false, s.MaxHandoffTime
		}
		if s.Shared && s.Capacity == 0 {
			p.All = lettucecompat.AllUnits
		}
		s.policy.Store(p)
	}
	return p
}

// Prepare fills in what the wire needs. It is called once, before the settings are used.
func (s *Settings) Prepare() {
	l := s.Lease.For
	s.times = conversation.Terms{
		Lease: l, Call: lettucecompat.CallLease(l), Life: lettucecompat.PlaceLife(l), Margin: s.Lease.Margin, Late: s.Timeout,
	}
	if s.batch = "|" + s.Timeout.String(); s.Shared {
		s.batch += "|units"
	}
	s.Wire.Call, s.Wire.Lease, s.Wire.Life = s.times.Call, s.times.Lease, s.times.Life
	s.Wire.Shared, s.Wire.Capacity = s.Shared, s.Capacity
	s.Wire.Strings, s.Wire.Fenced, s.Wire.RecordTime = s.StringHolders, s.Fencing, s.RecordTime
}
