// Package anteroomcertmagic lets several processes share the locks of certmagic, so that one of them obtains or renews a
// certificate while the others wait for it.
//
//	locker, err := anteroomcertmagic.New(m, anteroom.LockConfig{})
//	if err != nil {
//		return err
//	}
//	certmagic.Default.Storage = locker.Storage(certmagic.Default.Storage)
//
// A Storage of your own that has no Lock embeds the *Locker instead. The certificates stay where they are; only the locks are
// in Redis. A process that dies with a lock is succeeded after one lease: there is nothing to unlock after a restart.
//
// certmagic has no context that could end when a lock is lost. An attempt that is under way continues beside the next
// holder's, and the harm is a second certificate. Before the next attempt in the background RenewLockLease locks again.
package anteroomcertmagic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"

	anteroom "github.com/anteroom/anteroom/sync"
)

// Locker is a certmagic.Locker, TryLocker and LockLeaseRenewer. It is safe for concurrent use.
type Locker struct {
	m   *anteroom.Manager
	cfg anteroom.LockConfig

	mu    sync.Mutex
	taken map[string]*taken // by name
}

// taken is a name that this process has locked, or is about to. Unlock does not say whose lock it ends, so there is one
// of a name until then, also after a loss.
type taken struct {
	hold *anteroom.Hold // nil until it is locked; guarded by Locker.mu
	free chan struct{}  // closed when the name is free again
}

var (
	_ certmagic.Locker           = (*Locker)(nil)
	_ certmagic.TryLocker        = (*Locker)(nil)
	_ certmagic.LockLeaseRenewer = (*Locker)(nil)
)

// New returns a Locker. cfg is that of the locks: cfg.Key, "certmagic:" by default, goes before certmagic's names, which may
// have any characters. LongWait is not used, since others wait for as long as a certificate takes. The error is that of
// Manager.NewMutex.
func New(m *anteroom.Manager, cfg anteroom.LockConfig) (*Locker, error) {
	cfg.Key, cfg.Name, cfg.LongWait = cmp.Or(cfg.Key, "certmagic:"), cmp.Or(cfg.Name, "certmagic"), -1
	if _, err := m.NewMutex(cfg); err != nil {
		return nil, err
	}
	return &Locker{m: m, cfg: cfg, taken: map[string]*taken{}}, nil
}

// Storage returns s with the locks of l in place of its own.
func (l *Locker) Storage(s certmagic.Storage) certmagic.Storage { return storage{l, data{s}} }

// storage has the methods of Locker before those of data, which are one level deeper.
type (
	storage struct {
		*Locker
		data
	}
	data struct{ certmagic.Storage }
)

// Lock waits for the lock until ctx ends. It is not reentrant: a second Lock of a name waits in this process, too. The errors
// are those of Mutex.Acquire.
func (l *Locker) Lock(ctx context.Context, name string) error {
	for {
		t, first := l.take(name)
		if first {
			return l.acquire(ctx, name, t, (*anteroom.Mutex).Acquire)
		}
		select {
		case <-t.free:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", anteroom.ErrNotAcquired, context.Cause(ctx))
		}
	}
}

// TryLock does not wait: it returns false, without an error, if another has the lock.
func (l *Locker) TryLock(ctx context.Context, name string) (bool, error) {
	t, first := l.take(name)
	if !first {
		return false, nil
	}
	err := l.acquire(ctx, name, t, (*anteroom.Mutex).TryAcquire)
	if errors.Is(err, anteroom.ErrNotAcquired) && ctx.Err() == nil {
		return false, nil
	}
	return err == nil, err
}

// take returns who has the name in this process, and whether that is the caller, since nobody had it.
func (l *Locker) take(name string) (t *taken, first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.taken[name]; t != nil {
		return t, false
	}
	t = &taken{free: make(chan struct{})}
	l.taken[name] = t
	return t, true
}

type method = func(*anteroom.Mutex, context.Context, ...anteroom.AcquireOption) (*anteroom.Hold, error)

// acquire locks the name for t. If it fails, t has what it had, and the name is free if that is nothing.
func (l *Locker) acquire(ctx context.Context, name string, t *taken, acquire method) error {
	cfg := l.cfg
	cfg.Key += name
	mu, err := l.m.NewMutex(cfg)
	var hold *anteroom.Hold
	if err == nil {
		hold, err = acquire(mu, ctx)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		t.hold = hold
	} else if t.hold == nil {
		l.freeLocked(name, t)
	}
	return err
}

func (l *Locker) freeLocked(name string, t *taken) {
	delete(l.taken, name)
	close(t.free)
}

// held returns who has locked the name in this process, and the hold: ErrNotHeld if nobody has.
func (l *Locker) held(name string) (*taken, *anteroom.Hold, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.taken[name]
	if t == nil || t.hold == nil {
		return nil, nil, fmt.Errorf("%w: %s", anteroom.ErrNotHeld, name)
	}
	return t, t.hold, nil
}

// Unlock releases the lock as Hold.Release does, with its errors, and in the background if Redis cannot be reached. It returns
// ErrNotHeld if this Locker has not locked name.
func (l *Locker) Unlock(ctx context.Context, name string) error {
	t, hold, err := l.held(name)
	if err != nil {
		return err
	}
	err = hold.Release(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.taken[name] == t { // not after another Unlock
		l.freeLocked(name, t)
	}
	return err
}

// RenewLockLease returns nil while the lock is held: it is renewed until Unlock anyway. If it was lost, it waits for the lock as
// Lock does. certmagic then finds what the holder in between has obtained.
func (l *Locker) RenewLockLease(ctx context.Context, name string, _ time.Duration) error {
	t, hold, err := l.held(name)
	if err != nil || hold.Err() == nil {
		return err
	}
	_ = hold.Release(ctx) // ErrLost
	return l.acquire(ctx, name, t, (*anteroom.Mutex).Acquire)
}
