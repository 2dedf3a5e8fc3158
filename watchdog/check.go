package watchdog

import "time"

// Check names one of the five checks. The set is closed, so that it can be a
// metric label.
type Check uint8

// The five checks.
const (
	// Renewal asks whether the leases are renewed in time.
	Renewal Check = iota
	// LockStatus asks Redis whether it still says what this process believes.
	LockStatus
	// Holder asks whether the owner of a hold can still let go of it.
	Holder
	// Connection asks whether commands and published messages arrive.
	Connection
	// Recovery asks whether the last action on one of the other four helped.
	Recovery

	checkCount = int(Recovery) + 1
)

// String returns the check's name as metrics and logs show it.
func (c Check) String() string {
	return nameOf(c, "renewal", "lock_status", "holder", "connection", "recovery")
}

// Health is the result of one check.
type Health uint8

const (
	// Unknown is no verdict: nobody asked, Redis did not answer, or a goroutine
	// dump was cut short. It is the zero value, so that a verdict that nobody
	// reached never reads as a good one. It neither adds to a row of failures
	// nor ends one.
	Unknown Health = iota
	// Healthy means that the check asked and found nothing wrong.
	Healthy
	// Unhealthy means that the check found what its Finding says.
	Unhealthy
)

// String returns the health's name as metrics and logs show it.
func (h Health) String() string { return nameOf(h, "unknown", "healthy", "unhealthy") }

// Finding says what a check found. The set is closed, so that it can be a metric
// label.
type Finding uint8

const (
	// None is found where there is nothing to say.
	None Finding = iota
	// RenewalLate: no renewal was confirmed for longer than the renewal time and
	// its slack.
	RenewalLate
	// RenewalFailing: two or more renewals in a row brought no usable answer, or,
	// for the process as a whole, at least half of the recent renewals did not.
	RenewalFailing
	// RenewalStalled: the renewal loop itself does not turn although work is due.
	RenewalStalled
	// LeaseOver: the local deadline has passed and the hold is still listed.
	LeaseOver
	// FieldGone: the master says that the holder's field is not there any more.
	FieldGone
	// ForeignField: another field is beside the holder's.
	ForeignField
	// WrongCount: the holder's field does not hold 1.
	WrongCount
	// TTLMissing: the key never expires, so a crash would leave it for good.
	TTLMissing
	// TTLTooLong: the key outlives any lease that this process asked for.
	TTLTooLong
	// HolderGone: the goroutine that must unlock has ended.
	HolderGone
	// HolderUnreachable: the Hold is garbage and nobody released it.
	HolderUnreachable
	// HolderBlocked: the goroutine that must unlock is parked. This is a remark
	// on a Healthy verdict and no accusation: holders wait for many good reasons.
	HolderBlocked
	// OverMaxHold: the lock is held longer than MaxHold.
	OverMaxHold
	// RedisUnreachable: PING brought no answer in time.
	RedisUnreachable
	// DeliveryDead: Redis answers, but a published message does not arrive.
	DeliveryDead
	// SelfLate: the watchdog itself came late, so it accuses nobody.
	SelfLate
	// RecoveryFailed: an action did not bring the health back.
	RecoveryFailed
)

// String returns the finding's name as metrics and logs show it.
func (f Finding) String() string {
	return nameOf(f, "none", "renewal_late", "renewal_failing", "renewal_stalled", "lease_over",
		"field_gone", "foreign_field", "wrong_count", "ttl_missing", "ttl_too_long",
		"holder_gone", "holder_unreachable", "holder_blocked", "over_max_hold",
		"redis_unreachable", "delivery_dead", "self_late", "recovery_failed")
}

// nameOf returns the name at index v, and "invalid" for a value out of the set,
// because a label must never carry a number that nobody declared.
func nameOf[T ~uint8](v T, names ...string) string {
	if int(v) < len(names) {
		return names[v]
	}
	return "invalid"
}

// Verdict is what one check says about one hold, or about the process as a whole.
// It is a value without references into the Watchdog.
type Verdict struct {
	// Check is the check that speaks.
	Check Check
	// Health is its answer.
	Health Health
	// Finding says what was found. A Healthy verdict carries None, or a remark
	// (HolderBlocked).
	Finding Finding
	// Reason is one sentence for people. It is empty where Finding is None and
	// Health is Healthy. It is in our words: it quotes nobody, and names no key.
	Reason string
	// Err is what a question to Redis brought instead of an answer, if Reason speaks of
	// that. It may quote anything.
	Err error
	// At is the moment for which the verdict speaks.
	At time.Time
}

// healthy returns the verdict of a check that found nothing.
func healthy(c Check, at time.Time) Verdict { return Verdict{Check: c, Health: Healthy, At: at} }

// unhealthy returns an accusation.
func unhealthy(c Check, at time.Time, f Finding, reason string) Verdict {
	return Verdict{Check: c, Health: Unhealthy, Finding: f, Reason: reason, At: at}
}

// unknown returns the verdict of a check that could not ask.
func unknown(c Check, at time.Time, f Finding, reason string) Verdict {
	return Verdict{Check: c, Health: Unknown, Finding: f, Reason: reason, At: at}
}

// because returns v with what Redis brought instead of an answer.
func (v Verdict) because(err error) Verdict {
	v.Err = err
	return v
}
