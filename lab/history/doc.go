// Package history records what several processes are told about shared locks under faults, and judges it afterwards.
//
//	┌ lab (a test, or lab/chaos) ─────────┐
//	│ faults ──► redis-server ◄──────┐             │
//	│ register ◄─── read, write ──┐  │             │
//	└─────┬───────────────────────│──│─────────────┘
//	      │ stdin, stdout         │  │ through faultnet
//	   worker processes ──────────┴──┘
//	      │ events, into mapped memory
//	   logs ──► holds ──► judge: pairs of claims, bounds, tokens, register
//
// # What is recorded
//
// All times are of one clock, CLOCK_MONOTONIC of the machine, which every process can read. A call is stamped before
// it begins, a result after its return, so a hold in a history is never longer than the real one: the judge never
// reports what only the recording has caused.
//
// An event is a store into memory mapped from a file. It costs no system call and never waits, and what a process has
// recorded before SIGKILL survives it.
//
// # What a hold's interval means
//
// A hold claims the lock from the return of its acquire until the first of
//
//   - the call of a release that was confirmed: until then the lock was its own;
//   - the moment since which it is lost, as the library tells the holder (told). The library is not believed further
//     back than to the holder's last query that was answered "held";
//   - for a killed holder, and one by Lock, which cannot be notified: its last query that was answered "held".
//
// A query after the deadline that is answered "held" is itself a finding, so the deadline bounds every claim.
//
// A failed acquire claims nothing. One whose outcome is unknown, or that was in flight when its process was killed,
// may have taken the lock in Redis for up to a lease; but nobody works under it, so it claims nothing either: it
// delays others, and a caller that waits for ever is found stuck.
//
// A removal (DEL, FLUSHALL, an empty restart, ForceRelease) ends the claim of the holds whose grant existed before
// it: from then on another may be admitted, and both run until the first one is notified. That is counted as an
// overlap, and it has a bound: a notification later than W + 2 C after the removal is a late loss. Up to that bound a
// hold whose grant may have been removed, because its answer or a hand-off came afterwards, is excused too. The bound
// is suspended while Redis does not serve the process, and while the process does not run. Two claims within one
// process are never excused: a process knows its own losses.
//
// # Why a double hold is found
//
// A lock has at most one hold exactly if no two claims share a moment: if two do, each would have to take the lock
// between the call of its acquire and its return, and to free it after the end of its claim; if none do, each takes it
// just before its return. So the judge looks at each pair of claims; where a lock has more units than one, at the sum of
// those that last when a claim begins. TestOverlaps_AgreeWithPorcupine compares that with a checker of linearizability on
// random histories, which include acquires without an answer.
//
// A reader by RLock has neither a Hold nor a notification. It claims from its return on if its process has units that
// count just after that, and as long as later queries say so. A writer that downgrades keeps one unit from then on.
//
// # The register
//
// A Register is the resource behind the locks, in the memory of the judging process. A fenced key refuses tokens
// older than the newest one seen. The judge keeps its own account of that, so that a register that accepts too much
// is detected too.
package history
