package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/watchdog"
)

// This file has the sentences of events, but for those of long waits and deadlocks. What a person can do comes first.

// unavailableText says what to check when err came in place of an answer of the server shard.
func unavailableText(shard string, err error) string {
	if lettucecompat.Transient(err) {
		return "check the state of Redis" + At(shard) + ", which answers and refuses"
	}
	return "check that Redis" + At(shard) + " can be reached"
}

// warningText says what to mend where locks work less well than they could.
func warningText(w lettucecompat.Warning) string {
	text := map[lettucecompat.WarningKind]string{
		lettucecompat.WarnPublishRefused:   "allow the Redis user to publish on the channels of locks (docs/operations.md has the ACL): waiters are not called",
		lettucecompat.WarnChannelRefused:   "allow the Redis user to subscribe to the channels of locks (docs/operations.md has the ACL): waiters poll",
		lettucecompat.WarnMalformedMessage: "find out who else publishes on the channels of locks: a message was malformed",
		lettucecompat.WarnHiddenCluster:    "use a client for a Redis Cluster: one has answered",
		lettucecompat.WarnTrackingRefused:  "unless the error says otherwise, allow CLIENT TRACKING and RESP3 (docs/operations.md has the ACL): until then a removed lock is noticed within seconds, not immediately",
	}[w.Kind]
	if w.Count > 1 {
		text += fmt.Sprintf(" (%d times)", w.Count)
	}
	return text
}

// alertText says what so many checks in a row have found.
func alertText(v watchdog.Verdict, failures int) string {
	text := v.Reason
	if failures > 1 {
		text += fmt.Sprintf("; found %d times in a row", failures)
	}
	return text
}

// recoveryText says what was found, what was done about it, and what came of that.
func recoveryText(reason, action string, o watchdog.RecoveryOutcome) string {
	done := map[string]string{
		watchdog.ActionRestartRenewal: "the renewal loop was restarted",
		watchdog.ActionHurryRenewal:   "a renewal was sent immediately",
		watchdog.ActionReconnect:      "the subscription is re-established",
		watchdog.ActionLose:           "the holder was notified",
		watchdog.ActionStopRenewing:   "renewal was stopped, so that the lease ends by itself",
		watchdog.ActionCancel:         "the hold was ended",
		watchdog.ActionDelete:         "the hold was ended and the lock released",
	}[action]
	switch o {
	case watchdog.Reported:
		done = "no action taken"
	case watchdog.Declined:
		done = "no action taken, since the hold has changed"
	case watchdog.Helped:
		done += ", which helped"
	case watchdog.NotHelped:
		done += ", which did not help"
	case watchdog.GaveUp:
		done += " in vain, and will not be again"
	}
	if reason == "" {
		return done
	}
	return reason + "; " + done
}

// selfDeadlockText says that a goroutine waits for itself.
func selfDeadlockText(site string) string {
	text := "a goroutine waits for a lock that it holds itself"
	if site != "" {
		text += ", taken" + At(site)
	}
	return text + ", unless another goroutine is to release it; Acquire, RAcquire and Do enter again with the Hold's context, and Lock of a Mutex " +
		"with LockConfig.Reentrant"
}

// closingText says what Close has waited for; "" where it is just done.
func closingText(after time.Duration, classes map[string]int, commands int) string {
	text, holds := "Close has waited for "+after.String()+" for ", 0
	for _, n := range classes {
		holds += n
	}
	switch {
	case holds == 0 && commands == 0:
		return ""
	case holds == 0:
		return text + Plural(commands, "command")
	}
	names := slices.SortedFunc(maps.Keys(classes), func(a, b string) int {
		return cmp.Or(cmp.Compare(classes[b], classes[a]), strings.Compare(a, b))
	})
	var parts []string
	for _, name := range names[:min(len(names), maxReports)] {
		parts = append(parts, fmt.Sprintf("%d of class %s", classes[name], name))
	}
	if n := len(names) - len(parts); n > 0 {
		parts = append(parts, fmt.Sprintf("others of %d more", n))
	}
	return text + Plural(holds, "hold") + ": " + strings.Join(parts, ", ")
}
