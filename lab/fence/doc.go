// Package fence tries package fence on real databases: PostgreSQL, MariaDB, SQLite and Redis.
//
//	process A            database                     process B
//	acquires k, token 1                               waits for k
//	SIGSTOP                                           the lease ends: acquires k, token 2
//	                     guarded = 2, control = 2 ◄── writes
//	SIGCONT
//	writes ────────────► guarded refuses 1, control takes it
//
// Each round is that for one key; a process is stopped with many of them. Without the guard every round ends with a
// stale write, so the rounds in which none was accepted prove something.
//
// The servers run on free loopback ports and are ended by process id. They refuse root, so for root they run as the
// accounts that their packages make.
package fence
