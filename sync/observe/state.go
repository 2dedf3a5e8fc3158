package observe

import "time"

// State is what a Manager knows about one live key, for people and for metrics; it
// may be outdated when it is read.
type State struct {
	Key   string
	Class string
	// Status is the queue's state: "free", "acquiring", "granted" (to this process,
	// and about to be taken), "owned", "lingers" (nobody owns it, and this process keeps
	// it: LockConfig.Linger), "releasing" or "lost" (and not yet unlocked).
	Status string
	// Holder is the field in Redis, Goroutine who acquired (0 if nobody owns it), Kind
	// how, as WaiterState has it; a "hold" or "try" may be released by any goroutine.
	// CallSite is where, if recorded, Since since when, Count how many holds.
	Holder    string
	Goroutine int64
	Kind      string
	CallSite  string
	Since     time.Time
	Count     int
	// HeldBy is, in status "acquiring", the field with which somebody else held the key
	// when Redis answered this Manager last; "" if nobody did. InLine: this
	// Manager has a place in the line for it, and Ahead how many places are before that, at
	// most: some of them may have gone.
	HeldBy string
	InLine bool
	Ahead  int
	// Of an RWMutex or a Semaphore: Units is how many units this process has in Redis, and Used how many of them those inside
	// need. Capacity is the number of units that counts among those who hold now; 0 of a Mutex. Readers are those inside to
	// read, Goroutine is the writer's, and Count the number of Holds.
	Units, Used, Capacity, Readers int64
	// Token is the owner's fencing token, 0 without Fencing.
	Token int64
	// Deadline is until when the lock can be relied on without a further renewal;
	// NextRenewal when the next one is due, zero for a fixed lease. Lease is how long
	// the lease was made, which is more than what is left to Deadline by the Margin.
	// Granted is when Redis granted it to this process; owners before this one may have
	// had it since.
	Deadline    time.Time
	NextRenewal time.Time
	Lease       time.Duration
	Granted     time.Time
	// HandOffs counts the hand-offs within the process since the grant.
	HandOffs int
	// Lost: the hold is lost and its owner has not unlocked yet.
	Lost bool
	// Waiters are those who wait in this process, in order, and Waiting how many they
	// are: Survey may list the first of them only.
	Waiters []WaiterState
	Waiting int
	// Verdicts are the watchdog's last, one per check that has judged.
	Verdicts []VerdictState
}

// WaiterState is one waiting caller.
type WaiterState struct {
	Goroutine int64
	Kind      string // "hold", "lock", "try" or "try_lock"
	Waiting   time.Duration
	CallSite  string // if recorded
	// Mode is "read" or "write" of an RWMutex, and "" otherwise. Units is how many units of an RWMutex or a Semaphore it
	// waits for: of an RWMutex 1 to read, 1<<20 to write.
	Mode  string
	Units int64
}

// VerdictState is one verdict of the watchdog.
type VerdictState struct {
	Check   string
	Health  string // "healthy", "unhealthy" or "unknown"
	Finding string
	Reason  string // in the library's words
	Err     error  // what Redis brought instead of an answer, if Reason speaks of that
	ErrText string // what Err says without names, as Event.ErrText
	At      time.Time
}

// Count is how many locks of one class a Manager holds and how many callers wait, and
// for how long those do that began first.
type Count struct {
	Held, Waiting int
	// OldestHold is the age of the oldest hold, from getting the lock to now; that of a
	// lock that was lost and is not unlocked yet continues. OldestWait is how long the
	// caller has waited that waits longest. Each is 0 where there is none.
	OldestHold, OldestWait time.Duration
}

// SurveyOptions says what a Survey lists. The zero value lists everything.
type SurveyOptions struct {
	// Match reports whether a live key belongs into Keys and States. It is called once for
	// each, by the goroutine that asked, while no lock is held. Defaults to all.
	Match func(class, key string) bool
	// MaxKeys bounds the States. Defaults to 0, no bound.
	MaxKeys int
	// MaxWaiters bounds the Waiters of each State. Defaults to 0, no bound.
	MaxWaiters int
}

// Survey is a bounded view of a Manager: what is most worth seeing, and how much
// more there is.
type Survey struct {
	ClientID string
	// CallSites reports whether they are recorded: Config.RecordCallSites.
	CallSites bool
	// Closed: Close has begun.
	Closed bool
	// Counts are those of Manager.Counts, with any Match.
	Counts map[string]Count
	// Keys is how many live keys match, and States the first MaxKeys of them: first
	// those that are lost or that the watchdog has found something unhealthy about, then
	// those whose first waiter waits for the longest, then those that Redis granted
	// the longest ago; in the order of their keys where these are equal.
	Keys   int
	States []State
	// Verdicts are the watchdog's last about the process as a whole.
	Verdicts []VerdictState
}
