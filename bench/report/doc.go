// Package report makes of results what people read: charts, and the tables of a document.
//
//	results.json ──┬─► Charts() ──► docs/plots/*.svg
//	               └─► Rewrite ──► docs/performance.md
//
// A document has its figures between two marks, and what stands there is made anew from
// the results, so that no figure is typed and none outlives its measurement:
//
//	<!-- bench:begin table one-key-64-hold-0s -->
//	…
//	<!-- bench:end -->
//
// The first word says what is made (blocks), the others of which scenarios.
//
//	I1  Nothing outside of the marks is changed.
//	I2  A block whose results are not there stays as it is, and is named; one that nobody
//	    knows is an error.
//	I3  The same results make the same text.
package report
