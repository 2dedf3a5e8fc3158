// Package history records what several processes are told about shared locks while
// faults are brought about, and judges it afterwards.
//
//	┌ lab (a test, or internal/lab/chaos) ─────────┐
//	│ faults ──► redis-server ◄──────┐             │
//	│ register ◄─── read, write ──┐  │             │
//	└─────┬───────────────────────│──│─────────────┘
//	      │ stdin, stdout         │  │ through faultnet
//	   worker processes ──────────┴──┘
//	      │ events, into mapped memory
//	   logs ──► holds ──► judge: porcupine, bounds, tokens, register
//
// # What is recorded
//
// All times are of one clock, CLOCK_MONOTONIC of the machine, which every process reads
// without asking anybody. What begins is stamped before the call, and what has ended
// after its return, so a hold in a history is never longer than the real one: the judge
// accuses nobody of what only the recording has made of it.
//
// An event is a store into memory that is mapped from a file. It costs no system call
// and waits for nobody, and what a process has recorded before SIGKILL is there after it.
//
// # What a hold's interval means
//
// A hold claims the lock from the return of its acquire until the first of
//
//   - the call of a release that was confirmed: up to there the lock was its own;
//   - the moment since which it is lost, as the library says to the holder (told). The
//     library is not believed further back than to the holder's last question that was
//     answered with "held";
//   - for a holder that was killed, and one by Lock, which nobody tells: its last
//     question that was answered with "held".
//
// A question after the deadline that is answered with "held" is a finding by itself, so
// the deadline bounds every claim.
//
// An acquire that has failed claims nothing. One whose outcome is unknown, or that was
// under way when its process was killed, may have taken the lock in Redis for up to a
// lease; but nobody works under it, so it claims nothing either: it delays others, and
// whoever waits for ever is found by being stuck.
//
// A removal (DEL, FLUSHALL, an empty restart, ForceRelease) ends the claim of the holds
// whose grant was there before it: from then on another may come in, and both run until
// the first one is told. That is counted as an overlap, and it has a bound: told later
// than W + 2 C after the removal is a late loss. Up to that bound a hold whose grant may
// have been removed, because its answer or a hand-off came afterwards, is excused as well.
// The bound waits while Redis does not serve the process, and while it does not run.
// Two claims within one process are never excused: a process knows its own losses.
//
// # Why a double hold is found
//
// The claims of one key are given to porcupine as two operations each: taking the lock,
// somewhere between the call of the acquire and its return, and letting go, somewhere
// from the end of the claim on. A lock that one hold at most has can be ordered that way
// exactly if no two claims share a moment: if they do, both would have to be after their
// returns and before their ends; if they do not, each takes the lock just before its
// return. So neither waiting acquires nor late answers hide anything, and a history
// may be cut wherever nobody claims the lock, which is what keeps porcupine fast. The
// judge also looks at each pair of claims, to name the two that overlap;
// TestModel_AgreesWithThePairs compares the two on random histories, and with a model
// that knows acquires without an answer.
//
// # The register
//
// A Register is the resource behind the locks, in the memory of the process that judges.
// A fenced key refuses tokens that are older than the newest one seen. The judge keeps
// its own account of it, so that a register that accepts too much is found out, too.
package history
