package anteroom

import "time"

// Recovery says what the watchdog does about a hold that it finds unhealthy.
// docs/operations.md compares the strategies.
type Recovery uint8

const (
	// RecoverDefault acts so that exclusion is never given up: it reconnects,
	// restarts a stalled renewal, reports a lost lock to its holder, and stops
	// renewing where the holder is gone or above MaxHold, so that the lease ends.
	RecoverDefault Recovery = iota

	// RecoverNotify only reports, and ends holds that are lost already. (As under each of
	// them, a stalled renewal loop is restarted and a dead connection re-established.)
	RecoverNotify

	// RecoverRelease also cancels the hold, and deletes the lock where its owner
	// provably cannot run any more (its goroutine has ended).
	RecoverRelease
)

// LockConfig configures one lock. The zero value of each field but Key means its
// default: the value in Config.Defaults, and where that is zero too, the one that the
// field's comment names. So what Defaults switches on (Fair, Fencing, MinHold …) a lock
// cannot switch off: leave out of Defaults what not every lock should have. What an RWMutex or
// a Semaphore cannot have is ErrConfig in its own LockConfig and ignored in Defaults; MinHold,
// Replicas and a negative RenewalTime are ErrConfig there, too.
//
// All configurations of a key that is in use in a Manager must be equal but for Name and
// LongWait, which are those of the lock that first used it: otherwise acquiring fails with
// ErrConfig, which names the field. The option Lease gives one hold a fixed lease.
type LockConfig struct {
	// Key is the lock's name and its key in Redis: 1 to 65536 bytes of any kind. It must
	// not begin with "anteroom:fence:" or "anteroom:line:", where Anteroom keeps what
	// belongs to locks.
	Key string

	// Name is the lock's class in metrics, logs and events, for example "orders".
	// Use few of them: never the key. At most 64 bytes. Defaults to "default".
	Name string

	// LeaseTime is how long Redis keeps the lock without a renewal: how long
	// others wait after a holder's process died. A new hold has 2 s, if that is
	// less, until its first renewal a tenth of a second later. From 100 ms to
	// 24 hours; Redis counts whole milliseconds. Defaults to 30 seconds.
	LeaseTime time.Duration

	// RenewalTime is the time between renewals, at most LeaseTime/2. A negative
	// value makes the lease fixed: it is never renewed and ends LeaseTime after
	// the grant. Defaults to LeaseTime/3.
	RenewalTime time.Duration

	// Margin is how long before the end of the lease, as Redis sees it, the
	// holder regards the lock as lost. It covers clocks that run at different
	// speeds and the time to react. From 1 ms to LeaseTime/10. Until the first
	// renewal it is a tenth of what Redis grants then, if that is less. Defaults to
	// max(LeaseTime/20, 100 ms), and at most LeaseTime/10.
	Margin time.Duration

	// WatchdogPeriod is how often the watchdog checks each hold. From 10 ms to
	// 1 hour. Defaults to 5 seconds.
	WatchdogPeriod time.Duration

	// Fair admits the goroutines of this process in order of arrival. Otherwise a
	// newcomer may pass waiting ones when a lock passes from one goroutine to the next, which is
	// faster; a waiter that finds itself
	// passed more than a millisecond after it came gets the lock next. What Redis gives goes to the one
	// that has waited longest. Processes take turns in the
	// order in which they began to wait, whether Fair is set or not: see
	// docs/guarantees.md, §8. Defaults to false.
	Fair bool

	// Reentrant lets the goroutine that holds the lock by Lock or TryLock lock it again, up to
	// 255 times, and only that goroutine may unlock it, as often. By default it is as with a
	// sync.Mutex: locking twice waits, which EventSelfDeadlock reports immediately, and any
	// goroutine may unlock. In either case Acquire, TryAcquire and Do enter again with a context
	// that carries the live Hold (Hold.Context, or the context that Do passes on).
	Reentrant bool

	// Fencing gives every hold a token that grows from hold to hold, across
	// processes. It costs a second key in Redis, of about 100 bytes and the lock's
	// name, which stays for FenceRecordTime. Defaults to false.
	Fencing bool

	// FenceRecordTime is how long the second key of Fencing stays in Redis after the
	// last grant: tokens grow without it too, because they start from the server's
	// clock, which has passed every token of a record that has ended. From 1 hour, and at least 2 × LeaseTime, to
	// 366 days. Set it above the most that the clocks of your Redis servers differ by.
	// Defaults to 7 days.
	FenceRecordTime time.Duration

	// MaxHandoffs bounds how often the lock passes from goroutine to goroutine
	// within the process before the next process in line gets its turn. If no other
	// process waits, the lock stays here. -1: every owner is granted the lock by Redis,
	// in line with other processes; so it is with Fencing in Redisson's dialect. At most
	// 65535. An RWMutex and a Semaphore do not count them. Defaults to 10000.
	MaxHandoffs int

	// MaxHandoffTime bounds the same by time since Redis granted the lock. The owner of
	// that moment is not interrupted. From 1 ms to 24 hours. Defaults to 20 ms, of an RWMutex and a
	// Semaphore to 1 ms.
	MaxHandoffTime time.Duration

	// Linger lets the process keep a lock that it unlocks while nobody waits, owned by
	// nobody, for up to this long and half of what is left of its lease: at most 0.9 s if it was never
	// renewed, as after a first owner of less than a tenth of a second. The next Lock of
	// the process then needs no command. As soon as another process waits, the lock is
	// given back, and does not linger again for up to a second. It is not renewed meanwhile: if
	// the process dies, others wait for what is left of the lease.
	//
	// To Redis, and so to Inspect, a lock that lingers is held. A TryLock of another process
	// is refused, unless Linger is set there: then it waits for up to three round trips and
	// 2 ms. A client outside the line, such as Redisson, waits for the end of Linger.
	//
	// Nothing lingers with MinHold, a fixed lease or MaxHandoffs of -1, nor with Fencing after
	// less than 2 µs for each owner since the grant. With Replicas the next Lock still waits
	// for them. From 1 ms to 24 hours; 0: not at all. Defaults to 0.
	Linger time.Duration

	// MinHold keeps the key taken for at least this long after it was granted,
	// also if it is released earlier: a cron job on many machines runs once even
	// if their clocks differ by this much. It is not kept for a release that does not
	// reach Redis before the lease is over: 2 s for a hold that is younger than 0.1 s.
	// From 1 ms to 24 hours, or to a fixed lease; 0: not at all. Defaults to 0.
	MinHold time.Duration

	// MaxHold is how long a hold may last before the watchdog acts as Recovery
	// says. From 100 ms, and at least MinHold, to 366 days; 0: no limit. Defaults to 0.
	MaxHold time.Duration

	// Recovery defaults to RecoverDefault.
	Recovery Recovery

	// AlertThreshold is the number of failed checks in a row after which an alert
	// is raised. From 1 to 1000. Defaults to 2.
	AlertThreshold int

	// LongWait is Config.LongWait for this lock. Negative: its waits are never reported.
	// From 1 second to 24 hours. While a key is live in a Manager, that of its first user
	// counts. Defaults to 0: Config.LongWait's.
	LongWait time.Duration

	// Replicas is the number of replicas that must confirm a grant before it counts: a
	// renewal with WAIT precedes the return. It lowers the risk that a failover loses the
	// lock and does not remove it. From 0 to 16. Defaults to 0.
	Replicas int

	// ReplicaTimeout is how long a grant waits for Replicas. From 1 ms to
	// LeaseTime/3, and with Replicas less than the ReadTimeout of the client. Of Open's that is
	// twice the greatest of 1 s, Config.CommandTimeout and Config.Defaults.ReplicaTimeout, or
	// read_timeout in the URL. Defaults to min(LeaseTime/10, 500 ms).
	ReplicaTimeout time.Duration

	// StringHolders shares the key with a library that keeps a lock as a string, while a
	// fleet changes over from redsync, redislock, or rueidislock with KeyMajority 1: such a
	// string counts as held by another until it is deleted or expires, and without a TTL for
	// ever. (That library finds our lock taken without a notification.) The first two in
	// line ask every 100 ms, and every second turn leaves the lock free for two round trips,
	// at least 1 ms; a library that takes the lock again right after its release passes us
	// all the same. Take it off when the other library is gone. docs/migrating.md has the
	// steps. Defaults to false: a string is an ErrConfig, since it may be data.
	StringHolders bool
}
