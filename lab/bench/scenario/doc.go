// Package scenario is what is measured: a table of scenarios, each a value with its libraries, how they are measured,
// and the targets for the results.
//
//	Table() ──► Scenario ── Measure, per library and round ──► measure.Figures
//	               │                                              │ rounds, interleaved
//	               └── Targets ── Judge ◄── measure.Result ◄──────┘
//
// A scenario in one process is a measure.Load and needs no Measure of its own.
//
// # Invariants
//
//	I1  Rounds are interleaved: every library once, then again, each time in another order, so that other activity of
//	    the machine affects all of them equally.
//	I2  A target is data: what it demands, of which library, compared with which.
package scenario
