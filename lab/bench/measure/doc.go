// Package measure does the same work with any library and reports its cost.
//
//	            barrier      begin                          end
//	goroutines ────┼─ warm-up ─┼──────── counted ────────────┼─ context ends, all come back
//	each: Lock, [hold], Unlock │                             │
//	the caller     │           snapshot                      snapshot
//	                           INFO, CPU, allocations        the same
//
// A Team is the work of one process in one round: its Tally is what the goroutines saw. Tallies of several processes
// add up. A Probe queries the server. Figures are a round's result, by name; Summarize makes the Result of several
// rounds.
//
// # Invariants
//
//	I1  Every library is measured by the same loop: two readings of the clock, around Lock; one guard, inside; no
//	    allocation. TestTeam_AllocatesNothing.
//	I2  Two concurrent goroutines inside a protected section of one key are always detected, in one process and in
//	    several. TestGuard_SeesEveryOverlap.
//	I3  A figure is measured or absent; none is zero because it was not measured. TestResult_KeysAndAbsence.
//	I4  A quantile is off by less than 3 %; the maximum is exact. TestHistogram_ErrorBound.
//	I5  A round ends: a goroutine that is stuck in its library is counted. TestTeam_StuckIsCounted.
//	I6  The harness' own commands and bytes are not counted. TestProbe_CountsNothingOfItsOwn.
package measure
