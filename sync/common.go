package anteroom

import (
	"context"
	"strings"
	"sync/atomic"

	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/sync/internal/lock"
)

// common is what a Mutex, an RWMutex and a Semaphore are made of.
type common struct {
	m         *Manager
	key       string
	*settings                           // nil: no Manager has made it
	last      atomic.Pointer[lock.Link] // to the key found last time
}

// unusable returns why the lock, of the type name, cannot be used; nil if it can.
func (c *common) unusable(op, name string) *Error {
	switch {
	case c.m == nil:
		return notMade(op, name)
	case c.settings.refused != nil:
		return mistake(op, c.key, c.settings.refused)
	}
	return nil
}

// notMade is the error of a lock of the type name that no Manager has made.
func notMade(op, name string) *Error {
	return newError(op, "", configError(name, "was not made by a Manager; use Manager.%s or Manager.New%s", name, name))
}

// Key returns the lock's key.
func (c *common) Key() string { return c.key }

// Config returns the lock's configuration with all defaults filled in.
func (c *common) Config() (cfg LockConfig) {
	if c.settings != nil {
		cfg = c.cfg
	}
	cfg.Key = c.key
	return cfg
}

// use returns the lock's key with one reference more, or an error where the key is in use with another configuration.
// From here on the lock can be used.
func (c *common) use() (*lock.Key, error) { return c.m.use(&c.last, c.key, c.settings) }

// find returns the lock's key, without a reference, or nil. An owner finds the key in which it owns the lock.
func (c *common) find() *lock.Key { return c.m.find(&c.last, c.key, c.settings) }

// acquire brings its caller in by a Hold, of an RWMutex or a Semaphore with so many units. takes is nil where that waits for
// its turn.
func (c *common) acquire(ctx context.Context, op string, kind queue.Kind, units int64, takes *lock.Taking, opts []AcquireOption) (*Hold, error) {
	m := c.m
	r := request{op: op, kind: kind, settings: c.settings, units: units}
	ctx = m.acquiring(ctx, c.key, &r)
	if err := r.apply(opts); err != nil {
		m.notAcquired(c.key, &r, err)
		return nil, mistake(op, c.key, err)
	}
	again := c.capacity <= 0 && (takes == nil || takes.From == "") // of a Semaphore a Hold inside another one has units of its own
	for outer := m.outer(ctx, c.key); outer != nil && again; outer = m.outer(ctx, c.key) {
		if h, err := outer.reenter(ctx, &r); h != nil || err != nil {
			m.reentered(&r, &outer.t.owner, err)
			return h, err
		}
	}
	k, err := c.use()
	if err != nil {
		return nil, m.notEntered(c.key, &r, err)
	}
	defer k.Done()
	h := m.newHold(ctx, &r)
	o := &h.t.owner
	o.Goroutine, o.Kind, o.CallSite = uint64(m.goroutine()), kind, m.callSite()
	if takes != nil || r.note != "" {
		o.With(lock.More{Takes: takes, Note: r.note})
	}
	if strings.HasSuffix(op, "do") { // an outer one is released after it; what Acquire has, another goroutine may release
		m.waitsForItself(k, o.Goroutine, kind)
	}
	bounded := ctx
	if r.wait > 0 {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeout(ctx, r.wait)
		defer cancel()
	}
	if err := m.enter(bounded, k, &r, o); err != nil {
		h.t.remove(h)
		return nil, err
	}
	return h, nil
}

// byLock brings its caller in for Lock, TryLock and TryLockFor.
func (c *common) byLock(ctx context.Context, op string, kind queue.Kind, units int64) error {
	m := c.m
	r := request{op: op, kind: kind | queue.NoNotify, settings: c.settings, units: units}
	m.acquiring(context.Background(), c.key, &r)
	k, err := c.use()
	if err != nil {
		return m.notEntered(c.key, &r, err)
	}
	defer k.Done()
	o := &lock.Owner{
		Stay: queue.Stay{Goroutine: uint64(m.goroutine()), Kind: r.kind}, CallSite: m.callSite(), Holder: (*unnotified)(m),
	}
	if units > 0 {
		o.Shares(new(lock.Share))
		o.Need = int32(units)
	}
	if _, again := ownedBy(k, o.Goroutine); again && c.cfg.Reentrant && (!m.closing.Load() || k.Held().Owner().Err() == nil) { // Close waits for who has the lock
		err := m.reenter(k, op, kind.IsRefusable())
		m.reentered(&r, k.Held().Owner(), err)
		return err
	}
	if m.closing.Load() {
		err := mistake(op, c.key, ErrClosed)
		m.notAcquired(c.key, &r, err)
		return err
	}
	m.waitsForItself(k, o.Goroutine, kind)
	return m.enter(ctx, k, &r, o)
}

// do acquires the lock, runs fn and releases the lock: see Mutex.Do.
func (c *common) do(ctx context.Context, op string, units int64, fn func(ctx context.Context) error, opts []AcquireOption) error {
	h, err := c.acquire(ctx, op, queue.Refusable, units, nil, opts)
	if err != nil {
		return err
	}
	return h.do(ctx, fn)
}

// waitsForItself reports a caller whose goroutine, which must be the calling one, has what it is about to wait for, and lets it wait.
// Neither does one that waits for nobody, nor one that comes during a Close.
func (m *Manager) waitsForItself(k *lock.Key, goroutine uint64, kind queue.Kind) {
	if owned, _ := ownedBy(k, goroutine); !owned || kind.IsTry() || m.closing.Load() {
		return
	}
	site := ""
	if o := ownerOf(k); o != nil {
		site = o.CallSite
	}
	m.reports.SelfDeadlock(k.Name(), settingsOf(k).cfg.Name, site)
}

// ownedBy reports whether the goroutine, which must be the calling one, owns the lock, of an RWMutex to write, or has lost it and not
// exited yet, and whether it came by Lock: that is exact, and stays so until the goroutine itself exits.
func ownedBy(k *lock.Key, goroutine uint64) (owned, byLock bool) {
	o := k.Queue().Owner()
	owned = o != nil && goroutine != 0 && o.Goroutine == goroutine
	return owned, owned && !o.Kind.CanNotify()
}
