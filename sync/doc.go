// Package anteroom locks things that many processes share, through Redis.
//
// A goroutine that wants a lock first joins a queue inside its own process; only
// one conversation per key goes on with Redis, where the lock is a hash with a
// lease. A released lock passes to the next local waiter without a round trip, for
// a turn. Processes that wait stand in a line in Redis, and the release that ends a
// turn gives the lock to the first of them and tells it; the others neither wake nor
// ask. Leases are renewed from one queue, a watchdog looks at every hold, and
// whoever loses a lock is told before anybody else can get it by expiry. The import path ends in "sync"; the package is named anteroom
// so that the standard library's sync keeps its name.
//
//	m, err := anteroom.Open(ctx, "redis://localhost:6379", anteroom.Config{})
//	…
//	hold, err := m.Mutex("order:42").Acquire(ctx)
//	if err != nil {
//		return err
//	}
//	defer hold.Release(ctx)
//	work(hold.Context()) // ends when the lock is lost
//
// # What lives here
//
// [Manager] is one client of the locks of one Redis. [Mutex] is a lock: a
// sync.Locker, and the way to a [Hold]. [Config] and [LockConfig] configure them.
// What goes wrong is an [*Error], raised as an [Event], or both; an [Observer]
// sees every operation. Inside, per live key:
//
//	Lock/Acquire ──► queue.Synchronizer      who waits, who may come in
//	                    │ StartAttempt            │ Exit: hand-off or release
//	                    ▼                         ▼
//	                 driver ── TryAcquire      grant.release ── Release, EndTurn
//	                    │ refused                 │ calls the first in line
//	                    ▼                         │
//	                 place ── confirmations       │
//	                    │ called, or granted      ▼ no answer
//	                 grant ── renewal.Lease    burnt ── cleaned up
//	                    │
//	                    └─ lost: contexts end, then the queue moves on, then events
//
// Beside all that a lookout looks at the queues from time to time, for callers that wait
// too long and goroutines that wait for each other.
//
// # Invariants
//
// Tests named after these prove them.
//
//	I1  A lock has at most one owner in a process, and a valid owner is the only
//	    one anywhere while Redis keeps its state.
//	I2  A holder is told of a loss by expiry before Redis can grant the lock to
//	    anybody else.
//	I3  A field of a grant is new: what an earlier grant sent late never touches a
//	    later one.
//	I4  A field (field.go) that may be in Redis and is owned by nobody is burnt: never
//	    used again, and removed until it is gone or its lease has passed.
//	I5  Attempts belong to the key: a caller whose context ends is free at once.
//	I6  After Release or the last Unlock was called no renewal is handed over to be
//	    sent, whatever Redis answers. One that was before may arrive after the release,
//	    by at most its time limit, CommandTimeout.
//	I7  A stale Unlock or Release never frees a successor.
//	I8  What a key needs is gone when nobody holds it, waits for it or cleans it up.
//	I9  However slow an Observer, a Tracer, OnEvent or the log is, it delays no renewal,
//	    and no loss that is told by the clock or by a renewal's answer.
//
// # Lock order
//
// Manager.mu, entry.mu, each alone or in this order; the queue's and the renewal's
// own mutexes are taken inside them and call nobody.
package anteroom
