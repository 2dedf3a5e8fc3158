package anteroom

import (
	"fmt"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/watchdog"
)

// Observer is told what happens to locks, for metrics. The metrics package
// implements it for Prometheus. Implementations embed NopObserver, so that new
// methods do not break them.
//
// Every method may be called concurrently, from goroutines that hold or wait for
// locks: it must return at once, must not panic, and must not call back into the Manager: a
// panic that the program recovers may leave a key that nobody acquires or releases any more. What renewals
// and losses are counted by delays neither, however long it takes. class
// is LockConfig.Name. The string arguments come from closed sets, listed with
// each method, so that they can serve as metric labels.
type Observer interface {
	// Acquired: an attempt to get a lock ended after wait. It comes after the admission: a NotReentrant lock may be
	// released by another goroutine, and that be reported, before it. outcome is one of
	// AcquireOutcomes; the first three mean that the lock was acquired.
	Acquired(class string, outcome Outcome, wait time.Duration)

	// Called: Redis gave a lock to this process when it was first in line for it. how is one of
	// CallNames.
	Called(class, how string)

	// Released: a hold ended by release after held. outcome is one of ReleaseOutcomes.
	Released(class string, outcome Outcome, held time.Duration)

	// Renewed: a renewal was answered. outcome is one of RenewOutcomes. left is, for a success, the time that was
	// left of the lease when the answer landed: the figure that predicts loss. It is negative for the renewal that makes
	// a new lease whole.
	Renewed(class string, outcome Outcome, left time.Duration)

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

// AcquireOutcomes lists how an attempt to get a lock may end.
func AcquireOutcomes() []Outcome {
	return []Outcome{
		OutcomeGranted, OutcomeHandedOff, OutcomeNested,
		OutcomeRefused, OutcomeCancelled, OutcomeUnavailable, OutcomeUnknown, OutcomeFailed,
	}
}

// ReleaseOutcomes lists how a release may end.
func ReleaseOutcomes() []Outcome {
	return []Outcome{OutcomeReleased, OutcomeHandedOff, OutcomeNested, OutcomeLost, OutcomeUnknown, OutcomeUnavailable}
}

// RenewOutcomes lists how a renewal may end.
func RenewOutcomes() []Outcome {
	return []Outcome{OutcomeRenewed, OutcomeRefused, OutcomeFailed}
}

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

// LossReason is why a lock was lost: a string, one of LossReasons.
type LossReason = renewal.Reason

// The reasons of losses.
const (
	LostGone     LossReason = renewal.ReasonGone     // Redis answered that the lock is not ours: deleted, expired, overwritten
	LostDeadline LossReason = renewal.ReasonDeadline // no renewal was confirmed in time, or a fixed lease ended
	LostForced   LossReason = renewal.ReasonForced   // ForceRelease; LostGone where a check came before its message
	LostClosed   LossReason = renewal.ReasonClosed   // the Manager was closed under the hold
	LostWatchdog LossReason = renewal.ReasonWatchdog // cancelled by the watchdog, see Recovery
)

// LossReasons lists them all.
func LossReasons() []LossReason {
	return []LossReason{LostGone, LostDeadline, LostForced, LostClosed, LostWatchdog}
}

// NopObserver ignores everything. Embed it to implement a part of Observer.
type NopObserver struct{}

func (NopObserver) Acquired(string, Outcome, time.Duration) {}
func (NopObserver) Called(string, string)                   {}
func (NopObserver) Released(string, Outcome, time.Duration) {}
func (NopObserver) Renewed(string, Outcome, time.Duration)  {}
func (NopObserver) Lost(string, LossReason)                 {}
func (NopObserver) Command(string, string, time.Duration)   {}
func (NopObserver) Checked(string, string)                  {}
func (NopObserver) Recovered(string, string, string)        {}
func (NopObserver) Alert(string, string, bool)              {}
func (NopObserver) Subscription(bool)                       {}
func (NopObserver) EventRaised(EventKind, bool)             {}

var _ Observer = NopObserver{}

// The closed sets of strings that an Observer is told from the watchdog and the wire. Each is
// built from the names that its owner gives.

// CheckNames lists the watchdog's checks, as Checked, Recovered, Alert and Event
// name them.
func CheckNames() []string {
	return names(watchdog.Renewal, watchdog.LockStatus, watchdog.Holder, watchdog.Connection, watchdog.Recovery)
}

// FindingNames lists what an unhealthy check may have found. Checked is told one of
// them, or "healthy", or "unknown" where there is no verdict. The watchdog's
// remarks on checks that are not unhealthy (holder_blocked, self_late) never
// reach Checked and are not in the list.
func FindingNames() []string {
	return names(
		watchdog.RenewalLate, watchdog.RenewalFailing, watchdog.RenewalStalled, watchdog.LeaseOver,
		watchdog.FieldGone, watchdog.ForeignField, watchdog.WrongCount, watchdog.TTLMissing, watchdog.TTLTooLong,
		watchdog.HolderGone, watchdog.HolderUnreachable, watchdog.OverMaxHold,
		watchdog.RedisUnreachable, watchdog.DeliveryDead, watchdog.RecoveryFailed,
	)
}

// ActionNames lists what the watchdog may do, as Recovered names it.
func ActionNames() []string {
	return []string{
		watchdog.ActionTell, watchdog.ActionRestartRenewal, watchdog.ActionHurryRenewal, watchdog.ActionReconnect,
		watchdog.ActionLose, watchdog.ActionStopRenewing, watchdog.ActionCancel, watchdog.ActionDelete,
	}
}

// RecoveryOutcomes lists what may come of an action, as Recovered names it. An
// action that was taken ends as "helped" or "not_helped", or as "unsettled" where that
// will not be known: the hold ended otherwise, its owner changed, or another action followed.
func RecoveryOutcomes() []string {
	return names(watchdog.Told, watchdog.Declined, watchdog.Helped, watchdog.NotHelped, watchdog.GaveUp, watchdog.Unsettled)
}

// How a process learns that it was called, see CallNames.
const (
	callEntered = "entered"
	callFound   = "found"
)

// CallNames lists how a process learns that Redis has given it a lock, as Called names it: by
// the message ("entered"), or without one, when it looked ("found").
func CallNames() []string { return []string{callEntered, callFound} }

// CommandNames lists the commands that a Manager sends to Redis, as Command names them.
func CommandNames() []string {
	return []string{"ask", "confirm", "release", "turn", "leave", "renew", "extend", "status", "inspect", "force", "ping", "probe"}
}

// CommandOutcomes lists how a command may end, as Command names it.
func CommandOutcomes() []string {
	return names(
		lettucecompat.OutcomeOK, lettucecompat.OutcomeRefused, lettucecompat.OutcomeGone,
		lettucecompat.OutcomeFailed, lettucecompat.OutcomeUnknown,
	)
}

func names[T fmt.Stringer](values ...T) []string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = v.String()
	}
	return list
}
