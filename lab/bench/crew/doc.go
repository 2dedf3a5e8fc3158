// Package crew measures locks that several processes contend for.
//
//	          ┌─ process 0: Team ─ Guard ─┐
//	parent ───┼─ process 1: Team ─ Guard ─┼──► one redis-server
//	  go ───► └─ process n: Team ─ Guard ─┘
//	  ◄── tallies          │
//	  ◄── turns ◄── Log, a mapped file: who had the lock, since when, how often
//
// A turn is what one process has of the lock until another gets it. The log of turns is written inside the protected
// section, so it needs no lock of its own, and shows exactly how much of the lock each process had in any span of
// time.
//
//	I1  The processes begin together, and one that cannot begin is an error.
//	I2  Two concurrent holders are detected, whatever their processes.
//	I3  Every acquisition is in the log of turns, in the turn of its process.
//	I4  A share is of a span's acquisitions; the least one is that of the worst span.
//	I5  Every process has ended when Run returns.
package crew
