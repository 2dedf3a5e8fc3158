// Package growth measures how Anteroom's cost grows: with goroutines that wait, with locks
// that are held, with keys that were used.
//
//	parent, beside redis-server                 child, the only thing in its process
//	                                            before: heap, goroutines
//	                                            N locks, waiters or keys
//	  ◄──────────────── ready ───────────────   after: heap, goroutines, stacks
//	INFO ── go ─────────────────────────────►   window: CPU, renewals, commands
//	INFO   ◄──────────────── seen ───────────
//
// Each size has a process of its own, so that nothing of an earlier one is weighed with
// it. Memory is what the heap holds after a collection, and what goroutines' stacks take
// is said apart.
//
//	I1  What is weighed is there: every lock is held, every goroutine parks.
//	I2  Figures for each item are differences to the same process without them.
//	I3  A renewal that came late, failed or was refused is counted.
package growth
