package anteroom

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/sync/observe"
)

// What the methods of a Hold answer that only the lock of a Mutex has.
var (
	errUnitsLease = configError("Extend", "is for a Mutex: the units of an RWMutex or a Semaphore have the lease of their process, which is renewed")
	errNoTicket   = configError("Detach", "is for a Mutex: the units of an RWMutex or a Semaphore belong to their process")
	errNoWriter   = configError("Downgrade", "is for an RWMutex")
)

// defaultTurn is MaxHandoffTime of an RWMutex and a Semaphore: what lasts longer than that ends its turn.
const defaultTurn = time.Millisecond

// init sets what an RWMutex or a Semaphore is made of. cfg says what differs from Config.Defaults.
func (c *common) init(m *Manager, key string, cfg LockConfig, capacity int64) error {
	c.m, c.key, c.settings = m, key, &settings{}
	if c.settings.refused = m.made(); c.settings.refused != nil {
		return c.settings.refused
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
	if c.settings.refused = err; err == nil {
		normal.Key = ""
		m.lookout.Serve(normal.LongWait)
		c.settings = m.settings(normal, capacity)
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

// enterUnnamed brings in so many units whose owner nobody knows by name, or returns an *Error.
func (c *common) enterUnnamed(ctx context.Context, op string, kind queue.Kind, units int64) error {
	r := request{op: op, kind: kind | queue.NoNotify, settings: c.settings, units: units}
	closed := c.m.closing.Load() // to come in after a Close is a mistake, to wait while one begins is none
	if c.capacity > 0 {
		ctx = c.m.acquiring(ctx, c.key, &r)
	} else { // its caller has no context
		c.m.acquiring(context.Background(), c.key, &r)
	}
	if err := r.apply(nil); err != nil {
		m := mistake(op, c.key, err)
		c.m.notAcquired(c.key, &r, m)
		return m
	}
	k, err := c.use()
	if err != nil {
		return c.m.notEntered(c.key, &r, err)
	}
	defer k.Done()
	c.m.waitsForItself(k, uint64(c.m.goroutine()), kind)
	if err = ctx.Err(); err == nil {
		if err = k.Enter(ctx, kind, units, max(c.capacity, 0)); err == nil {
			if c.m.reports.Observed() {
				c.m.reports.AcquiredUnnamed(&r.attempt, k.Held())
			}
			return nil
		}
	}
	failed := newError(op, c.key, notGranted(ctx, err))
	if closed && failed.Err == ErrClosed { //nolint:errorlint // as notGranted gives it
		failed.Outcome = observe.OutcomeMistake
	}
	c.m.notAcquired(c.key, &r, failed)
	return failed
}

// leave is the way out for units whose owner nobody knows by name. It panics if fewer are inside.
func (c *common) leave(op string, units int64) {
	k := c.find()
	if k == nil {
		panic(mistake(op, c.key, ErrNotHeld))
	}
	defer func() {
		switch p := recover().(type) {
		case nil:
		case string: // the gate's
			panic(mistake(op, c.key, joined(ErrNotHeld, ownText(strings.TrimPrefix(p, "queue: ")))))
		default:
			panic(p)
		}
	}()
	if lost := k.Leave(units, max(c.capacity, 0)); lost != nil {
		l := lost.LossOr(renewal.ReasonDeadline)
		e := c.m.lossError(op, c.key, l)
		c.m.reports.UnlockLost(lost, "", l.Cause, e.Since, e.Err)
	}
}
