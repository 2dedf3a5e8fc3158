package anteroom

import (
	"fmt"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/watchdog"
)

// This file lists the closed sets of strings that Observer passes on from the
// watchdog and the wire. They stand here because an Observer imports this package
// only; each is built from the names that its owner gives, so that the two cannot
// differ.

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

// CommandNames lists the commands that a Manager sends to Redis, as Command names them.
func CommandNames() []string {
	return []string{"acquire", "release", "turn", "renew", "extend", "status", "inspect", "force", "ping", "probe"}
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
