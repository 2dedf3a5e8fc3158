// Package scenario is what is measured: a table of scenarios, each a value with the
// libraries that take part in it, how they are measured, and what is demanded of the
// result.
//
//	Table() ──► Scenario ── Measure, per library and round ──► measure.Figures
//	               │                                              │ rounds, interleaved
//	               └── Targets ── Judge ◄── measure.Result ◄──────┘
//
// A scenario in one process is a measure.Load and needs no Measure of its own.
//
// # Invariants
//
//	I1  Rounds are interleaved: every library once, then again, each time in another
//	    order, so that what the machine does besides meets all of them alike.
//	I2  A target is data: what it demands, of whom, compared with whom.
package scenario
