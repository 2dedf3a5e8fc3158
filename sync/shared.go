package anteroom

import (
	"cmp"
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/sync/internal/lock"
	"github.com/anteroom/anteroom/sync/observe"
)

// sharedLock is what an RWMutex and a Semaphore have in common: a lock in units, of which each client has some.
type sharedLock struct {
	m         *Manager
	key       string
	*settings // nil: err says why
	err       error
	last      atomic.Pointer[lock.Link] // to the key found last time
}

// What the methods of a Hold answer that only the lock of a Mutex has.
var (
	errUnitsLease = configError("Extend", "is for a Mutex: the units of an RWMutex or a Semaphore have the lease of their process, which is renewed")
	errNoTicket   = configError("Detach", "is for a Mutex: the units of an RWMutex or a Semaphore belong to their process")
	errNoWriter   = configError("Downgrade", "is for an RWMutex")
)

// defaultTurn is MaxHandoffTime of an RWMutex and a Semaphore: what lasts longer than that ends its turn.
const defaultTurn = time.Millisecond

// init sets what an RWMutex or a Semaphore is made of. cfg says what differs from Config.Defaults.
func (s *sharedLock) init(m *Manager, key string, cfg LockConfig, capacity int64) error {
	s.m, s.key = m, key
	if s.err = m.made(); s.err != nil {
		return s.err
	}
	cfg = cfg.withDefaults(m.cfg.Defaults.forShared(capacity))
	cfg.Key = key
	cfg.MaxHandoffTime = cmp.Or(cfg.MaxHandoffTime, defaultTurn)
	normal, err := cfg.normal()
	if err == nil {
		err = cmp.Or(m.validKey(key), cfg.mustFitShared(capacity))
	}
	if err == nil && m.cfg.Dialect != DialectDesignDocument {
		err = configError("Dialect", "is Redisson's, which has no RWMutex and no Semaphore of ours; use a Manager with DialectDesignDocument")
	}
	if s.err = err; err == nil {
		normal.Key = ""
		m.lookout.Serve(normal.LongWait)
		s.settings = m.settings(normal, capacity)
	}
	return err
}

// forShared returns the defaults c without those that an RWMutex or a Semaphore can do without. MinHold, Replicas and a negative
// RenewalTime stay, and mustFitShared refuses them: who relies on what they promise must not lose it silently.
func (c LockConfig) forShared(capacity int64) LockConfig {
	c.Reentrant, c.StringHolders, c.Linger = false, false, 0
	if c.Replicas == 0 {
		c.ReplicaTimeout = 0
	}
	if capacity != ofRWMutex {
		c.Fencing, c.FenceRecordTime = false, 0
	}
	return c
}

// mustFitShared refuses what only a Mutex can do.
func (c *LockConfig) mustFitShared(capacity int64) error {
	switch {
	case c.Reentrant:
		return configError("Reentrant", "is for a Mutex; a context that carries the Hold of an RWMutex enters it again")
	case c.StringHolders:
		return configError("StringHolders", "is for a Mutex")
	case c.Fencing && capacity != ofRWMutex:
		return configError("Fencing", "is for a Mutex and an RWMutex: those who share a Semaphore have no order")
	case c.RenewalTime < 0:
		return configError("RenewalTime", "is negative; the units of a process are renewed together, and the option Lease ends one Hold")
	case c.Linger > 0:
		return configError("Linger", "is for a Mutex: a process keeps units that nobody uses for 10 ms")
	case c.MinHold > 0:
		return configError("MinHold", "is for a Mutex: the units that a process gives back are free immediately")
	case c.Replicas > 0:
		return configError("Replicas", "is for a Mutex: a goroutine may get units of its process without a command")
	}
	return nil
}

// unusable returns why the lock, of the type name, cannot be used; nil if it can.
func (s *sharedLock) unusable(op, name string) *Error {
	switch {
	case s.m == nil:
		return notMade(op, name)
	case s.settings == nil:
		return mistake(op, s.key, s.err)
	}
	return nil
}

func (s *sharedLock) config() (cfg LockConfig) {
	if s.settings != nil {
		cfg = s.cfg
	}
	cfg.Key = s.key
	return cfg
}

// use and find are those of a Mutex.
func (s *sharedLock) use() (*lock.Key, error) { return s.m.use(&s.last, s.key, s.settings) }
func (s *sharedLock) find() *lock.Key         { return s.m.find(&s.last, s.key, s.settings) }

