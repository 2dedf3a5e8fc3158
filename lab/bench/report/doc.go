// Package report turns results into what people read: charts, and the tables of a document.
//
//	results.json ──┬─► Charts() ──► docs/plots/*.svg
//	               └─► Rewrite ──► docs/performance.md, docs/generated/benchmarks.md
//
// A document has its figures between two marks, and what is between them is regenerated from the results, so that no
// figure is typed and none outlives its measurement:
//
//	<!-- bench:begin table one-key-64-hold-0s -->
//	…
//	<!-- bench:end -->
//
// The first word names the kind of block (blocks), the others its scenarios.
//
//	I1  Nothing outside the marks is changed.
//	I2  A block whose results are missing stays unchanged, and is named; an unknown block is an error.
//	I3  The same results make the same text.
package report
