// Package anteroom provides distributed locks through Redis: a lock is held by at most one owner among all goroutines
// of all processes that use the same key in the same Redis. The import path ends in "sync"; the package is named
// anteroom so that the standard library's sync keeps its name.
//
//	m, err := anteroom.Open(ctx, "redis://localhost:6379", anteroom.Config{})
//	if err != nil {
//		return err
//	}
//	defer m.CloseWithin(10 * time.Second)
//
//	hold, err := m.Mutex("order:42").Acquire(ctx) // waits until ctx ends
//	if err != nil {
//		return err
//	}
//	defer func() { err = errors.Join(err, hold.Release(ctx)) }() // ErrLost, if the lock did not last
//	return work(hold.Context()) // ends when the lock is lost
//
// The deferred function needs a named result, err. [Mutex.Do] does the same around a function.
//
// # How it works
//
// A lock is a hash in Redis with a lease, a time to live that the holder renews. The goroutines of a process queue in
// the process, and processes queue in Redis: a release gives the lock to the next one and notifies it, and the others
// do not wake. The lock of a holder that crashes is free when its lease ends, after 30 seconds by default.
//
// A lock on leases can be lost while it is held: when Redis cannot be reached for a lease, fails over without the
// lock, or somebody deletes the key. The holder of a lease that ends is notified before Redis can grant the lock to
// anybody else. If two concurrent holders merely waste work, that is enough. If they could do harm, set
// [LockConfig].Fencing and let the resource refuse a write whose [Hold.Token] is smaller than one that it has seen.
//
// # Which type for what
//
//   - [Manager] is one client of the locks in one Redis. Make one per process with [Open], or with [NewManager] from a
//     go-redis client of your own, and close it.
//   - [Mutex] is the lock of one key: cheap, and safe for concurrent use. [Mutex.Do] runs a function under the lock.
//     [Mutex.Acquire] and [Mutex.TryAcquire] return a Hold. [Mutex.Lock] and [Mutex.Unlock] make it a sync.Locker for
//     existing code, which has neither a context nor an error to learn of a loss.
//   - [RWMutex] is a lock that many may hold to read, or one to write, with the methods of a sync.RWMutex and those above.
//     [Semaphore] has a number of units that are acquired and released, up to its capacity.
//   - [Hold] is one possession of a lock. Any goroutine may release it; its Context ends when the lock is lost.
//     [Hold.Detach] and [Mutex.Resume] pass it to another process, [Manager.AcquireAll] holds several locks together.
//   - [Config] configures a Manager, [LockConfig] its locks; zero values have usable defaults.
//
// Acquire and Do enter again by a context that carries the Hold; Lock enters again by its
// goroutine where LockConfig.Reentrant is set.
//
// # Errors
//
// Every error, but what the function of a Do has returned, is an [*Error] that wraps one of these, for [errors.Is]:
//
//   - [ErrNotAcquired]: another holds the lock, or too few replicas confirmed it. Nothing is held.
//   - [ErrUnavailable]: Redis did not serve.
//   - [ErrUnknown], an ErrUnavailable: a command without an answer may have taken effect. It is cleaned up in the background.
//   - [ErrLost]: the lock was lost while it was held; another may hold it.
//   - [ErrConfig]: a person has to change something: a configuration, an argument, a permission, a key of another type.
//   - [ErrNotHeld], [ErrUpgrade], [ErrReentryLimit], [ErrClosed], [ErrInUse]: the program's order of calls.
//
// Lock and Unlock return no error: Lock retries after any answer of Redis, a loss is reported as an [Event], and both
// panic with an *Error for mistakes in the program.
//
// # Watching it
//
// [Config].OnEvent and Logger report what a person may want to know; package metrics exports an [Observer] to
// Prometheus, metrics/otel a [Tracer] to OpenTelemetry, metrics/debug a page of the running program.
// [Manager.Snapshot] lists what this process holds and waits for, [Manager.Inspect] asks Redis about one key.
// Package leader elects one of several processes. Package sync/locktest is a Manager on an embedded server, for tests
// of your own code.
//
// # More
//
// docs/guarantees.md says what a lock promises and what it cannot, docs/recipes.md has programs for common tasks,
// docs/operations.md is for operators. docs/internals/architecture.md traces a Lock through the code, with the
// invariants of this package and the order of its locks.
package anteroom
