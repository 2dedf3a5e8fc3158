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
// nobody's polls fall into step.
//
// What a round trip takes is measured by A before each hand-over, after as long a silence:
// once a PING of go-redis, once half of a pair of EVALSHA. A release and an acquire have
// Redis run a script each, which a PING does not.
//
//	I1  The lock was waited for when it was released, and B got it after that.
//	I2  Hand-overs and round trips are measured in turn, from the same state.
package handover
