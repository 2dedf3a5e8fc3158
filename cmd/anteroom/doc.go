// Command anteroom is the tool of the Anteroom lock library.
//
// # The command exec
//
// exec runs a command while it holds a lock, in three processes:
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
// X2: if one of the upper two processes is killed or stopped, the other one ends the command's group at the end of
// the lease at the latest (plus the grace, if anteroom was stopped), or immediately; on Linux the command also dies if
// both are killed. A system on which less holds is named at the start, and one without supervisors runs nothing.
//
// X3: the lock is released once nothing of the command's group runs any more, on every way out.
//
// X4: the command has the descriptors, arguments, ignored signals and terminal with which anteroom was started, and
// its environment except for four variables. A key such as Ctrl-C that ends the command also ends the program that
// started anteroom, as if it had run the command itself.
//
// X5: the exit status is the command's, or says why there is none; if a key ended the command, anteroom dies of the
// same signal.
//
// # The command lock
//
// lock holds a lock without a command: it acquires and releases as exec does (exec_acquire.go), supervises nothing, and
// ends immediately when the lock is lost. So it runs on every system.
//
// # The operator's commands
//
// list, status, watch and release work on the locks of other programs, and doctor on the servers; docs/cli.md is their
// manual. They use a Manager that never holds a lock, and a subscription to a pattern:
//
//	list ──► SCAN and HLEN, on each master ──► what may be a lock: Inspect
//	status, release ──► Manager ── Inspect, ForceRelease ──► Redis
//	watch ◄── reporter ◄── listener ◄── PSUBSCRIBE, one connection after the other
//	doctor ──► PING, TIME, INFO and CONFIG GET, on each master; Manager.Ping ──► Redis
//
// O1: nothing that others have put into Redis reaches the output unchanged, unless it is a plain word: it is quoted,
// so that it can be neither a command to a terminal nor a line of ours.
//
// O2: nothing is released without --force and a yes, and a yes is about the holder that was shown.
//
// O3: the exit status says why a command got no answer (exit.go, operator.go); a free lock is never reported as a
// failure to ask, nor the other way round.
package main
