// Package locktest helps to test programs that use anteroom: locks without a Redis, in virtual time if you like, and
// ways to make them fail.
//
//	func TestSomething(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			lt := locktest.NewManager(t, anteroom.Config{})
//			svc := NewService(lt.Manager)
//			...
//			lt.Lose("order:42") // what does the service do now?
//		})
//	}
//
// [NewManager] returns an [anteroom.Manager] on an embedded server. [Manager.TakeBy] gives a lock to another holder,
// [Manager.Lose] takes it from its holder, [Manager.Down] takes the server down and [Manager.Up] brings it back.
// [Manager.Another] is a second process. [Start] is for Examples. A lock that is still held when the test ends fails
// the test: see [NewManager] and [AllowLeaks].
//
// # What it is not
//
// The embedded server is miniredis: it has the commands, the scripts, the expiry and the messages that locks need,
// but nothing of a deployment: no replicas (a lock with Replicas is never granted), no cluster, no persistence, no
// eviction, no permissions. Tests against it show what your code does, not what your Redis does.
//
// # Overview
//
//	code under test            code under test
//	      │                          │
//	Manager (NewManager)       Manager (Another)        your test
//	      │                          │                      │
//	      └────────┐        ┌────────┘                      │ TakeBy, Lose
//	            ┌──▼────────▼──┐                            │
//	            │ gate: Down,Up│                            │
//	            └──────┬───────┘                            │
//	                   └──────────► server ◄────────────────┘
//	                     (in memory, time of the bubble)
//
// Connections are in-memory pipes: no port is opened, and inside a bubble nothing blocks on anything but the bubble's
// own channels and timers. TakeBy and Lose bypass the gate, so a lock can be taken or lost while the server is down.
//
// # Invariants
//
// The test of each has its number in its name.
//
//	I1  A lock taken with TakeBy stays taken until it is released or lost, however much time passes.
//	I2  When Lose returns, and the server is up, every Manager on it that held the lock has been notified, and none
//	    believes that it still holds it.
//	I3  While the server is down no command that a Manager starts has an effect, and each fails immediately. Up brings the
//	    memory back, minus the leases that have expired meanwhile, and the first command after it works.
//	I4  After Stop, and so after the test, no goroutine, timer or connection remains; a release in flight has reached the
//	    server.
//	I5  Everything works the same inside a bubble and outside.
//	I6  A lock that is still held at the end of a test fails it, with key and call site, unless AllowLeaks.
//
// Lock order: the mutexes of the server and of a connection are leaves; nothing is called while one is held.
package locktest
