// Package renewal is part of the implementation of sync, and not covered by SemVer. It keeps
// the leases of locks: it renews each in time, in batches, and notifies its holder when it is lost. Nothing in it knows
// Redis; the way there is the Sender that it is given.
//
// # Overview
//
// A lease is valid until its deadline: the moment before the last confirmed
// command was sent, plus the lease, minus a margin. All leases of a Manager
// are in one heap, ordered by when they next need attention: for a renewal,
// or for the deadline. One goroutine, the loop, with one timer, serves the
// top of it. There is no goroutine and no timer for a single lease; 100,000
// leases that are not due cost memory only.
//
//	Add ──► heap by next attention ◄───────────────────────────────────┐
//	           │                                                       │
//	         loop ── deadline passed ──► losses ──► Lost ─► OnLost     │
//	           │                           ▲                           │
//	           └─ due ──► FIFO of the shard│ gone                      │
//	                           │           └──────────────────┐        │
//	                        worker ► handOver ► RenewBatch ─► answered ┘
//	                     (≤ InFlight   (check)      (I/O)      renewed: deadline
//	                      for each shard)                      from the send, next
//	                                                           after a period;
//	                          OnRenewed, OnFailed ◄─────────── failed: soon again
//
// A worker goroutine is started for a batch, continues while its shard has
// leases that wait, and ends. The On… functions have goroutines of their own, which
// keep no slot. An idle Manager has only its loop.
//
// # When a renewal is sent
//
// Of a brief lease (Spec.First) after a twentieth of what is left; else first at Period × (0.8 … 1.0), jittered. Later ones a Period after the last one was sent, or up to 250 ms (and a
// twentieth of the Period) earlier, to share a wake-up and a batch with one that is due.
// After a failure the pause is a quarter of the Period, or of what is left
// until the deadline if that is less, jittered, at least 10 ms. The first
// renewal that succeeds after failures, that was hurried, or that makes a
// brief lease whole begins a new jittered rhythm, so that neither an outage
// nor a common beginning leaves all leases in step.
//
// After a failed batch its leases travel in batches of a sixteenth, then
// alone: one key that makes a whole script fail takes no other lease down.
//
// # Invariants
//
//   - I1. A lease leaves StateActive exactly once, under the mutex: End and
//     every kind of loss exclude each other, and Lost is called at most once.
//   - I2. Valid is never true at or after the deadline, however late the loop
//     is; once the deadline has passed, nothing makes the lease valid again.
//     (The clock is read a moment before a new deadline is stored; in that
//     moment alone the lease may seem over too early to a reader.)
//   - I3. The deadline counts from before the command that was confirmed was
//     sent, and it moves back only when the lease becomes a fixed one (Fix).
//   - I4. An active lease is always in the heap, at the latest with its
//     deadline. So no batch, shard or FIFO that hangs delays the notification.
//   - I5. No renewal is handed to the Sender for a lease after End or StopRenewing
//     returned, or after its deadline. Handed over counts from the check of all
//     leases of a batch, under the mutex, that comes right before the call of
//     RenewBatch: nothing that is not this package's runs between the two. What was
//     handed over before may still arrive, for as long as the Sender's time limit,
//     which counts from that check.
//   - I6. One shard has at most InFlight batches under way, of at most
//     BatchSize leases. A shard that hangs keeps its own slots only.
//   - I7. The loop does no I/O and calls nobody but Lost; of one round the
//     losses are notified before a batch is sent.
//   - I8. A lease is in at most one batch at a time.
//   - I9. No On… function delays a renewal or a Lost, however long it takes. OnLost
//     comes after the Lost of all leases that were lost with it.
//
// # Locks
//
// There is one mutex, Manager.mu, held for moments. Neither the Sender nor
// Names nor Lost nor an On… function is called with it held; Config.Rand is. Readers of
// a Lease take no lock.
//
// # What it is not
//
// It does not acquire or release, does not know holders, queues or tokens, and
// draws no conclusion from a failure but to try again: only the master's word
// (Gone) or the clock loses a lease. It does not shift deadlines when the wall
// clock jumps; it asks Redis immediately and calls OnJump. docs/internals/decisions.md has the
// reasons.
package renewal
