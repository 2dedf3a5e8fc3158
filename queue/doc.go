// Package queue lets the goroutines of one process wait for one key, and decides which of them is next.
//
// # Scope
//
// A Synchronizer serves one key. It keeps two questions apart: "May this waiter be admitted?" (admission.go) and "Who
// waits, in which order?" (waiter.go). It knows nothing of Redis, leases or metrics, starts no goroutine and no timer,
// and calls no other code. What Redis must be asked it returns as an Order, which the caller of the transition
// carries out.
//
// # Origin
//
// The shape is that of java.util.concurrent's AbstractQueuedSynchronizer, on which the design document builds
// (docs/internals/decisions.md §5): one word of state, a first-in-first-out queue of parked waiters, and a loop in which the first
// waiter tries again whenever it is woken. Being first does not guarantee success; it only gives the right to
// contend. The rule against starvation in non-fair mode is that of Go's sync.Mutex. Three things differ from both.
//
//   - The lock is not made here. A server grants it to the process, and the grant passes through many local owners
//     before it is released. So there are states between free and owned, and an attempt belongs to the key rather
//     than to a waiter: when the head gives up, the attempt continues for the next head.
//   - The lock can be taken away. When a grant is lost, the tenure of an owner that can be notified ends at once. An
//     owner that cannot be notified (a Lock, which has no context and no error) keeps the lock closed in this process
//     until it exits.
//   - Every decision is made under one short mutex, not by compare-and-swap loops on the links of the queue. Parking
//     in Go is a channel, a waiter may be cancelled at any place and time, and a mutex held for a few loads and
//     stores costs less than the proofs that the lock-free way needs.
//
// # Picture
//
//	       31      24 23      16 15              0
//	      +----------+----------+-----------------+
//	word  |  state   |  count   |    hand-offs    |   written under mu, read without
//	      +----------+----------+-----------------+
//
//	      first to enter                    last to enter
//	      +------+       +------+           +------+
//	head->|  w1  | <---> |  w2  | <-- … --> |  wn  |<-tail      each parks on a channel of its own;
//	      +------+       +------+           +------+            only the head is woken to contend
//
//	                     Enter: StartAttempt                     Granted
//	      +------+ -----------------------------> +-----------+ ---------> +---------+
//	      | Free |                                | Acquiring |            | Granted |<--------+
//	      +------+ <----------------------------- +-----------+            +---------+         |
//	        ^  ^             Abandon                   ^   ^                |   ^    | last     | hand-off,
//	        |  |                                       |   |     head takes |   |    | waiter   | Resumed
//	        |  | nobody waits              some wait   |   |      or barges v   |    | left     |
//	        |  +---------------- Released -------------+   |             +-------+   |          |
//	        |                        ^                     |             | Owned |---|----------+
//	        |                        |                     |             +-------+   |          |
//	        |                 +-----------+                |              |     |    |          |
//	        |                 | Releasing |<---------------|--------------|-----+----+          |
//	        |                 +-----------+  SendRelease   |              | Lose              (Releasing)
//	        |                                              |              v
//	        +----------- Lose, or a lost owner's exit -----+<----------- Lost
//
// # The loop in words
//
// Enter: if nobody owns the grant and this waiter may pass those who wait, take it. If this is a Try kind that would
// have to wait for an owner or for a patient waiter, refuse it. Otherwise append it to the queue; if the key was
// Free, an attempt begins, and the caller starts the driver.
//
// Wait, repeatedly: park until woken or the context ends. Then, under the lock: if failed, return that error; else if
// the context has ended, leave the queue, pass on the wake-up or the grant, and return the cause; else if first and
// nobody owns the grant, take it and return; else note that the wake-up was in vain, and park again at the same
// place.
//
// # Barging
//
// A non-fair Synchronizer lets a newcomer take a grant between the moment it becomes available and the moment the
// woken head runs (barging, also called greedy). The newcomer already runs on a processor and the head does not, so
// the lock changes hands without a context switch. The price is the order. A waiter that is woken in vain after
// StarvationThreshold is owed the next grant or hand-off, and nobody passes it any more. Nor does a newcomer whose
// NoBarge says that it could not use the grant. Nobody passes at a fair one.
//
// # What is approximated
//
// A wake-up may be in vain although nobody passed: the grant may have been lost, or a given-back waiter put in front.
// It counts towards starvation all the same, so the waiter may be owed a little more than necessary. A RecallAttempt
// may reach a driver that has somebody to work for again, or one that has ended. A Try kind that joins a running
// attempt may be refused by an answer that Redis gave a moment before the Try entered. Try kinds that share an
// attempt fail when the first of them is admitted, even if that one exits a microsecond later. The getters of
// inspect.go are for monitoring.
//
// # Invariants
//
//	I1  Free: the queue is empty, and there is no grant and no tenure. At most one tenure is current at any time.
//	I2  One order per need. Every transition into Acquiring gives one StartAttempt and every one into Releasing one
//	    SendRelease, and only the answer to that order leads out again. So while Acquiring there is exactly one driver.
//	I3  A waiter leaves the queue exactly once for each time that it joined: admitted, cancelled or failed.
//	I4  No wake-up is lost. Granted: somebody waits, and the head has been woken and has not looked yet. So a grant that
//	    nobody owns is always somebody's to take.
//	I5  Fair: nobody passes a parked waiter; admissions are in the order of arrival.
//	I6  Non-fair: a waiter that is woken in vain after StarvationThreshold gets the next grant or hand-off, after those
//	    that were given back before it.
//	I7  A tenure that ended never exits again: the Exit is Stale and frees nobody else's tenure.
//	I8  Hand-off and loss exclude each other: a grant that was lost is never handed off, and one that is being released
//	    is never lost. One step on the word decides.
//	I9  The count is 0 exactly when the state is neither Owned nor Lost, and never above MaxCount.
//	I10 The hand-offs of one turn are never more than MaxHandOffs.
//	I11 A lost tenure of a Deaf kind admits no local successor until its own exits; one of another kind blocks nobody.
//	I12 A Try kind never waits for an owner: while Owned or Lost none is queued, and while Acquiring the driver has been
//	    notified of each that it owes an answer.
//	I13 A waiter whose context has ended is never admitted by Wait, which checks the context under the lock, just before
//	    taking.
//
// # Lock order
//
// There is one lock, the Synchronizer's mu. Nothing is locked, called or waited for while it is held (a waiter's
// channel has room for the one token that is ever sent), so it may be taken under any lock of the caller's.
package queue
