// Command mutants removes each mechanism of the library once and checks that a named test fails.
//
//	go -C lab run ./mutants                  all of them, or: make mutants
//	go -C lab run ./mutants -list            what there is
//	go -C lab run ./mutants -only raise      those whose name contains "raise"
//	go -C lab run ./mutants -only raise -find   which tests of the package fail
//
// A mutant is data (the list_… files): one exact piece of a source file, its replacement, the tests that must fail,
// and what would break for a user. It is applied with `go test -overlay`, so the tree is never touched and several
// can run at once.
//
//	           list ──► apply ──► overlay in a temporary folder
//	                                   │ go test -overlay … -run <named tests>
//	caught, SURVIVED, … ◄── judge ◄────┘
//
// Before any mutant runs, the named tests must pass on the unchanged sources, or a failure would prove nothing. The
// last line counts: mutants=<n> caught=<n> survived=<n> broken=<n>. Broken is a mutant that does not apply or build,
// or whose tests hang although the list does not expect that. The exit status is 0 exactly when all are caught.
//
// The tests of this package check without running a mutant: each applies exactly once to the present sources, its
// tests exist, and the table in docs/generated/mutants.md is generated from the list (go -C lab test ./mutants
// -update writes it).
package main
