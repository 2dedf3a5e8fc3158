// Package queue is part of the implementation of sync, and not covered by SemVer. It lets the goroutines of one process wait
// for one key, and decides which of them comes in.
//
// # Scope
//
// A Synchronizer knows units that a server has granted to this process, waiters of which each needs some of them, exclusive
// or shared, and those inside. It knows nothing of Redis, leases or metrics, starts no goroutine and no timer, and calls no
// other code. A Policy makes it one of three:
//
//	             units               a waiter needs                 who leaves ends the turn   unused units
//	Mutex        1                   1: exclusive                   as its Release says        go back at once, or linger
//	RWMutex      All                 All: exclusive, or 1: shared   never: see Contended       stay until Shrink
//	Semaphore    what is asked for   n: shared                      never: see Contended       stay until Shrink
//
// A Mutex is an RWMutex that nobody reads. The readers of a process need one unit together, permits need one each. Those who use a
// Semaphore may count with different capacities: nobody is inside beside more than its own, and who counts with less than the granted
// units do waits until the server has granted them anew (CountsWith).
//
// A Waiter waits. It is used again for others, with the channel on which it parks. With its admission begins a Stay, which
// belongs to one caller and counts its entries; the last Release ends it.
//
// # Origin
//
// The shape is that of java.util.concurrent's AbstractQueuedSynchronizer, on which the design document builds
// (docs/internals/decisions.md §5): a word, a first-in-first-out queue of parked waiters, exclusive and shared acquisition,
// and a loop in which a waiter tries again whenever it is unparked. Barging and its bound are those of Go's sync.Mutex, the
// hand-off of a fair one that of x/sync/semaphore, and readers come and go as in sync.RWMutex. Three things differ.
//
//   - The units are not made here. They pass through many local stays before they go back, and what is asked for belongs to
//     the key rather than to a waiter. Whoever changes what the server must be told learns that by the Order, reads Demand,
//     and sends that. Demand says what is true now, so it does no harm if a later order is carried out first.
//   - Units can be lost. That ends the stays of those who can be notified. Who cannot (a Lock has no context and no error)
//     keeps the key closed in this process until it leaves.
//   - What the word alone does not decide is decided under one short mutex. Parking in Go is a channel, a waiter may be
//     cancelled at any place and time, and the mutex costs less than the proofs that a lock-free queue needs.
//
// # States
//
//	 Acquire               Granted               last Release: EndTurn, or nobody waits
//	+------+     +-----------+     +-------+                              +-----------+
//	| Free | --> | Acquiring | --> | Owned | ---------------------------> | Releasing | --> Free or Acquiring
//	+------+     +-----------+     +-------+                              +-----------+ Shrink
//	                                 |  ^  \                                ^
//	             last Release        |  |   \  Lose: somebody inside       /  the heir leaves, EndLinger
//	             HandOff or Linger   v  |    \ cannot be notified         /
//	                              +---------+ \                          /
//	                              | Granted | ---------------------------
//	                              | Lingers |   \    +------+
//	                              +---------+    --> | Lost | --> Free or Acquiring
//	         the heir or a newcomer comes in         +------+ last Release
//
//	State       units                inside                    gate     besides
//	Free        0                    nobody                    closed   nobody waits
//	Acquiring   too few for a head   nobody                    closed
//	Owned       enough               somebody                  open if all are readers or came by the word, and nobody waits
//	Granted     1 or more            nobody                    open     an heir is on its way
//	Lingers     1 or more            nobody                    open     nobody waits
//	Releasing   1 or more            nobody                    closed   the turn is over
//	Lost        gone                 who cannot be notified    closed
//
// Lose leads from Owned otherwise, and from Granted, Lingers and Releasing, to Free or Acquiring. Units of an RWMutex or a
// Semaphore that nobody uses are Granted, too, until Shrink. Nothing is stored of the state but the columns.
//
// # Gate
//
// Through an open gate newcomers come in by the word alone: a reader by one addition, and one of a Mutex by one
// compare-and-swap. The last one to leave a closed gate does so under mu, so that those who wait for that come in. Without Fair a unit
// that becomes free is offered at a hand-off: the head is unparked and becomes the heir (a reader with all others that wait),
// and the gate is open until it runs. A newcomer that is quicker spares the switch to a parked goroutine (barging). The heir
// then waits on, and has closed the gate. With Fair, and always by a grant, which follows a round trip anyway, who comes in
// next is admitted before it runs. A Try that comes under mu passes no heir.
//
// Nobody notices the last reader of an open gate, while the turn lasts: the caller compares Admissions from time to time. A gate opens with the
// second admission of a turn, whatever the table says: the exit of one that was alone is noticed, and the turn is Idle then. A
// Semaphore's never opens.
//
// A turn begins with a grant to a process that had nothing, or did not know that another one waits. Once it knows, it gives
// way when the turn has lasted for Policy.Turn, or at once if it has: nobody comes in, unused units go back, and the waiters
// here need a place in line. The word sees the end by the clock; the caller calls Contended then, in case nobody comes.
//
// # Invariants
//
//	I1  An exclusive stay is alone. Those inside need no more units than were granted when the last of them came in, nor
//	    in a semaphore than the least capacity that one of them counts with.
//	I2  A change of what the server must know gives one Restate or GiveBack, to the caller of the transition that changed it; and
//	    one to the last reader, if another transition has stated its exit. What changes beside a reader that adds in vain is
//	    ordered by that one's Acquire. GiveBack is followed by one Shrink, whose caller sends all.
//	I3  A waiter leaves the queue exactly once for each time that it joined: admitted, cancelled or failed.
//	I4  No unpark is lost: after each transition somebody inside, too few units or the time keep the first waiter out, or an
//	    heir was unparked and has not run yet.
//	I5  Fair, and in a semaphore: nobody passes a waiter, but those that are First or Take.
//	I6  Not fair: nobody passes one that was unparked in vain after StarvationThreshold, from the next transition on.
//	I7  A stay that is over never ends again: its Release is Stale and frees nobody else's.
//	I8  A loss ends the stays of those that can be notified. Until all others that were inside have left, nobody comes in and
//	    nothing is asked for. Units that were lost are never handed off, and those that went back are never lost.
//	I9  A turn of a Mutex has at most MaxHandOffs hand-offs, and a stay at most MaxCount entries.
//	I10 A Try waits for one answer of the server and never for an owner: it is queued only if nobody waits, and only units
//	    that were not granted keep it out. Nobody passes it.
//	I11 Park never returns success after the context has ended: what the waiter was given by then is passed on.
//	I12 Close first, then count: who must be alone counts those inside after it has set the closed bit. A reader that added
//	    in vain subtracts, and passes on if it was the last.
//	I13 Nobody comes in after the deadline, nor, in a contended process, after the end of the turn, but by a grant.
//	I14 A grant admits the first waiter before it runs, even if the turn is over.
//	I15 The gate, which a Semaphore never opens, is open exactly if Close was not called, there are units, the turn is not over and has had two admissions, nobody inside is
//	    exclusive under mu or relies on lost units, and nobody waits (and unused units may stay) or an heir has not run yet.
//	I16 With a reader, and after an exclusive stay, the readers that wait come in together: those before the first exclusive
//	    waiter if the policy is fair, else all, but those behind one that nobody may pass. So it is after Downgrade, and
//	    nobody but readers comes between.
//	I17 After Shrink has returned true, those inside need no more than it kept, until the next grant.
//
// # Lock order
//
// Nothing is locked, called or waited for while mu is held, so it may be taken under any lock of the caller's.
package queue
