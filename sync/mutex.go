package anteroom

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom/queue"
)

// Mutex is a lock shared by all processes that use the same key in the same
// Redis. It is a sync.Locker, and it can be acquired as a Hold.
//
// Make one with Manager.Mutex or Manager.NewMutex; the zero Mutex panics when
// used. A Mutex is cheap and holds no state: two of the same key and Manager are
// the same lock. It must not be copied after first use, which go vet checks.
// All methods are safe for concurrent use.
//
// In the terminology of the Go memory model, within one process the n'th release
// of a lock "synchronizes before" the m'th return of an acquisition for any n < m,
// as with sync.Mutex. Across processes there is no such relation: what one holder
// wrote elsewhere is seen by the next as far as that elsewhere promises it.
//
// Unlike a sync.Mutex the lock can be lost while it is held; see docs/guarantees.md.
// Lock has no way to tell its caller, so code that must not run twice uses Acquire
// or Do, or asks Held before each step that counts.
type Mutex struct {
	m         *Manager
	key       string
	*settings                       // nil: the key is not valid
	last      atomic.Pointer[entry] // found last time; it may have ended
}

var _ sync.Locker = (*Mutex)(nil)

// Mutex returns the lock of key with Config.Defaults. A key that is out of bounds or
// reserved (see LockConfig.Key) is reported by the Mutex's methods.
func (m *Manager) Mutex(key string) *Mutex {
	mu := &Mutex{m: m, key: key}
	if m.validKey(key) == nil {
		mu.settings = m.defaults
	}
	return mu
}

// NewMutex returns the lock that cfg describes, or an *Error that wraps ErrConfig. A
// field of cfg that is zero has the value of Config.Defaults.
func (m *Manager) NewMutex(cfg LockConfig) (*Mutex, error) {
	normal, err := cfg.withDefaults(m.cfg.Defaults).normal()
	if err == nil {
		err = first(m.validKey(cfg.Key), normal.validFor(m.cfg.Dialect))
	}
	if err != nil {
		return nil, &Error{Op: "new mutex", Key: cfg.Key, Outcome: OutcomeMistake, Err: err}
	}
	normal.Key = ""
	m.lookout.Serve(normal.LongWait)
	return &Mutex{m: m, key: cfg.Key, settings: m.settings(normal)}, nil
}

// Key returns the lock's key.
func (mu *Mutex) Key() string { return mu.key }

// Config returns the lock's configuration with all defaults filled in.
func (mu *Mutex) Config() LockConfig {
	var cfg LockConfig
	if mu.settings != nil {
		cfg = mu.cfg
	}
	cfg.Key = mu.key
	return cfg
}

// Lock waits until the calling goroutine holds the lock. A goroutine that holds it
// by Lock or TryLock enters again, unless the lock is NotReentrant.
//
// Lock panics with an *Error for mistakes in the program only: bad configuration,
// the 256th nesting, a closed Manager. Whatever Redis answers is retried, logged
// once per change, and raised as an event, until the lock is obtained.
//
// Lock by a goroutine whose own Acquire holds the key waits for itself, unless the
// Hold was passed on to one that will release it: that is reported as
// EventSelfDeadlock.
func (mu *Mutex) Lock() {
	if err := mu.lock(context.Background(), "lock", queue.Deaf); err != nil {
		panic(err)
	}
}

// TryLock takes the lock if it is free and reports whether it did; it does not
// wait for a holder. When it is not free for a TryLock, and what a refusal leaves
// behind, is as for TryAcquire. It asks Redis where this process does not know the answer,
// and then takes up to CommandTimeout; false also means that Redis did not answer.
// It panics for mistakes in the program, as Lock does.
func (mu *Mutex) TryLock() bool {
	err := mu.lock(context.Background(), "try lock", queue.Try|queue.Refusable|queue.Deaf)
	panicOnMistake(err)
	return err == nil
}

// TryLockFor is TryLock that waits up to d for the lock. A d of zero or less does
// not wait. What false means, and when it panics, is as for TryLock.
func (mu *Mutex) TryLockFor(d time.Duration) bool {
	if d <= 0 {
		return mu.TryLock()
	}
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	err := mu.lock(ctx, "try lock", queue.Refusable|queue.Deaf)
	panicOnMistake(err)
	return err == nil
}

// panicOnMistake panics for what no answer of a server could have caused.
func panicOnMistake(err error) {
	if e, ok := err.(*Error); ok && e.Outcome == OutcomeMistake {
		panic(e)
	}
}

