package observe

import (
	"hash/fnv"
	"strconv"
	"strings"
	"time"
)

// EventKind says what an Event is about.
type EventKind string

// The kinds of events.
const (
	EventLost             EventKind = "lost"              // a hold was lost; Reason says why
	EventRenewalFailing   EventKind = "renewal_failing"   // the second renewal in a row failed; Err is the last answer. It may come after EventLost of the same hold
	EventReleaseFailed    EventKind = "release_failed"    // a release was not confirmed; it is retried in the background
	EventReleaseGivenUp   EventKind = "release_given_up"  // a lease has passed without a confirmed release: the lease ended by itself
	EventUnlockLost       EventKind = "unlock_lost"       // Unlock of a lock that had been lost
	EventReentryLost      EventKind = "reentry_lost"      // Lock entered again into a lock that had been lost
	EventSelfDeadlock     EventKind = "self_deadlock"     // Lock or Do by a goroutine that holds the key itself
	EventLongWait         EventKind = "long_wait"         // callers have waited for a key for longer than Config.LongWait
	EventDeadlock         EventKind = "deadlock"          // goroutines of this Manager wait for each other's locks
	EventUnavailable      EventKind = "unavailable"       // a server cannot be reached or refuses for now, Text says which of several; everything is retried
	EventMisconfigured    EventKind = "misconfigured"     // acquiring is refused until a person changes something; Text says what. Key: only this key, or else a whole server
	EventAvailable        EventKind = "available"         // one of the two before it has passed
	EventAbandoned        EventKind = "abandoned"         // a Hold that nobody can reach any more was never released
	EventSubscriptionDown EventKind = "subscription_down" // waiters poll until it is up again
	EventSubscriptionUp   EventKind = "subscription_up"
	EventWarning          EventKind = "warning"       // something that works less well than it could, for example a refused PUBLISH
	EventClockJump        EventKind = "clock_jump"    // wall clock and monotonic clock disagree: the machine slept
	EventSelfLate         EventKind = "self_late"     // this process was stopped or starved; checks of that round accuse nobody
	EventAlert            EventKind = "alert"         // AlertThreshold checks in a row failed
	EventAlertCleared     EventKind = "alert_cleared" // the check passes again, or the hold ended
	EventRecovery         EventKind = "recovery"      // the watchdog acted
	EventCapacity         EventKind = "capacity"      // another process counts with another capacity of a Semaphore, or has not been seen to for a lease; Text has both numbers, and which counts
	EventClosing          EventKind = "closing"       // Close has waited for 5 seconds; Text says for how many holds of which classes
)

// Event is something that a person or a program may want to know. Fields that do
// not apply to a kind are zero.
type Event struct {
	Kind     EventKind
	At       time.Time
	ClientID string // of the Manager that raised it
	Key      string
	Class    string
	Holder   string     // the field in Redis: "<client id>:<n>", of an RWMutex and a Semaphore "<client id>"
	Reason   LossReason // EventLost
	Since    time.Time  // EventLost: as Error.Since; EventSelfLate and others: when it began
	Owners   int        // EventLost: how many holds were notified; 0 if only callers of RLock or Weighted had it
	Check    string     // alerts and recoveries: the watchdog's check
	Text     string     // a sentence for people, which names no key; only EventRecovery may quote an answer of Redis
	CallSite string     // where the hold was acquired, if recorded; EventLongWait, EventDeadlock: where Waits[0] waits; EventClosing: the oldest hold's
	Waiters  int        // EventLongWait, EventDeadlock: how many callers of this process wait, behind these too
	Waits    []WaitInfo // EventLongWait: the longest wait; EventDeadlock: every wait of the cycle
	Err      error
	// ErrText is what Err says without names, as log records carry it if Config.LogKeys is not set. The library's own
	// words stay as they are; from what others said, such as a server's answer, the names of key, holder and Manager are
	// taken out, and the arguments that a server repeats.
	ErrText string

	// What was known of the hold at that moment: losses, EventRenewalFailing,
	// EventReleaseFailed and EventUnlockLost. How the log shows it is in
	// docs/observability.md §6.
	LastConfirmed time.Time     // when the last command that Redis confirmed for it was sent: acquire, renewal or Extend
	Failures      int           // renewals without a usable answer since then
	Deadline      time.Time     // until when it could be relied on: the end of its lease less the margin
	Lease         time.Duration // the length of its lease
	// Found is what the watchdog found wrong at its last check, about the hold and the
	// process: "<check>:<finding>" of CheckNames and FindingNames, separated by commas.
	// It is set for losses and alerts, and empty where nothing was.
	Found string
}

// String returns the event in one line, for people: class, kind, the key's hash, and what
// the log says of it without Config.LogKeys. It names neither key nor holder, since it does
// not know whether they may be shown; they have fields of their own.
func (e Event) String() string {
	var s strings.Builder
	if e.Class != "" {
		s.WriteString(e.Class + " ")
	}
	s.WriteString(string(e.Kind))
	if e.Key != "" {
		s.WriteString(" key_hash=" + KeyHash(e.Key))
	}
	var parts []string
	if e.Check != "" {
		parts = append(parts, "check "+e.Check)
	}
	if e.Text != "" {
		parts = append(parts, e.Text)
	}
	if e.ErrText != "" {
		parts = append(parts, e.ErrText)
	}
	if !e.Since.IsZero() {
		parts = append(parts, "since "+e.Since.Format(time.RFC3339))
	}
	if e.CallSite != "" {
		parts = append(parts, "at "+e.CallSite)
	}
	if len(parts) > 0 {
		s.WriteString(": " + strings.Join(parts, "; "))
	}
	return strings.Join(strings.Fields(s.String()), " ") // an answer may have lines
}

// WaitInfo is one wait of an EventLongWait or an EventDeadlock.
type WaitInfo struct {
	Key   string
	Class string

	// Goroutine is who waits, Kind how ("hold" or "lock", as in WaiterState), Since since
	// when. CallSite is where Lock or Acquire was called: as recorded, or else as a
	// goroutine scan saw it; "" where there was none (see docs/operations.md).
	Goroutine int64
	Kind      string
	Since     time.Time
	CallSite  string

	// Owner is the goroutine of this process that locked the key, or acquired its Hold;
	// 0 where no owner is in this process. OwnerKind and OwnerSince are how and since when.
	// OwnerSite is where that was, if Config.RecordCallSites is set. OwnerAt is where the
	// goroutine was when this was reported, as far as a goroutine scan saw it.
	Owner      int64
	OwnerKind  string
	OwnerSince time.Time
	OwnerSite  string
	OwnerAt    string
}

// KeyHash returns the short hash of a key that log records carry as key_hash, so that
// what is shown elsewhere can be compared with the log. It distinguishes the keys of a program;
// anyone who guesses a key can verify the guess.
func KeyHash(key string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))
	return strconv.FormatUint(uint64(h.Sum32()), 16)
}
