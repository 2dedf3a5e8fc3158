package anteroom

import (
	"cmp"
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/sync/internal/lock"
	"github.com/anteroom/anteroom/sync/internal/report"
	"github.com/anteroom/anteroom/sync/observe"
)

// Mutex is a lock shared by all processes that use the same key in the same
// Redis. It is a sync.Locker, and it can be acquired as a Hold.
//
// Make one with Manager.Mutex or Manager.NewMutex: of the zero Mutex, methods return ErrConfig,
// or panic with it if they return no error. A Mutex is cheap and holds no state: two of the same key and Manager are
// the same lock. It must not be copied after first use, which go vet checks.
// All methods are safe for concurrent use.
//
// In the terminology of the Go memory model, within one process the n'th release
// of a lock "synchronizes before" the m'th return of an acquisition for any n < m,
// as with sync.Mutex. Across processes there is no such relation: what one holder
// wrote elsewhere is seen by the next as far as that elsewhere promises it.
//
// Unlike a sync.Mutex the lock can be lost while it is held; see docs/guarantees.md.
// Lock has no way to notify its caller, so code that must not run twice uses Acquire
// or Do, or asks Held before each step that counts.
type Mutex struct{ common }

var _ sync.Locker = (*Mutex)(nil)

// Mutex returns the lock of key with Config.Defaults. A key that is out of bounds or
// reserved (see LockConfig.Key) is reported by the Mutex's methods.
func (m *Manager) Mutex(key string) *Mutex {
	if err := m.validKey(key); err != nil {
		return &Mutex{common{m: m, key: key, settings: &settings{refused: err}}}
	}
	return &Mutex{common{m: m, key: key, settings: m.defaults}}
}

// NewMutex returns the lock that cfg describes, or an *Error that wraps ErrConfig. A
// field of cfg that is zero has the value of Config.Defaults.
func (m *Manager) NewMutex(cfg LockConfig) (*Mutex, error) {
	if err := m.made(); err != nil {
		return nil, newError("new mutex", cfg.Key, err)
	}
	normal, err := cfg.withDefaults(m.cfg.Defaults).normal()
	if err == nil {
		err = cmp.Or(m.validKey(cfg.Key), m.replicasFit(&normal))
	}
	if err != nil {
		return nil, newError("new mutex", cfg.Key, err)
	}
	normal.Key = ""
	m.lookout.Serve(normal.LongWait)
	return &Mutex{common{m: m, key: cfg.Key, settings: m.settings(normal, ofMutex)}}, nil
}

// Lock waits until the calling goroutine holds the lock. With LockConfig.Reentrant a
// goroutine that holds it by Lock or TryLock enters again.
//
// Lock panics with an *Error for mistakes in the program only: bad configuration,
// the 256th nesting, a closed Manager (who holds the lock may enter again while Close waits
// for that). Any answer of Redis is retried, logged
// once per change, and raised as an event, until the lock is obtained.
//
// Lock by a goroutine that holds the lock otherwise waits for itself, unless another
// goroutine is to release it: that is reported as EventSelfDeadlock, immediately.
func (mu *Mutex) Lock() {
	if err := mu.lock(context.Background(), "lock", 0); err != nil {
		panic(err)
	}
}

// TryLock takes the lock if it is free and reports whether it did; it does not
// wait. When it is not free for a TryLock is as for TryAcquire: also while another
// goroutine of this Manager is just acquiring it. Where it asks Redis it takes up to
// CommandTimeout, and twice that while the release before it has no answer; false also
// means that Redis did not answer.
// It panics for mistakes in the program, as Lock does.
func (mu *Mutex) TryLock() bool {
	return succeeded(mu.lock(context.Background(), "try lock", queue.Try|queue.Refusable))
}

// TryLockFor is TryLock that waits up to d for the lock. A d of zero or less does
// not wait. What false means, and when it panics, is as for TryLock.
func (mu *Mutex) TryLockFor(d time.Duration) bool {
	if d <= 0 {
		return mu.TryLock()
	}
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return succeeded(mu.lock(ctx, "try lock", queue.Refusable))
}

// succeeded reports whether err is nil. It panics for what no answer of a server could have caused.
func succeeded(err error) bool {
	if e, ok := err.(*Error); ok && e.Outcome == observe.OutcomeMistake {
		panic(e)
	}
	return err == nil
}

