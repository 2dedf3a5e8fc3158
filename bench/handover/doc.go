// Package handover measures how long a lock takes from one process to another that waits
// for it.
//
//	A: ──── has the lock ────┤ release                        A and B swap roles
//	B:      ├─ acquire waits ───────────┤ has it
//	                         └ latency ─┘
//
// It is counted from the moment before A's release is called to the return of B's
// acquire, on the clock that both share. B has waited for some time before, so that it
// has asked, was refused and listens, and the times between are random, so that
// nobody's polls fall into step. A round trip is a PING of go-redis by A, once before
// each hand-over, so both figures are of the same moments of the same machine.
//
//	I1  The lock was waited for when it was released, and B got it after that.
//	I2  A hand-over and a round trip are measured in pairs.
package handover
