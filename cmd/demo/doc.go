// Command demo shows the library at work and fails where the library does not keep its
// word:
//
//	go run ./cmd/demo
//
// It is not a benchmark: it spends its time in pauses so that a small machine shows
// everything, and its figures say what happened, not what is possible. It is not a test of
// Redis either.
//
// # The picture
//
//	injector ── orders ──► process 1 … n   a Manager and dozens of goroutines each
//	   │                      │   │
//	   │ DEL, ForceRelease,   │   └─ enter, write, leave ─► ledger ─► last line, exit status
//	   │ server away          │                               ▲
//	   ▼                      ▼                               │
//	 Redis ◄──── locks ────── sync ──── events ───────────────┘
//
// Without --redis the Redis is an embedded one that no other program can reach, and the
// processes are Managers of this program. With --redis they are real processes, children
// of this one, and everything they say to the ledger goes through pipes.
//
// # Invariants
//
// I1: a protected section enters the ledger after the lock is held and leaves it before
// the lock is released, so that two visits at once mean two holders at once.
//
// I2: on a plain key every overlap and every lost update is a violation, and so is every
// loss that an absence of the server shorter than the lease causes.
//
// I3: on a fenced key an overlap is counted and no more; an accepted write that carries
// no token, or one older than a token seen before, and a token given to two holds, are
// violations, and so is an accepted write that is lost.
//
// I4: every injected loss has to be reported once for its key, with its cause (a release by
// force also as gone, where its notice came too late), within its
// bound, and its key has to be usable again; otherwise the exit status is 1.
//
// I5: once the run has begun its last line is printed, however it ends.
//
// I6: on a server that is not ours only keys of this run are touched, and they are
// deleted at the end.
//
// # Lock order
//
// ledger.mu before console.mu. Every other mutex is a leaf: nothing is called while it is
// held.
package main
