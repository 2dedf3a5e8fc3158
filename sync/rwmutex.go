package anteroom

import (
	"context"
	"sync"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/sync/internal/lock"
)

// RWMutex is a lock shared by all processes that use the same key in the same Redis, which many may hold to read, or one
// to write. It has the methods of a sync.RWMutex, and can be acquired as a Hold: Acquire, TryAcquire and Do to write,
// RAcquire, TryRAcquire and RDo to read.
//
// Make one with Manager.RWMutex or Manager.NewRWMutex: of the zero RWMutex, methods return ErrConfig, or panic with it if they
// return no error. It is cheap and holds no state:
// two of the same key and Manager are the same lock. It must not be copied after first use. All methods are safe for
// concurrent use.
//
// Redis is asked once for all readers of a process: while the process has the lock to read, RLock and RUnlock are local.
// Who waits to write keeps new readers out, here and in other processes, and processes take turns in the order in which
// they began to wait.
//
// As with a sync.RWMutex, a goroutine that reads must not read again by RLock, nor Lock: it may wait for itself, which
// nobody can see. A Hold's context enters again; see Acquire. A lock to read cannot become one to write; the other way
// is Hold.Downgrade.
//
// Unlike a sync.RWMutex the lock can be lost while it is held. Nobody who came by RLock or Lock is notified; no other
// goroutine of this process comes in before all of them have left, but other processes may. Use RAcquire or Acquire where that matters.
type RWMutex struct{ common }

var _ sync.Locker = (*RWMutex)(nil)

// units of an RWMutex.
const (
	toRead  = 1
	toWrite = lettucecompat.AllUnits
)

// RWMutex returns the read-write lock of key with Config.Defaults. What NewRWMutex would refuse is reported by the
// methods of the lock.
func (m *Manager) RWMutex(key string) *RWMutex {
	rw := new(RWMutex)
	_ = rw.init(m, key, LockConfig{}, ofRWMutex)
	return rw
}

// NewRWMutex returns the read-write lock that cfg describes, or an *Error that wraps ErrConfig. A field of cfg that is
// zero has the value of Config.Defaults; MaxHandoffTime defaults to 1 ms here. Reentrant, StringHolders, Linger, MinHold,
// Replicas, and a negative RenewalTime are for a Mutex: in cfg ErrConfig names them. In Config.Defaults they are ignored
// here, but for MinHold, Replicas and RenewalTime, which are ErrConfig. MaxHandoffs has no meaning.
func (m *Manager) NewRWMutex(cfg LockConfig) (*RWMutex, error) {
	rw := new(RWMutex)
	if err := rw.init(m, cfg.Key, cfg, ofRWMutex); err != nil {
		return nil, newError("new rwmutex", cfg.Key, err)
	}
	return rw, nil
}

// RLock waits until the lock is held to read. It panics with an *Error for mistakes in the program only: bad
// configuration, a closed Manager. Any answer of Redis is retried until the lock is obtained.
func (rw *RWMutex) RLock() {
	if rw != nil {
		if k := rw.last.Load().Key(); k != nil && !rw.m.closing.Load() && k.Join() {
			return
		}
	}
	if err := rw.rlock(context.Background(), "rlock", 0); err != nil {
		panic(err)
	}
}

// RUnlock undoes one RLock, TryRLock or TryRLockFor, of any goroutine. It panics with an *Error if the lock is not locked
// that way. Where the process has come in for this reader alone, or another process waits and this was the last reader of a
// turn that is over, or the Manager closes, it waits for the answer of Redis up to twice CommandTimeout, so that another process
// can have the lock after it.
func (rw *RWMutex) RUnlock() {
	const op = "runlock"
	rw.check(op)
	rw.leave(op, toRead)
}

// TryRLock takes the lock to read if nobody holds it to write, or waits for it or did so within the last second, and reports whether it did. What another
// process no longer uses, and keeps for up to 10 ms, counts as held. Where TryRLock asks Redis it takes up to
// CommandTimeout; false also means that Redis did not answer. It panics as RLock does.
func (rw *RWMutex) TryRLock() bool {
	return succeeded(rw.rlock(context.Background(), "try rlock", queue.Try|queue.Refusable))
}

// TryRLockFor is TryRLock that waits up to d. A d of zero or less does not wait.
func (rw *RWMutex) TryRLockFor(d time.Duration) bool {
	if d <= 0 {
		return rw.TryRLock()
	}
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return succeeded(rw.rlock(ctx, "try rlock", queue.Refusable))
}

func (rw *RWMutex) rlock(ctx context.Context, op string, kind queue.Kind) error {
	rw.check(op)
	return rw.enterUnnamed(ctx, op, kind, toRead)
}

// check panics where rw cannot be used.
func (rw *RWMutex) check(op string) {
	if err := rw.unusable(op); err != nil {
		panic(err)
	}
}

// unusable returns why rw cannot be used; nil if it can.
func (rw *RWMutex) unusable(op string) *Error {
	if rw == nil {
		return notMade(op, "RWMutex")
	}
	return rw.common.unusable(op, "RWMutex")
}

// Lock waits until the lock is held to write, by nobody else. It panics as RLock does. Lock and RLock by the goroutine
// that holds the lock to write wait for themselves, unless another one is to release it: that is reported as
// EventSelfDeadlock, immediately.
func (rw *RWMutex) Lock() {
	if err := rw.wlock(context.Background(), "lock", 0); err != nil {
		panic(err)
	}
}

