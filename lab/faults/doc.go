// Package faults is the fault matrix: every fault that the library was built for, at every operation, against real
// redis-server processes over real sockets. It has only tests.
//
//	TestMatrix/<fault>/<operation>
//
//	  victim ── faultnet ──┐                  strike … heal
//	  (or a process        ├── redis-server ◄── faults of the server
//	   of its own)         │        ▲
//	  rival ───────────────┘        └── checker: what is left, who is connected
//
// A cell sets up its parties, injects the fault during or just before the operation, records what the caller gets and
// when, heals the fault, and checks what remains in Redis, at once and after a lease. Then both parties must be able
// to lock again, and nothing may have leaked. docs/reference/fault-matrix.md has what is expected, as a table that the
// tests read; it is edited by hand.
// Its times are those of an idle machine: a cell that fails on a busy one is played again with all times stretched.
//
// Invariants, checked in every cell:
//
//	I1  What the caller gets is what the table says, within the bound in the table plus the slack for a busy machine.
//	I2  No two callers hold the lock at once but readers, except if Redis lost it; then for at most W + C.
//	I3  The lock works again after the fault, for the victim and for others.
//	I4  A lease after the cell's last command the lock is gone from Redis, and nothing without a time to live remains but a fencing
//	    record.
//	I5  Nothing leaks: no goroutine, subscription, connection, or entry of a Manager.
package faults