func (mu *Mutex) lock(ctx context.Context, op string, kind queue.Kind) error {
	mu.check(op)
	return mu.byLock(ctx, op, kind, 0)
}

// check panics where mu cannot be used.
func (mu *Mutex) check(op string) {
	if err := mu.unusable(op); err != nil {
		panic(err)
	}
}

// unusable returns why mu cannot be used; nil if it can.
func (mu *Mutex) unusable(op string) *Error {
	if mu == nil {
		return notMade(op, "Mutex")
	}
	return mu.common.unusable(op, "Mutex")
}

// Unlock undoes one Lock or TryLock. The last one hands the lock to the next
// waiter of this process or releases it in Redis; it waits for the answer up to
// CommandTimeout (Config.CommandTimeout has the one exception). A release that is not
// confirmed by then continues in the background until the lease is over, while renewal has ended.
//
// It panics with an *Error if the lock is not locked, or is Reentrant and held by another
// goroutine; the error says by which, and where that one came in, if
// recorded. Unlock of a lock that was lost does not panic: it is logged and raised as
// EventUnlockLost, and never frees a successor's lock.
func (mu *Mutex) Unlock() {
	mu.check("unlock")
	k := mu.find()
	o := mu.owner(k)
	if o == nil {
		panic(mistake("unlock", mu.key, joined(ErrNotHeld, whose(k))))
	}
	mu.m.unlock(o)
}

// unlock ends one unit of o, which came by Lock.
func (m *Manager) unlock(o *lock.Owner) {
	err := m.exit("unlock", o, nil, context.Background())
	if e, is := err.(*Error); !succeeded(err) && is && e.Outcome == observe.OutcomeLost { // what continues in the background has raised its own event
		m.reports.UnlockLost(o.Held(), o.CallSite, e.Err.(*loss).Cause, e.Since, e.Err)
	}
}

// siteOf is where the owner of k has come in, if that is recorded.
func siteOf(k *lock.Key) string {
	if g := k.Held(); g != nil {
		if o := g.Owner(); o != nil {
			return o.CallSite
		}
	}
	return ""
}

// whose says who has the lock that the caller may not unlock; nil: nobody of this process.
func whose(k *lock.Key) error {
	o := k.Owner()
	if o == nil {
		return nil
	}
	text := "locked by goroutine "
	if o.Kind.CanNotify() {
		text = "it is a Hold's, to be released by Hold.Release, which was acquired by goroutine "
	}
	return ownText(text + strconv.FormatUint(o.Goroutine, 10) + report.At(o.CallSite))
}

// owner returns the one that the caller may unlock: itself where the lock is Reentrant, otherwise
// any goroutine which came by Lock. The configuration that counts is the one with which
// the key is in use: mu may have another, and its Lock is refused then.
func (mu *Mutex) owner(k *lock.Key) *lock.Owner {
	if k == nil {
		return nil
	}
	if settingsOf(k).cfg.Reentrant {
		if _, byLock := ownedBy(k, uint64(mu.m.goroutine())); !byLock {
			return nil
		}
		return k.Held().Owner() // written by this goroutine, and by nobody else until its last exit
	}
	if o := k.Owner(); o != nil && !o.Kind.CanNotify() {
		return o
	}
	return nil
}

// Held reports whether the calling goroutine holds the lock by Lock or TryLock,
// and the lock is not lost, as of now: it compares with the clock, so that it is
// right also after this process was stopped for a while. Unless the
// lock is Reentrant, it reports whether any goroutine of this process holds it that way. It panics for a
// Mutex that was not made by a Manager, or whose key is out of bounds.
func (mu *Mutex) Held() bool {
	mu.check("held")
	o := mu.owner(mu.find())
	return o != nil && o.Err() == nil
}

// Holds returns how many times the calling goroutine has the lock locked: how many
// Unlocks are due, also of a lost lock. Unless the lock is Reentrant it is 1 while
// any goroutine of this process has it locked. It panics as Held does.
func (mu *Mutex) Holds() int {
	mu.check("holds")
	k := mu.find()
	if mu.owner(k) == nil {
		return 0
	}
	return k.Queue().Word().Count()
}
