package observe

// Outcome says how an operation ended, in an Error, and to an Observer and a Tracer. Labels lists which of them
// each of these gets.
type Outcome string

// How an operation ended. An acquisition that did not succeed holds nothing, and an Extend
// that did not leaves what was held as it was, unless it is lost. A release always ends the
// hold, even if it fails.
const (
	OutcomeGranted     Outcome = "granted"     // acquired: Redis granted it
	OutcomeHandedOff   Outcome = "handed_off"  // passed on within the process: acquired from, or released to, another owner
	OutcomeNested      Outcome = "nested"      // an inner hold of a reentrant lock began or ended
	OutcomeRefused     Outcome = "refused"     // held by another; of a renewal: the lock was gone
	OutcomeCancelled   Outcome = "cancelled"   // the context or the wait limit ended while another held it
	OutcomeUnavailable Outcome = "unavailable" // Redis did not answer; a release is retried in the background
	OutcomeUnknown     Outcome = "unknown"     // a command may have taken effect; its clean-up or repeat continues in the background
	OutcomeFailed      Outcome = "failed"      // wrong type, no permission, closed, …; of a renewal: no usable answer, tried again
	OutcomeMistake     Outcome = "mistake"     // of the program, in an Error: nothing was tried
	OutcomeReleased    Outcome = "released"    // Redis confirmed it; in an Error: it was released before
	OutcomeLost        Outcome = "lost"        // the lock was lost before
	OutcomeRenewed     Outcome = "renewed"     // the lease is whole again
)

// AcquireLabels words one of AcquireOutcomes as metrics and spans show it: "acquired" and
// how the lock came ("redis", "handoff" or "reentry"), or how acquiring failed and "none".
func (o Outcome) AcquireLabels() (outcome, via string) {
	switch o {
	case OutcomeGranted:
		return "acquired", "redis"
	case OutcomeHandedOff:
		return "acquired", "handoff"
	case OutcomeNested:
		return "acquired", "reentry"
	}
	return string(o), "none"
}

// LossReason is why a lock was lost.
type LossReason string

// The reasons of losses.
const (
	LostGone     LossReason = "gone"     // Redis answered that the lock is not ours: deleted, expired, overwritten
	LostDeadline LossReason = "deadline" // no renewal was confirmed in time
	LostFixed    LossReason = "fixed"    // a fixed lease ended as agreed, before its holder released it
	LostForced   LossReason = "forced"   // ForceRelease; LostGone where a check came before its message
	LostClosed   LossReason = "closed"   // the Manager was closed under the hold
	LostWatchdog LossReason = "watchdog" // cancelled by the watchdog, see Recovery
)
