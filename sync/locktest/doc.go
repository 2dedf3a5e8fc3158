// Package locktest is for the tests of programs that use anteroom: locks without a
// Redis, in virtual time if you like, and the means to make them go wrong.
//
//	func TestSomething(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			lt := locktest.New(t, anteroom.Config{})
//			svc := NewService(lt.Manager)
//			...
//			lt.Lose("order:42") // what does the service do now?
//		})
//	}
//
// [New] gives an [anteroom.Manager] on an embedded server. [Manager.TakeBy] lets
// someone else have a lock, [Manager.Lose] takes it from whoever has it,
// [Manager.Down] takes the server away and [Manager.Up] brings it back.
// [Manager.Another] is a second process. [Start] is for Examples. A lock that the test
// leaves held fails it: see [New] and [AllowLeaks].
//
// # What it is not
//
// The embedded server is miniredis: it has the commands, the scripts, the expiry
// and the messages that locks need, and nothing of what makes a deployment: no
// replicas (a lock with Replicas is never granted), no cluster, no persistence, no
// eviction, no permissions. Tests against it say what your code does, and not what
// your Redis does.
//
// # Overview
//
//	code under test            code under test
//	      │                          │
//	Manager (New)              Manager (Another)        your test
//	      │                          │                      │
//	      └────────┐        ┌────────┘                      │ TakeBy, Lose
//	            ┌──▼────────▼──┐                            │
//	            │ gate: Down,Up│                            │
//	            └──────┬───────┘                            │
//	                   └──────────► server ◄────────────────┘
//	                     (in memory, time of the bubble)
//
// Connections are pipes in memory: no port is opened, and inside a bubble nothing
// blocks on anything but the bubble's own channels and timers. The test's own hand
// goes around the gate, so a lock can be taken or lost while the server is down.
//
// # Invariants
//
// Each has a test that carries its name.
//
//	I1  A lock taken with TakeBy stays taken until it is released or lost,
//	    however much time passes.
//	I2  When Lose returns, and the server is up, no Manager on it takes itself
//	    for the holder of what was lost: it has been told.
//	I3  While the server is down no command that a Manager begins has an effect,
//	    and each fails at once. Up brings the memory back, less the leases that
//	    have run out meanwhile, and the first command after it works.
//	I4  After Stop, and so after the test, no goroutine, timer or connection is
//	    left; a release that was under way has reached the server.
//	I5  Everything works alike inside a bubble and outside of one.
//	I6  A lock that is still held at the end of a test fails it, with key and
//	    call site, unless AllowLeaks.
//
// Lock order: the mutexes of the server and of a connection are leaves; nothing is
// called while one is held.
package locktest
