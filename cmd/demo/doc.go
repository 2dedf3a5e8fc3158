// Command demo shows the library at work and fails if the library breaks its promises:
//
//	go run ./cmd/demo
//
// It is not a benchmark: it spends its time in pauses so that a small machine shows everything, and its numbers say
// what happened, not what is possible. It is not a test of Redis either.
//
// # The picture
//
//	injector ── orders ──► process 1 … n   a Manager and dozens of goroutines each
//	   │                      │   │
//	   │ DEL, ForceRelease,   │   └─ enter, write, leave ─► ledger ─► last line, exit status
//	   │ server unreachable   │                               ▲
//	   ▼                      ▼                               │
//	 Redis ◄──── locks ────── sync ──── events ───────────────┘
//
// Without --redis the Redis is an embedded one that no other program can reach, and the processes are Managers of
// this program. With --redis they are real processes, children of this one, and call the ledger through pipes.
//
// # Invariants
//
// I1: a protected section enters the ledger after the lock is held and leaves it before the lock is released, so two
// concurrent visits mean two concurrent holders.
//
// I2: on a plain key every overlap and every lost update is a violation, and so is every loss caused by an outage of
// the server that is shorter than the lease, if the holder was inside for 600 ms before it. A lock that a release has
// passed on to a waiting process has a lease of two seconds until its first renewal (docs/guarantees.md §2). Readers of
// an RWMutex may be inside together, and no writer beside them.
//
// I3: on a fenced key an overlap is only counted; violations are an accepted write with no token or with one older
// than a token seen before, a token given to two holds, and an accepted write that is lost.
//
// I4: every injected loss must be reported once for its key, with its cause (a forced release also as gone, if the
// notice of it came too late), within its bound, and its key must become usable again; otherwise the exit status is
// 1.
//
// I5: once the run has begun its last line is printed, however it ends.
//
// I6: on a server that is not ours only keys of this run are touched, and they are deleted at the end.
//
// # Lock order
//
// ledger.mu before console.mu. Every other mutex is a leaf: nothing is called while it is held.
package main
