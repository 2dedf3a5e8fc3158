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
package main
