package main

import (
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// lock is one lock of the demonstration. The planner of a run and each process derive it from the same list.
type lock struct {
	name string // of the key, after the run's prefix, and of the class in metrics
	// round is what a goroutine repeats with the lock; an error says that it did not take place. Together the rounds
	// cover the library's API: the drop-in one, the one with a Hold, and the one with a function.
	round func(w *worker, mu *anteroom.Mutex) error
	// shared is round where the lock is an RWMutex.
	shared func(w *worker, rw *anteroom.RWMutex) error
	// goroutines is how many of one process use the lock: enough for a queue in each process, so that hand-offs
	// happen, and few enough that a machine of two cores spends most of its time waiting.
	goroutines int
	linger     time.Duration // how long a process keeps the lock for its next owner
	fair       bool          // order of arrival within a process; the others let newcomers pass
	// fenced locks are the targets of faults that destroy locks; fencing tokens guard their resource.
	fenced         bool
	lease, renewal time.Duration
}

const (
	// plainLease leaves nine tenths of it between a renewal and the deadline, so that neither an outage of the server
	// nor a busy machine ends a plain lock.
	plainLease   = 6 * time.Second
	plainRenewal = 500 * time.Millisecond
	// awayLease and forgetLease are short, so that leases expire within a run of ten seconds. Both of their losses
	// are found by the deadline, so a machine too busy to renew in time changes when they are found, but not their
	// cause. The locks that are removed while held have plainLease instead: a lease that expires before the removal
	// is noticed would change the cause.
	awayLease   = 2 * time.Second
	forgetLease = time.Second
	// watchdogPeriod and commandTimeout together bound how late a removed lock is reported: docs/guarantees.md §3. A
	// machine that is too busy to answer within commandTimeout gets nothing done at all: each command is given up and
	// sent again. 500 ms was too little for a test under a load of a dozen on one core.
	watchdogPeriod = 250 * time.Millisecond
	commandTimeout = 2 * time.Second
)

// Names of the locks at which faults are aimed. Each fault has a key of its own, so that a reported loss identifies
// its fault.
const (
	keyDeleted = "invoices"
	keyForced  = "payments"
	keyForgot  = "mailing"
	keyDropped = "backup"
	keyAway    = "export"
)

// keyShared is the lock with readers, keyLingers the one that lingers.
const (
	keyShared  = "prices"
	keyLingers = "cursor"
)

// demoLocks lists the locks of a run.
func demoLocks() []lock {
	fenced := func(name string, lease time.Duration) lock {
		return lock{
			name: name, round: (*worker).fenced, goroutines: 2, fenced: true, lease: lease, renewal: min(plainRenewal, lease/3),
		}
	}
	return []lock{
		{name: "stock", round: (*worker).locked, goroutines: 8, fair: true, lease: plainLease, renewal: plainRenewal},
		{name: "orders", round: (*worker).acquired, goroutines: 8, lease: plainLease, renewal: plainRenewal},
		{name: "report", round: (*worker).longJob, goroutines: 1, fair: true, lease: plainLease, renewal: plainRenewal},
		{name: keyShared, shared: (*worker).priced, goroutines: 8, lease: plainLease, renewal: plainRenewal},
		// One goroutine, so that each hand-over within a process is one of a lock that lingered.
		{name: keyLingers, round: (*worker).again, goroutines: 1, linger: time.Second, lease: plainLease, renewal: plainRenewal},
		fenced(keyDeleted, plainLease),
		fenced(keyForced, plainLease),
		fenced(keyForgot, forgetLease),
		fenced(keyDropped, plainLease), // its victim requests a lease of its own
		fenced(keyAway, awayLease),
	}
}

// config returns the library's configuration of the lock. It is the same in every process and for victims, because a
// live key has one configuration. One failed check raises an alert here, so that the alert shows before the recovery
// has succeeded.
func (k lock) config(prefix string) anteroom.LockConfig {
	return anteroom.LockConfig{
		Key: prefix + k.name, Name: k.name, LeaseTime: k.lease, RenewalTime: k.renewal,
		WatchdogPeriod: watchdogPeriod, Fair: k.fair, Fencing: k.fenced, Linger: k.linger, AlertThreshold: 1,
		Reentrant: k.shared == nil, // or another goroutine may unlock what one that ends has locked, and the watchdog accuses none
	}
}

// plan is what a process of the demonstration gets before it starts.
type plan struct {
	Process int    // from 1
	Prefix  string // of every key; it holds no brace, see removeKeys
	URL     string // of Redis; "" for the embedded one
	// Impatient makes the goroutines of fenced locks try instead of wait. One process of a run does that: it acquires
	// a deleted lock immediately, and so causes an overlap.
	Impatient bool
}

// act is what an order requests.
type act string

const (
	actHold   act = "hold"   // hold the lock until the notification of its loss
	actForget act = "forget" // lock it in a goroutine that ends without unlocking
	actDrop   act = "drop"   // take a fixed lease and drop the Hold
)

// Order makes one process prepare a fault; the answer comes when it has the lock.
type Order struct {
	Act act
	Key string
}

// dropLease is the fixed lease of actDrop.
const dropLease = time.Second

// Report is an event of the library on its way to the printer: the fields of an observe.Event that the demonstration
// needs.
type Report struct {
	Process int
	Kind    observe.EventKind
	Key     string
	Reason  observe.LossReason
	Check   string
	Text    string
}

// kindProblem is a report of the demonstration itself, not an event of the library: something that it cannot continue
// with.
const kindProblem observe.EventKind = "problem"
