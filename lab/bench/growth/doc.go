// Package growth measures how Anteroom's cost grows with waiting goroutines, with held locks, and with used keys.
//
//	parent, beside redis-server                 child, the only thing in its process
//	                                            before: heap, goroutines
//	                                            N locks, waiters or keys
//	  ◄──────────────── ready ───────────────   after: heap, goroutines, stacks
//	INFO ── go ─────────────────────────────►   window: CPU, renewals, commands
//	INFO   ◄──────────────── seen ───────────
//
// Each size has a process of its own, so that nothing of an earlier one is measured with it. Memory is the heap after
// a collection; goroutines' stacks are reported separately.
//
//	I1  What is measured is there: every lock is held, every goroutine parks.
//	I2  Figures for each item are differences from the same process without items.
//	I3  A renewal that was late, failed or was refused is counted.
package growth
