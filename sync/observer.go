package anteroom

import (
	"time"

	"github.com/anteroom/anteroom/renewal"
)

// Observer is told what happens to locks, for metrics. The metrics package
// implements it for Prometheus. Implementations embed NopObserver, so that new
// methods do not break them.
//
// Every method may be called concurrently, from goroutines that hold or wait for
// locks: it must return at once and must not call back into the Manager. What renewals
// and losses are counted by delays neither, however long it takes. class
// is LockConfig.Name. The string arguments come from closed sets, listed with
// each method, so that they can serve as metric labels.
type Observer interface {
	// Acquired: an attempt to get a lock ended after wait. outcome is one of
	// AcquireOutcomes; via tells how an acquired lock came (ViaRedis: granted by
	// Redis, ViaHandoff: passed on within the process, ViaReentry: entered again).
	Acquired(class string, outcome AcquireOutcome, via Via, wait time.Duration)

	// Released: a hold ended by release after held. outcome is one of ReleaseOutcomes.
	Released(class string, outcome ReleaseOutcome, held time.Duration)

	// Renewed: a renewal was answered. left is, for a success, the time that was
	// left of the lease when the answer landed: the figure that predicts loss.
	Renewed(class string, outcome RenewOutcome, left time.Duration)

	// Lost: a hold was lost.
	Lost(class string, reason LossReason)

	// Command: a command to Redis ended after took. name is one of CommandNames,
	// outcome one of CommandOutcomes.
	Command(name, outcome string, took time.Duration)

	// Checked: the watchdog made a check; finding is "healthy", "unknown" or one
	// of FindingNames. check is one of CheckNames.
	Checked(check, finding string)

	// Recovered: it is known what came of an action of the watchdog, or of its decision to
	// take none; each is reported once. check is one of CheckNames, action of ActionNames,
	// outcome of RecoveryOutcomes.
	Recovered(check, action, outcome string)

	// Alert: an alert was raised (active) or cleared.
	Alert(class, check string, active bool)

	// Subscription: the subscription connection came up or went down.
	Subscription(up bool)

	// EventRaised: an Event of that kind was raised; dropped if its queue was full.
	EventRaised(kind EventKind, dropped bool)
}

// AcquireOutcome is how an attempt to get a lock ended.
type AcquireOutcome string

// The outcomes of acquiring.
const (
	Acquired           AcquireOutcome = "acquired"
	AcquireRefused     AcquireOutcome = "refused"     // held by another
	AcquireCancelled   AcquireOutcome = "cancelled"   // the context or the wait limit ended while another held it
	AcquireUnavailable AcquireOutcome = "unavailable" // Redis did not answer
	AcquireUnknown     AcquireOutcome = "unknown"     // an answer was lost
	AcquireFailed      AcquireOutcome = "failed"      // wrong type, no permission, closed, …
)

// AcquireOutcomes lists them all.
var AcquireOutcomes = []AcquireOutcome{Acquired, AcquireRefused, AcquireCancelled, AcquireUnavailable, AcquireUnknown, AcquireFailed}

// Via is how an acquired lock came to its owner.
type Via string

// The ways of acquiring.
const (
	ViaRedis   Via = "redis"
	ViaHandoff Via = "handoff"
	ViaReentry Via = "reentry"
	ViaNone    Via = "none" // not acquired
)

// Vias lists them all.
var Vias = []Via{ViaRedis, ViaHandoff, ViaReentry, ViaNone}

// ReleaseOutcome is how a release ended.
type ReleaseOutcome string

// The outcomes of releasing.
const (
	ReleasedInRedis    ReleaseOutcome = "released"    // Redis confirmed it
	ReleasedByHandoff  ReleaseOutcome = "handed_off"  // passed to a waiter of this process
	ReleasedNested     ReleaseOutcome = "nested"      // an inner hold of a reentrant lock
	ReleaseLost        ReleaseOutcome = "lost"        // the lock had been lost before
	ReleaseUnknown     ReleaseOutcome = "unknown"     // the answer was lost; retried in the background
	ReleaseUnavailable ReleaseOutcome = "unavailable" // Redis did not take it; retried in the background
)

// ReleaseOutcomes lists them all.
var ReleaseOutcomes = []ReleaseOutcome{ReleasedInRedis, ReleasedByHandoff, ReleasedNested, ReleaseLost, ReleaseUnknown, ReleaseUnavailable}

// RenewOutcome is how a renewal ended.
type RenewOutcome string

// The outcomes of renewing.
const (
	RenewedOK    RenewOutcome = "renewed"
	Reacquired   RenewOutcome = "reacquired" // taken back, see RecoverReacquire
	RenewRefused RenewOutcome = "refused"    // the lock was gone: lost
	RenewFailed  RenewOutcome = "failed"     // no usable answer; tried again
)

// RenewOutcomes lists them all.
var RenewOutcomes = []RenewOutcome{RenewedOK, Reacquired, RenewRefused, RenewFailed}

// LossReason is why a lock was lost: a string, one of LossReasons.
type LossReason = renewal.Reason

// The reasons of losses.
const (
	LostGone     LossReason = renewal.ReasonGone     // Redis answered that the lock is not ours: deleted, expired, overwritten
	LostDeadline LossReason = renewal.ReasonDeadline // no renewal was confirmed in time, or a fixed lease ended
	LostForced   LossReason = renewal.ReasonForced   // ForceRelease; LostGone where a check came before its notice
	LostClosed   LossReason = renewal.ReasonClosed   // the Manager was closed under the hold
	LostWatchdog LossReason = renewal.ReasonWatchdog // cancelled by the watchdog, see Recovery
)

// LossReasons lists them all.
var LossReasons = []LossReason{LostGone, LostDeadline, LostForced, LostClosed, LostWatchdog}

// NopObserver ignores everything. Embed it to implement a part of Observer.
type NopObserver struct{}

// Acquired does nothing.
func (NopObserver) Acquired(string, AcquireOutcome, Via, time.Duration) {}

// Released does nothing.
func (NopObserver) Released(string, ReleaseOutcome, time.Duration) {}

// Renewed does nothing.
func (NopObserver) Renewed(string, RenewOutcome, time.Duration) {}

// Lost does nothing.
func (NopObserver) Lost(string, LossReason) {}

// Command does nothing.
func (NopObserver) Command(string, string, time.Duration) {}

// Checked does nothing.
func (NopObserver) Checked(string, string) {}

// Recovered does nothing.
func (NopObserver) Recovered(string, string, string) {}

// Alert does nothing.
func (NopObserver) Alert(string, string, bool) {}

// Subscription does nothing.
func (NopObserver) Subscription(bool) {}

// EventRaised does nothing.
func (NopObserver) EventRaised(EventKind, bool) {}

var _ Observer = NopObserver{}