// Unlock undoes Lock, TryLock or TryLockFor, of any goroutine. It waits for the answer of Redis up to twice CommandTimeout
// where the lock goes back. It panics with an *Error if the lock is not locked that way. If it was lost, that is raised
// as EventUnlockLost.
func (rw *RWMutex) Unlock() {
	const op = "unlock"
	rw.check(op)
	var o *lock.Owner
	if k := rw.find(); k != nil {
		o = k.Units().Writes
	}
	if o == nil || o.Kind.CanNotify() {
		panic(mistake(op, rw.key, ErrNotHeld))
	}
	rw.m.unlock(o)
}

// TryLock takes the lock to write if nobody holds it or waits for it, and reports whether it did. What another process no
// longer uses counts as held for up to 10 ms, and for about a second if several have read there by RLock. Otherwise it is as
// TryRLock.
func (rw *RWMutex) TryLock() bool {
	return succeeded(rw.wlock(context.Background(), "try lock", queue.Try|queue.Refusable))
}

// TryLockFor is TryLock that waits up to d. A d of zero or less does not wait.
func (rw *RWMutex) TryLockFor(d time.Duration) bool {
	if d <= 0 {
		return rw.TryLock()
	}
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return succeeded(rw.wlock(ctx, "try lock", queue.Refusable))
}

func (rw *RWMutex) wlock(ctx context.Context, op string, kind queue.Kind) error {
	rw.check(op)
	return rw.byLock(ctx, op, kind, toWrite)
}

// RLocker returns a sync.Locker whose Lock and Unlock call RLock and RUnlock.
func (rw *RWMutex) RLocker() sync.Locker { return (*rlocker)(rw) }

type rlocker RWMutex

func (r *rlocker) Lock()   { (*RWMutex)(r).RLock() }
func (r *rlocker) Unlock() { (*RWMutex)(r).RUnlock() }

// Acquire waits until the lock is held to write, or ctx ends. What it returns, with which errors, is as for
// Mutex.Acquire; Lease ends this Hold alone, whatever its process has, and Note is ErrConfig.
//
// With a context that carries the live Hold of this lock (Hold.Context, Do) it enters again without asking Redis: to read
// in a Hold that reads or writes, to write if a live Hold around it writes. To write where all read is ErrUpgrade,
// immediately.
func (rw *RWMutex) Acquire(ctx context.Context, opts ...AcquireOption) (*Hold, error) {
	return rw.hold(ctx, "acquire", queue.Refusable, toWrite, opts)
}

// TryAcquire is Acquire that does not wait: it returns ErrNotAcquired if anybody holds the lock or waits for it. What counts
// as held is as for TryLock.
func (rw *RWMutex) TryAcquire(ctx context.Context, opts ...AcquireOption) (*Hold, error) {
	return rw.hold(ctx, "try acquire", queue.Try|queue.Refusable, toWrite, opts)
}

// Do is Mutex.Do with the lock held to write.
func (rw *RWMutex) Do(ctx context.Context, fn func(ctx context.Context) error, opts ...AcquireOption) error {
	if err := rw.unusable("do"); err != nil {
		return err
	}
	return rw.do(ctx, "do", toWrite, fn, opts)
}

// RAcquire is Acquire to read: others may read meanwhile. Unlike after RLock, the holder is notified of a loss.
func (rw *RWMutex) RAcquire(ctx context.Context, opts ...AcquireOption) (*Hold, error) {
	return rw.hold(ctx, "racquire", queue.Refusable, toRead, opts)
}

// TryRAcquire is RAcquire that does not wait: it returns ErrNotAcquired if anybody holds the lock to write, or waits. What
// counts as held is as for TryRLock.
func (rw *RWMutex) TryRAcquire(ctx context.Context, opts ...AcquireOption) (*Hold, error) {
	return rw.hold(ctx, "try racquire", queue.Try|queue.Refusable, toRead, opts)
}

// RDo is Do with the lock held to read.
func (rw *RWMutex) RDo(ctx context.Context, fn func(ctx context.Context) error, opts ...AcquireOption) error {
	if err := rw.unusable("rdo"); err != nil {
		return err
	}
	return rw.do(ctx, "rdo", toRead, fn, opts)
}

func (rw *RWMutex) hold(ctx context.Context, op string, kind queue.Kind, units int64, opts []AcquireOption) (*Hold, error) {
	if err := rw.unusable(op); err != nil {
		return nil, err
	}
	return rw.acquire(ctx, op, kind, units, nil, opts)
}

// Units returns how many units of its lock the hold has: of a Semaphore as many as were acquired, of an RWMutex 1 to read
// and all 1<<20 to write, of a Mutex 1.
func (h *Hold) Units() int64 {
	switch {
	case h == nil:
		return 0
	case h.t.owner.Share() == nil:
		return 1
	case settingsIn(&h.t.owner).capacity != ofRWMutex:
		return h.t.owner.Has()
	case h.writing():
		return toWrite
	}
	return toRead
}

// writing reports whether h writes an RWMutex.
func (h *Hold) writing() bool {
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	return h.writes
}

// Downgrade makes a hold that writes an RWMutex one that reads it, in one step: nobody writes in between, and readers who
// wait may come in. Each of several Holds inside each other reads or writes for itself, and others come in when the last of
// them that writes was downgraded or released. A hold that reads stays as it is. It returns what Err returns, or ErrConfig
// for the hold of another kind of lock.
func (h *Hold) Downgrade() error {
	if err := h.Err(); err != nil {
		return err
	}
	o := &h.t.owner
	if settingsIn(o).capacity != ofRWMutex {
		return newError("downgrade", h.Key(), errNoWriter)
	}
	h.t.mu.Lock()
	wrote := h.writes && h.sentinel != nil // else its release ends that
	h.writes = h.writes && !wrote
	h.t.mu.Unlock()
	if wrote {
		o.Downgrade()
	}
	return nil
}