// acquire brings its caller in with so many units. again: a context that carries the Hold enters again. Here and below
// the lock can be used.
func (s *sharedLock) acquire(ctx context.Context, op string, kind queue.Kind, units int64, again bool, opts []AcquireOption) (*Hold, error) {
	m := s.m
	r := request{op: op, kind: kind, settings: s.settings, units: units}
	ctx = m.acquiring(ctx, s.key, &r)
	if err := r.apply(opts); err != nil {
		m.notAcquired(s.key, &r, err)
		return nil, mistake(op, s.key, err)
	}
	for outer := m.outer(ctx, s.key); outer != nil && again; outer = m.outer(ctx, s.key) {
		if h, err := outer.reenter(ctx, &r); h != nil || err != nil {
			m.reentered(&r, &outer.t.owner, err)
			return h, err
		}
	}
	k, err := s.use()
	if err != nil {
		return nil, m.notEntered(s.key, &r, err)
	}
	defer k.Done()
	h := &Hold{values: ctx, writes: s.capacity == ofRWMutex && units == toWrite}
	h.t = m.newShare(h)
	o := &h.t.owner
	o.Share().Of = max(s.capacity, 0)
	o.Need, o.Goroutine, o.Kind, o.CallSite = int32(units), uint64(m.goroutine()), kind, m.callSite()
	if strings.HasSuffix(op, "do") {
		s.waitsForItself(k, kind)
	}
	bounded := ctx
	if r.wait > 0 {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeout(ctx, r.wait)
		defer cancel()
	}
	if err := s.enter(bounded, k, &r, o); err != nil {
		h.t.remove(h)
		return nil, err
	}
	if r.lease != nil {
		o.Limit(r.lease)
	}
	return h, nil
}

// enter brings o in, or returns an *Error.
func (s *sharedLock) enter(ctx context.Context, k *lock.Key, r *request, o *lock.Owner) error {
	err := ctx.Err()
	if err == nil {
		err = k.Acquire(ctx, o, nil)
	}
	if err != nil {
		err := newError(r.op, s.key, notGranted(ctx, err))
		s.m.notAcquired(s.key, r, err)
		return err
	}
	s.m.locks.Register(o)
	if o.Loss() != nil { // meanwhile
		s.m.locks.Unregister(o)
	}
	if s.m.reports.Observed() {
		s.m.reports.Acquired(&r.attempt, o)
	}
	return nil
}

// enterUnnamed brings in so many units whose owner nobody knows by name, or returns an *Error.
func (s *sharedLock) enterUnnamed(ctx context.Context, op string, kind queue.Kind, units int64) error {
	r := request{op: op, kind: kind | queue.NoNotify, settings: s.settings, units: units}
	closed := s.m.closing.Load() // to come in after a Close is a mistake, to wait while one begins is none
	s.m.acquiring(context.Background(), s.key, &r)
	if err := r.apply(nil); err != nil {
		m := mistake(op, s.key, err)
		s.m.notAcquired(s.key, &r, m)
		return m
	}
	k, err := s.use()
	if err != nil {
		return s.m.notEntered(s.key, &r, err)
	}
	defer k.Done()
	s.waitsForItself(k, kind)
	if err = ctx.Err(); err == nil {
		if err = k.Enter(ctx, kind, units, max(s.capacity, 0)); err == nil {
			if s.m.reports.Observed() {
				s.m.reports.AcquiredUnnamed(&r.attempt, k.Held())
			}
			return nil
		}
	}
	failed := newError(op, s.key, notGranted(ctx, err))
	if closed && failed.Err == ErrClosed { //nolint:errorlint // as notGranted gives it
		failed.Outcome = observe.OutcomeMistake
	}
	s.m.notAcquired(s.key, &r, failed)
	return failed
}

// waitsForItself reports a caller whose goroutine holds what it is about to wait for.
func (s *sharedLock) waitsForItself(k *lock.Key, kind queue.Kind) {
	if w := k.Queue().Demand().Owner.Goroutine; w != 0 && !kind.IsTry() && w == uint64(s.m.goroutine()) {
		site := ""
		if o := k.Units().Writes; o != nil {
			site = o.CallSite
		}
		s.m.reports.SelfDeadlock(s.key, s.cfg.Name, site, "Acquire, RAcquire and Do enter again with the Hold's context")
	}
}

// leave is the way out for units whose owner nobody knows by name. It panics if fewer are inside.
func (s *sharedLock) leave(op string, units int64) {
	k := s.find()
	if k == nil {
		panic(mistake(op, s.key, ErrNotHeld))
	}
	defer func() {
		switch p := recover().(type) {
		case nil:
		case string: // the gate's
			panic(mistake(op, s.key, joined(ErrNotHeld, ownText(strings.TrimPrefix(p, "queue: ")))))
		default:
			panic(p)
		}
	}()
	if lost := k.Leave(units, max(s.capacity, 0)); lost != nil {
		l := lost.LossOr(renewal.ReasonDeadline)
		e := s.m.lossError(op, s.key, l)
		s.m.reports.UnlockLost(lost, "", l.Cause, e.Since, e.Err)
	}
}
