// Package queue is part of the implementation of sync, and not covered by SemVer. It lets the goroutines of one process wait
// for one key, and decides which of them is next.
//
// # Scope
//
// A Synchronizer serves one key that a single owner has at a time, a Gate one that many can share. They know nothing of
// Redis, leases or metrics, start no goroutine and no timer, and call no other code. What has changed for Redis they
// return as an Order to the caller of the transition. The sections up to the first invariants are about the Synchronizer;
// "The Gate" says what differs.
//
// # Origin
//
// The shape is that of java.util.concurrent's AbstractQueuedSynchronizer, on which the design document builds
// (docs/internals/decisions.md §5): one word of state, a first-in-first-out queue of parked waiters, and a loop in
// which the first waiter tries again whenever it is woken. Being first does not guarantee success; it only gives the
// right to contend. The rule against starvation in non-fair mode is that of Go's sync.Mutex, and the fair hand-off
// that of golang.org/x/sync/semaphore. Three things differ from them.
//
//   - The lock is not made here. A server grants it to the process, and the grant passes through many local owners
//     before it is released. So there are states between free and owned, and an attempt belongs to the key rather
//     than to a waiter: when the head gives up, the attempt continues for the next head.
//   - The lock can be lost. When a grant is lost, the tenure of an owner that can be notified ends immediately.
//     An owner that cannot be notified (a Lock, which has no context and no error) keeps the lock closed in this
//     process until it exits.
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
//	      +------+       +------+           +------+            only the head is admitted or woken
//
//	+------+ Enter  +-----------+  Granted, fair: the head is admitted   +-------+ last Exit +-----------+
//	| Free | -----> | Acquiring | -------------------------------------> | Owned | --------> | Releasing |
//	+------+        +-----------+                                        +-------+           +-----------+
//	                      |                                               |  ^  |
//	                      | Granted        +---------+     hand-off       |  |  | Lose, and the owner  +------+
//	                      | non-fair       | Granted | <------------------+  |  | cannot be notified   | Lost |
//	                      +--------------> +---------+ ----------------------+  +--------------------> +------+
//	                                                     somebody takes it
//
//	What leads back           from                        to Acquiring, if somebody waits    to Free, if nobody waits
//	Released                  Releasing                   StartAttempt                       Nothing
//	Lose                      Granted, Owned              StartAttempt                       Nothing
//	the last Exit             Lost                        StartAttempt                       Nothing
//	the last waiter leaves    Acquiring                                                      EndAttempt
//	Refuse                    Acquiring                                                      no order
//	the last waiter leaves    Granted                     to Releasing: SendRelease
//
// Keep leads from Owned to Lingers: nobody waits, and the process keeps the grant. From there Enter leads to Owned,
// EndLinger to Releasing, and Lose to Free.
//
// # The loop in words
//
// Enter: if this is a Try kind, refuse it unless the key is Free or Lingers. Else, if a grant has no owner, take it. Otherwise
// queue it, at the end unless it is First; if the key was Free, an attempt begins.
//
// Wait, repeatedly: park until woken or the context ends. If the waiter was admitted and its context has not ended,
// return. Else, under the lock: if failed, return that error; else if the context has ended, leave the queue or the
// tenure, pass on the wake-up or the grant, and return the cause; else if first and nobody owns the grant, take it and
// return; else note that the wake-up was in vain, and park again at the same place.
//
// # Orders
//
// An order says what became true: Redis must be asked (StartAttempt), need not be asked any more (EndAttempt), must be
// sent the release (SendRelease). It says so to one caller, who carries it out after the lock is free, so a later
// order may be carried out before an earlier one. The state says what is true now: the code that talks to
// Redis reads it each time. An answer that comes too late does no harm: Granted then returns false.
//
// # Barging
//
// A non-fair Synchronizer lets a newcomer take a grant between the moment it becomes available and the moment the
// woken head runs (barging, also called greedy). The newcomer already runs on a processor and the head does not, so
// the lock changes hands without a context switch. The price is the order. A waiter that is woken in vain after
// StarvationThreshold is owed the next grant or hand-off: it is then admitted before it runs, as every head is at a
// fair Synchronizer. So nobody can be quicker.
//
// # What is approximated
//
// A wake-up may be in vain although nobody passed: the grant may have been lost, or a First waiter be in front. It
// counts towards starvation all the same, so the waiter may be owed a little more than necessary. A waiter that was
// admitted before it ran counts as the owner until it runs, even if its context has ended. The getters of inspect.go
// are for monitoring.
//
// # Invariants
//
//	I1  Free: the queue is empty, and there is no grant and no tenure. At most one tenure is current at any time.
//	I2  One order per need. Every transition into Acquiring gives one StartAttempt, every one into Releasing one
//	    SendRelease, and only Released leads out of Releasing. While Acquiring somebody waits; while Lingers nobody does.
//	I3  A waiter leaves the queue exactly once for each time that it joined: admitted, cancelled or failed.
//	I4  No wake-up is lost. Granted: somebody waits, and the head has been woken, has not run yet, and is not owed. So
//	    a grant that nobody owns is always somebody's to take.
//	I5  Fair: nobody passes a parked waiter; admissions are in the order of arrival, but for those that are First.
//	I6  Non-fair: a waiter that is woken in vain after StarvationThreshold gets the next grant or hand-off, after those
//	    First ones that are in front of it.
//	I7  A tenure that ended never exits again: the Exit is Stale and frees nobody else's tenure.
//	I8  Hand-off and loss exclude each other: a grant that was lost is never handed off, and one that is being released
//	    is never lost. One step on the word decides.
//	I9  The count is 0 exactly when the state is neither Owned nor Lost, and never above MaxCount.
//	I10 The hand-offs of one turn, to a next owner or to nobody, are never more than MaxHandOffs.
//	I11 A lost tenure of a NoNotify kind admits no local successor until its own exits; one of another kind blocks
//	    nobody.
//	I12 A Try kind waits for one answer of Redis and never for an owner: it waits only for a Free key, so at most one is
//	    queued, only while Acquiring, and it is the head.
//	I13 Wait never returns success after the context has ended: what the waiter was given by then is passed on.
//
// # The Gate
//
// An RWMutex is a semaphore of which a writer needs all units, and the readers of a process need one together. Redis
// gives the process units. With all of them local readers and writers alternate without Redis.
//
//	          +--------+     units, nobody waits, the second admission     +--------+
//	 Enter -> |        | ------------------------------------------------> |        | -> TryJoin adds a reader
//	 Exit  -> | closed |                                                   |  open  |    to the word,
//	 Leave -> |        | <------------------------------------------------ |        | -> Leave takes it off:
//	under mu  +--------+  a writer comes, somebody waits, the turn is over +--------+    no lock, and no check
//
// The last reader leaves a closed gate under mu, so that those who wait for that come in, and what has changed for Redis
// is noticed. Nobody notices the last reader of an open gate: the code that talks to Redis compares Admissions from time
// to time. A gate opens with the second admission of a turn, so a turn that had only one is noticed to be Idle.
//
// A turn begins with a grant to a process that had no units, or did not know that another process waits. Once it knows, it
// gives way when the turn has lasted as long as Init says, or immediately if it has: nobody comes in, the units that are
// not used go back, and the waiters here need a place in line. TryJoin sees the end by the clock. The caller calls
// Contended then, in case nobody comes.
//
// A Gate of an RWMutex that is not fair lets newcomers pass, as a Synchronizer does. The waiter that could come in is
// woken and becomes the heir; if it is a reader, all readers that wait are woken with it. The gate is open until the heir
// runs. If it then finds the gate taken, it waits on, and a writer that finds readers inside closes the gate. The first
// waiter of a grant is admitted before it runs, since the turn could be over when it does.
//
// # Invariants of the Gate
//
// I3 and I13 hold for the Gate, too.
//
//	I14 A writer inside is alone. Those inside need no more units than Redis had given when the last of them came in.
//	I15 Close first, then count: a writer counts the readers inside after it has set the closed bit. A reader that added
//	    in vain subtracts, and passes on if it was the last.
//	I16 Nobody comes in after the deadline, nor, in a contended gate, after the end of the turn, but by a grant.
//	I17 The gate is open exactly if it has units, its turn is not over and has had two admissions, no writer is inside,
//	    nobody inside relies on lost units, and nobody waits or an heir has not run yet.
//	I18 No wake-up is lost. After each transition somebody inside, too few units or the time keep the first waiter out, or
//	    an heir was woken and has not run yet.
//	I19 In a fair Gate and a semaphore nobody passes a waiter, but those that are First. So a large request of a semaphore
//	    for which the units do not suffice keeps out the small ones behind it.
//	I20 With a reader, and after a writer, the readers that wait come in together: those before the first writer if the
//	    Gate is fair, else all of them, but those behind a writer that nobody may pass.
//	I21 Not fair: nobody passes a waiter that was woken in vain after StarvationThreshold, from the next transition on.
//	I22 A change of what must be stated gives one Restate, to the caller of the transition that changed it. What a waiter
//	    or a reader notices in vain is left to the next transition: Contended at the end of the turn, or the next Enter.
//	I23 A Try waits for one answer of Redis and never for an owner: it is queued only if nobody waits, and only units that
//	    Redis has not given keep it out.
//	I24 A grant admits the first waiter, even if the turn is over, and after that it is over again.
//	I25 A loss ends the stays of those that can be notified, and their exits change nothing. Until all others that were
//	    inside have left, nobody comes in and no units are asked for.
//	I26 After Shrink has returned true, those inside need no more than it kept, until the next grant.
//	I27 Nobody comes in between a writer and the reader that it becomes, but readers.
//
// # Lock order
//
// There is one lock, the Synchronizer's or the Gate's mu. Nothing is locked, called or waited for while it is held (a
// waiter's channel has room for the one wake-up that is ever sent), so it may be taken under any lock of the caller's.
package queue
