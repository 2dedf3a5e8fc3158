package watchdog

import (
	"context"
	"time"
)

// Strategy says what the watchdog may do for a hold. A loss that Redis' master
// has stated (FieldGone), and a lease that is over, end the hold and notify the holder under
// every strategy: these are facts and no remedies.
type Strategy uint8

const (
	// Default stops renewing where the owner is gone or over MaxHold, so that the
	// lease ends by itself, and hurries a late renewal.
	Default Strategy = iota
	// Notify only reports.
	Notify
	// Release cancels the hold and stops renewing on a finding
	// against it. It deletes only where the owner's goroutine has ended.
	Release
)

// String returns the strategy's name as metrics and logs show it.
func (s Strategy) String() string { return nameOf(s, "default", "notify", "release") }

// Facts is one hold as the process knows it at one moment.
type Facts struct {
	// ID identifies the hold: 1 or more, never given again within one Watchdog's life. The
	// Watchdog uses 0 for what concerns the whole process. An action names a hold by its ID
	// alone. Where one ID passes on by hand-off (a changed Since shows that), it is for the
	// Actor to spare the next owner.
	ID uint64
	// Key and Class name the lock and its metric class.
	Key, Class string
	// Since is when the present owner got the lock.
	Since time.Time
	// Fixed: no renewal is to be expected: a fixed lease, or one whose
	// renewal was stopped on purpose.
	Fixed bool
	// Stretched: Redis may keep the lock for longer than Lease and Deadline say.
	Stretched bool
	// Lost: the hold is lost already and its owner has not let go of it yet.
	// Only the holder check still applies: an owner that has ended never will.
	Lost bool
	// Lease and RenewalTime are the lock's times. MaxHold is how long an owner may
	// keep it; 0 means without limit.
	Lease, RenewalTime, MaxHold time.Duration
	// Period is how often the hold is checked, AlertThreshold the number of failures in
	// a row that makes an alert. Both are above 0.
	Period         time.Duration
	AlertThreshold int
	// Strategy is what may be done for this hold.
	Strategy Strategy
	// LastConfirmed is when the last command was sent whose answer confirmed the
	// hold. Deadline is the end of its local validity; zero means that none is known.
	LastConfirmed, Deadline time.Time
	// NextRenewal is when the next renewal is due. One that is due already has not been
	// answered yet. Zero: none will be sent.
	NextRenewal time.Time
	// RenewalFailures counts renewals in a row without a usable answer.
	RenewalFailures int
	// Goroutine is the id of the one goroutine that can unlock, and 0 where any
	// goroutine can: for a Hold, and for a mutex that is not bound to goroutines.
	Goroutine int64
	// Reachable is false when nobody can reach the Hold or its context any more.
	Reachable bool
	// CallSite is where the lock was taken, if that was recorded.
	CallSite string
}

// RenewalStats is what the renewal queue says about itself.
type RenewalStats struct {
	// LoopLastRound is when its loop last turned; zero means that it has not turned
	// yet.
	LoopLastRound time.Time
	// NextDue is the due time of the oldest work that waits for the loop; zero
	// means that there is none. What waits for an answer of Redis does not count.
	NextDue time.Time
	// SuccessRate is the share, 0 to 1, of the last Window renewals that brought a
	// usable answer.
	SuccessRate float64
	// Window is the number of renewals behind SuccessRate.
	Window int
}

// Status is what Redis says about one hold.
type Status struct {
	// Answered is false when there was no usable answer from the slot's master; all
	// else but Err is meaningless then.
	Answered bool
	// Present: the holder's field is there. Gone: the master says it
	// is not (no key, no field, or a key of another type), or the hold has ended meanwhile,
	// which Lookup says. An answer that claims neither is no verdict.
	Present, Gone bool
	// Count is the field's value; Fields the number of fields in the hash.
	Count, Fields int64
	// TTL is the key's remaining time to live; negative means that it never expires.
	TTL time.Duration
	// Err is why there was no answer, or nil.
	Err error
}

// Source is what the process knows about its own holds. All its methods are safe
// for concurrent use, do no I/O and do not block on anything that does.
type Source interface {
	// Changes returns which holds have come and which went since it was last asked. A hold
	// belongs to the set from its grant until its release or its loss, whichever comes first;
	// and again, under the same id, where it is lost and its owner has not let go. One that
	// came and went in between need not be named, and one may be named that did neither:
	// Lookup has the last word. The slices are the Watchdog's.
	Changes() (came, went []uint64)
	// Lookup returns the hold with that id as it is now, and false if it does not
	// belong to the set, be it for a moment or for good; what is gone for good is reported by
	// Changes. The Watchdog asks it before every check and every accusation.
	Lookup(id uint64) (Facts, bool)
	// LookupAll is Lookup for some holds together, of which facts has the IDs. It fills in
	// the other fields, and sets ID 0 for a hold that does not belong to the set. That can cost much less
	// than one after the other: what belongs to a hold lies in many places of a large
	// memory, and a processor that knows of several fetches them at the same time.
	LookupAll(facts []Facts)
	// Renewals returns the renewal queue's figures.
	Renewals() RenewalStats
}

// Prober asks Redis. Its methods block until they are answered or ctx ends, and
// not longer: a Prober that outstays its ctx delays Stop. Each method is called by
// one goroutine at a time, but Status may run beside the other two.
type Prober interface {
	// Status returns one Status for each of the holds, in order. It splits them by
	// node itself and returns at the latest when ctx ends, with Answered false for
	// those without an answer. The next question may use the same slice.
	Status(ctx context.Context, holds []Facts) []Status
	// Ping returns why a PING had no answer. An error reply is an answer too.
	Ping(ctx context.Context) error
	// ProbeDelivery returns why a published message did not arrive on the subscription
	// connection, nil also if no subscription is needed now.
	ProbeDelivery(ctx context.Context) error
}

// Actor is what the Watchdog may do.
type Actor interface {
	// Act takes one of the actions on the hold with that id, 0 for the process as a whole,
	// because of f. It hands the work on and returns, without waiting for Redis, whether it
	// acted: not where the hold has ended meanwhile or there is nothing to be done. The
	// Watchdog's goroutine calls it.
	Act(id uint64, action string, f Finding) bool
}
