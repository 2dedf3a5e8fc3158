// Package handover measures how long a lock takes from one process to another that waits for it.
//
//	A: ──── has the lock ────┤ release                        A and B swap roles
//	B:      ├─ acquire waits ───────────┤ has it
//	                         └ latency ─┘
//
// It is measured from just before the call of A's release to the return of B's acquire, on their shared clock. B has
// waited for some time before, so that it has asked, was refused and listens, and the intervals are random, so that
// no polling falls into step.
//
// A measures a round trip before each hand-over, after an equally long silence: alternately a PING of go-redis and
// half of a pair of EVALSHA. A release and an acquire each make Redis run a script, which a PING does not.
//
//	I1  The lock was waited for when it was released, and B got it after that.
//	I2  Hand-overs and round trips are measured alternately, from the same state.
package handover
