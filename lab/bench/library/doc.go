// Package library has one adapter for each measured way to lock, so that all of them do the same work.
//
//	Library ── Open(addr) ──► Client ── Handle(key) ──► Handle ── Lock · Unlock
//	one configuration         one process' connection   one goroutine's way to one lock
//
// Each peer is in the best configuration that was found, which may differ by the kind of work (Kind);
// Library.Settings describes it and is printed with every result. Candidates are the other configurations that were
// tried, for readers who doubt the choice.
//
// # Invariants
//
//	I1  An adapter adds no goroutine, no clock reading and no waiting of its own to a Lock and an Unlock, unless its
//	    library cannot wait; then Settings says how the adapter waits.
//	I2  Lock ends when its context does, except for libraries whose Lock takes none: Anteroom's Lock and sync.Mutex.
//	    TestLibraries_EndWithTheirContext.
//	I3  After Close nothing of the client runs any more. TestMain.
//	I4  Versions are read from the program's build information, never typed. TestProgram, of package main, since tests
//	    have no such information.
package library
