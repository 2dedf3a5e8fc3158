// Package faults is the fault matrix: every fault that the library was built for, at
// every operation, against real redis-server processes over real sockets. It has tests
// only.
//
//	TestMatrix/<fault>/<operation>
//
//	  victim ── faultnet ──┐                  strike … heal
//	  (or a process        ├── redis-server ◄── faults of the server
//	   of its own)         │        ▲
//	  rival ───────────────┘        └── checker: what is left, who is connected
//
// A cell sets up its parties, lets the fault strike while the operation is under way or
// about to be, notes what the caller gets and when, heals, and looks at what is left in
// Redis, at once and after a lease. Then both parties must be able to lock again, and
// nothing may have leaked. What is expected is data (expect_*_test.go), what was
// observed is compared with it, and the table in docs/faults.md is made of that.
//
// Invariants, checked in every cell:
//
//	I1  What the caller gets is what the table says, within the bound that the table
//	    says, plus the slack for a busy machine.
//	I2  Nobody is in while another one is, except where Redis forgot the lock; then for
//	    no longer than W + C.
//	I3  The lock works again after the fault, for the victim and for others.
//	I4  A lease after the cell's last command the lock is gone from Redis, and nothing
//	    without a time to live is left but a fencing record.
//	I5  Nothing leaks: no goroutine, subscription, connection, or entry of a Manager.
package faults
