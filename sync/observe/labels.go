package observe

// LabelSets are the closed sets of names that an Observer, a Tracer and Events have.
type LabelSets struct {
	Acquire []Outcome // how an attempt to get a lock may end
	Release []Outcome // how a release may end
	Renew   []Outcome // how a renewal may end
	Losses  []LossReason
	Events  []EventKind

	// Calls are how a process learns that Redis has given it a lock: by the message ("entered"), or without one, when it
	// asked ("found").
	Calls []string
	// Commands are those that a Manager sends to Redis, and CommandOutcomes how they may end.
	Commands, CommandOutcomes []string
	// Checks are the watchdog's checks, and Findings what an unhealthy one may have found.
	Checks, Findings []string
	// Actions are what the watchdog may do. One that was taken ends as "helped" or "not_helped", or as "unsettled" where
	// that will not be known: the hold ended otherwise, its owner changed, or another action came after it.
	Actions, RecoveryOutcomes []string
}

// How a process learns that it was called.
const (
	CallEntered = "entered"
	CallFound   = "found"
)

// Labels returns all of them, for who makes series or documents of them. The caller may keep and change them.
func Labels() LabelSets {
	return LabelSets{
		Acquire: []Outcome{
			OutcomeGranted, OutcomeHandedOff, OutcomeNested,
			OutcomeRefused, OutcomeCancelled, OutcomeUnavailable, OutcomeUnknown, OutcomeFailed,
		},
		Release: []Outcome{OutcomeReleased, OutcomeHandedOff, OutcomeNested, OutcomeLost, OutcomeUnknown, OutcomeUnavailable},
		Renew:   []Outcome{OutcomeRenewed, OutcomeRefused, OutcomeFailed},
		Losses:  []LossReason{LostGone, LostDeadline, LostFixed, LostForced, LostClosed, LostWatchdog},
		Events: []EventKind{
			EventLost, EventRenewalFailing, EventReleaseFailed, EventReleaseGivenUp, EventUnlockLost, EventReentryLost,
			EventSelfDeadlock, EventLongWait, EventDeadlock, EventUnavailable, EventMisconfigured, EventAvailable,
			EventAbandoned, EventSubscriptionDown, EventSubscriptionUp, EventWarning, EventClockJump, EventSelfLate,
			EventAlert, EventAlertCleared, EventRecovery, EventCapacity, EventClosing,
		},
		Calls: []string{CallEntered, CallFound},
		Commands: []string{
			"acquire", "confirm", "release", "yield", "cancel", "renew", "extend", "status", "inspect", "force", "take", "ping", "probe",
		},
		CommandOutcomes: []string{"ok", "refused", "gone", "failed", "unknown"},
		Checks:          []string{"renewal", "lock_status", "holder", "connection", "recovery"},
		Findings: []string{
			"renewal_late", "renewal_failing", "renewal_stalled", "lease_over",
			"field_gone", "foreign_field", "wrong_count", "ttl_missing", "ttl_too_long",
			"holder_gone", "holder_unreachable", "over_max_hold",
			"redis_unreachable", "delivery_dead", "recovery_failed",
		},
		Actions: []string{
			"report", "restart_renewal", "hurry_renewal", "reconnect", "lose", "stop_renewing", "cancel", "delete",
		},
		RecoveryOutcomes: []string{"reported", "declined", "helped", "not_helped", "gave_up", "unsettled"},
	}
}
