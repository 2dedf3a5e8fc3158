package observe

import "time"

// Observer has the hooks that are called for what happens to locks, for metrics. A nil hook is not called, and costs
// nothing. Package metrics has an Observer for Prometheus.
//
// Every hook may be called concurrently, from goroutines that hold or wait for locks: it must return immediately, must
// not panic, and must not call back into the Manager. A panic that the program recovers may leave a key that nobody
// acquires or releases any more. What renewals and losses are counted by delays neither, however long it takes. class
// is LockConfig.Name. The other strings come from closed sets, so that they can serve as metric labels: see Labels.
type Observer struct {
	// Acquired: an attempt to get a lock ended after wait. It comes after the admission: a lock that is not Reentrant may be
	// released by another goroutine, and that be reported, before it. outcome is one of LabelSets.Acquire; the first
	// three mean that the lock was acquired.
	Acquired func(class string, outcome Outcome, wait time.Duration)

	// Called: Redis gave a lock to this process when it was first in line for it. how is one of LabelSets.Calls.
	Called func(class, how string)

	// Released: a hold ended by release after held. outcome is one of LabelSets.Release.
	Released func(class string, outcome Outcome, held time.Duration)

	// Renewed: a renewal was answered. outcome is one of LabelSets.Renew. left is, for a success, the time that was left
	// of the lease when the answer landed: the figure that predicts loss. It is negative for the renewal that makes a new
	// lease whole.
	Renewed func(class string, outcome Outcome, left time.Duration)

	// Lost: a hold was lost.
	Lost func(class string, reason LossReason)

	// Command: a command to Redis ended after took. name is one of LabelSets.Commands, outcome of CommandOutcomes.
	Command func(name, outcome string, took time.Duration)

	// Checked: the watchdog made a check, one of LabelSets.Checks. finding is "healthy", "unknown" or one of Findings.
	Checked func(check, finding string)

	// Recovered: it is known what came of an action of the watchdog, or of its decision to take none; each is reported
	// once. check, action and outcome are of LabelSets.Checks, Actions and RecoveryOutcomes.
	Recovered func(check, action, outcome string)

	// Alert: an alert was raised (active) or cleared.
	Alert func(class, check string, active bool)

	// Subscription: the subscription connection came up or went down.
	Subscription func(up bool)

	// EventRaised: an Event of that kind was raised; dropped if its queue was full.
	EventRaised func(kind EventKind, dropped bool)
}
