// Command mutants removes each mechanism of the library once and checks that a named test fails.
//
//	make mutants                            all of them
//	make mutants MUTANTS="-only raise"      those whose name contains "raise"
//	make mutants MUTANTS="-only raise -find"   which tests of the package fail
//
// A mutant is an entry of lists/*.txt: one exact piece of a source file, its replacement, the tests that must fail,
// and what would break for a user. It is applied with `go test -overlay`, so the tree is never touched and several
// can run at once.
//
//	queue-stale-exit: queue/synchronizer.go its name, and the file
//	removes: the guard against a stale Unlock
//	breaks: a late or repeated unlock frees the present owner
//	fails: TestMutex_I7_StaleExit           all of these tests must fail
//	in: sync                                their folder, if it is not the file's
//	hangs                                   they may also fail by hanging
//	race                                    run with the race detector
//	-return w.in                            occurs exactly once in the file; several lines are one piece
//	+return true                            takes its place; without it the piece is removed
//
// Before any mutant runs, the named tests must pass on the unchanged sources, or a failure would prove nothing. The
// last line counts: mutants=<n> caught=<n> survived=<n> broken=<n>. Broken is a mutant that does not apply or build,
// or whose tests hang although the list does not expect that. The exit status is 0 exactly when all are caught.
//
// The tests of this package check without running a mutant that each applies exactly once to the present sources, and
// that its tests exist.
package main
