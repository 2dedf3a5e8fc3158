// Command anteroom is the tool of the Anteroom lock library.
//
// # The command exec
//
// It runs a command while it holds a lock, in three processes:
//
//	anteroom exec          holds the lock, passes signals on; the shell knows this one
//	   │ orders: lost, signal, "held for another 20s"      ▲ reports: started, stopped,
//	   ▼ (the end of the stream: it was killed)            │ ended (end: it was killed)
//	exec-supervisor        the parent of the command, in a process group of its own;
//	   │                   one thread from the first to the last moment of the command
//	   ▼
//	COMMAND and children   a process group of their own, which is ended as a whole
//
// X1: the command runs only while the lock is held, and for the grace after a loss.
//
// X2: if one of the upper two processes is killed or stopped, the other one ends the
// command's group no later than with the lease (and the grace, where anteroom is stopped),
// or at once; on Linux the command dies also if both are killed.
//
// X3: the lock is released when nothing of the command's group runs any more, on every way
// out.
//
// X4: the command has the descriptors, arguments, ignored signals and terminal that
// anteroom was started with, and its environment but for four variables. A key that ends
// it ends who has started anteroom as if the command had been started alone.
//
// X5: the exit status is the command's, or says why there is none; what a key has ended
// dies of its signal.
//
// # The command demo
//
// It shows the library at work and fails where the library does not keep its word:
//
//	go run ./cmd/anteroom demo
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
// # The operator's commands
//
// status, watch and release look at the locks of other programs; docs/cli.md is their
// manual. They ask through a Manager that never holds anything, and listen by a pattern:
//
//	status, release ──► Manager ── Inspect, ForceRelease ──► Redis
//	watch ◄── reporter ◄── listener ◄── PSUBSCRIBE, one connection after the other
//
// O1: nothing that others have put into Redis reaches the output as it is, unless it is a
// plain word: it is quoted, so that it is no command to a terminal and no line of ours.
//
// O2: nothing is released without --force and a yes, and a yes is about the holder that
// was shown.
//
// O3: the exit status tells what kept a command from its answer (exit.go, operator.go); a
// lock that nobody holds is never told as a failure to ask, nor the other way round.
//
// # Lock order
//
// ledger.mu before console.mu. Every other mutex is a leaf: nothing is called while it is
// held.
package main