// lock enters for Lock, TryLock and TryLockFor.
func (mu *Mutex) lock(ctx context.Context, op string, kind queue.Kind) error {
	if mu == nil || mu.settings == nil {
		panic(mu.unusable(op))
	}
	m := mu.m
	r := m.newRequest(op, kind, mu.settings)
	if m.reports.observed {
		m.reports.acquiring(context.Background(), mu.key, r)
	}
	e, err := mu.use()
	if err == ErrClosed { //nolint:errorlint // as use gives it
		err := mu.mistake(r.op, err)
		m.reports.notAcquired(mu.key, r, err)
		return err
	}
	if err != nil {
		return m.notEntered(mu.key, r, err)
	}
	r.waiter.Owner = uint64(m.goroutine())
	if owned, byLock := e.q.OwnedBy(r.waiter.Owner); owned && mu.cfg.Reentrancy == ByGoroutine {
		if byLock {
			err := mu.reenter(e, r)
			m.reports.reentered(r, e.cur.Load().owner, err)
			if err != nil {
				e.unref()
			}
			m.spare.Put(r) // it has not been queued
			return err
		}
		if !kind.IsTry() { // that one waits for nobody
			m.reports.selfDeadlock(e)
		}
	}
	if m.cfg.RecordCallSites {
		r.terms = r.terms.from(m.callSite())
	}
	err = e.acquire(ctx, r)
	if err != nil {
		mu.clearLast(e)
	}
	return err
}

// Unlock undoes one Lock or TryLock. The last one hands the lock to the next
// waiter of this process or releases it in Redis; it waits for the answer up to
// CommandTimeout (Config.CommandTimeout has the one exception). A release that is not
// confirmed by then goes on in the background for up to a lease, while renewal has ended.
//
// It panics with an *Error if the lock is not locked, or is held by another goroutine
// and not NotReentrant; the error says by which, and where that one came in, if
// recorded. Unlock of a lock that was lost does not panic: it is logged and raised as
// EventUnlockLost, and never frees a successor's lock.
func (mu *Mutex) Unlock() {
	if mu == nil || mu.settings == nil {
		panic(mu.unusable("unlock"))
	}
	e := mu.find()
	t := mu.tenure(e)
	if t == nil {
		panic(mu.mistake("unlock", joined(ErrNotHeld, mu.whose(e))))
	}
	err := t.exit("unlock", nil, context.Background())
	mu.clearLast(e)
	if err != nil {
		panicOnMistake(err)
		// A release that goes on in the background has raised its own event.
		if e, ok := err.(*Error); ok && e.Outcome == OutcomeLost {
			mu.m.reports.unlockLost(t, e)
		}
	}
}

// whose says who has the lock that the caller may not unlock; nil: nobody of this process.
func (mu *Mutex) whose(e *entry) error {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.cur.Load().current()
	if t == nil {
		return nil
	}
	text := "locked by goroutine "
	if !t.lock {
		text = "it is a Hold's, to be released by Hold.Release, which was acquired by goroutine "
	}
	return ownText(text + strconv.FormatInt(t.goroutine, 10) + at(t.callSite))
}

// tenure returns the tenure that the caller may unlock: its own, or for NotReentrant that
// of any goroutine which came by Lock. The configuration that counts is the one with which
// the key is in use: mu may have another, and its Lock is refused then.
func (mu *Mutex) tenure(e *entry) *tenure {
	if e == nil {
		return nil
	}
	if e.cfg.Reentrancy == ByGoroutine {
		if _, byLock := e.q.OwnedBy(uint64(mu.m.goroutine())); !byLock {
			return nil
		}
		return e.cur.Load().owner // written by this goroutine, and by nobody else until its last exit
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if t := e.cur.Load().current(); t != nil && t.lock {
		return t
	}
	return nil
}

// Held reports whether the calling goroutine holds the lock by Lock or TryLock,
// and the lock is not lost, as of now: it compares with the clock, so that it is
// right also after this process was stopped for a while. For a NotReentrant lock
// it reports whether any goroutine of this process holds it that way. It panics for a
// Mutex that was not made by a Manager, or whose key is out of bounds.
func (mu *Mutex) Held() bool {
	if mu == nil || mu.settings == nil {
		panic(mu.unusable("held"))
	}
	t := mu.tenure(mu.find())
	return t != nil && t.g.valid(mu.m.leases.Now())
}

// Holds returns how many times the calling goroutine has the lock locked: how many
// Unlocks are due, also of a lost lock. For a NotReentrant lock it is 1 while any
// goroutine of this process has it locked. It panics as Held does.
func (mu *Mutex) Holds() int {
	if mu == nil || mu.settings == nil {
		panic(mu.unusable("holds"))
	}
	e := mu.find()
	if mu.tenure(e) == nil {
		return 0
	}
	return e.q.Word().Count()
}

var errNoManager = configError("Mutex", "was not made by a Manager; use Manager.Mutex or Manager.NewMutex")

// unusable is the error of a Mutex without settings: no Manager has made it, or its key is
// not valid.
func (mu *Mutex) unusable(op string) *Error {
	if mu == nil || mu.m == nil {
		return &Error{Op: op, Outcome: OutcomeMistake, Err: errNoManager}
	}
	return mu.mistake(op, mu.m.validKey(mu.key))
}

func (mu *Mutex) mistake(op string, err error) *Error {
	return &Error{Op: op, Key: mu.key, Outcome: OutcomeMistake, Err: err}
}
