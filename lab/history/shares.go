package history

import (
	"context"
	"slices"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// AllUnits are the units of an RWMutex.
const AllUnits = lettucecompat.AllUnits

// way is how a client uses a lock: a Mutex, or so many units of another one. Held is asked by whoever came by Lock.
type way interface {
	Acquire(ctx context.Context, opts ...anteroom.AcquireOption) (*anteroom.Hold, error)
	TryAcquire(ctx context.Context, opts ...anteroom.AcquireOption) (*anteroom.Hold, error)
	Do(ctx context.Context, fn func(context.Context) error, opts ...anteroom.AcquireOption) error
	Lock()
	TryLock() bool
	TryLockFor(d time.Duration) bool
	Unlock()
	Held() bool
}

// lock returns the ways to one lock, by units.
func (w *worker) lock(cfg anteroom.LockConfig, units int64) (func(int64) way, error) {
	is := holding{w.m, cfg.Key}
	switch units {
	case 0:
		mu, err := w.m.NewMutex(cfg)
		return func(int64) way { return mu }, err
	case AllUnits:
		rw, err := w.m.NewRWMutex(cfg)
		return func(n int64) way {
			if n == AllUnits {
				return writer{rw, is}
			}
			return reader{rw, is}
		}, err
	}
	s, err := w.m.NewSemaphore(cfg, units)
	return func(n int64) way { return permits{s, s.Weighted(), n, is} }, err
}

// units are those of a lock.
func (p *Plan) units(key int) int64 {
	if key < len(p.Units) {
		return p.Units[key]
	}
	return 0
}

// some are as many of all units as a client may want.
func (c *client) some(all int64) int64 {
	switch {
	case all > 1 && !c.oneIn(4):
		return 1
	case all == AllUnits || all == 0:
		return all
	}
	return 1 + c.rng.Int64N(all)
}

// reads reports whether the turn is a reader's.
func (t *turn) reads() bool { return t.units < t.plan.units(t.key) }

// holding asks a Manager what its process has of a key.
type holding struct {
	m   *anteroom.Manager
	key string
}

// Held reports whether the process has units that count. Nobody is told of the loss of those that were acquired without a Hold.
func (h holding) Held() bool {
	return slices.ContainsFunc(h.m.Snapshot(), func(s observe.State) bool {
		return s.Key == h.key && !s.Lost && time.Now().Before(s.Deadline)
	})
}

type writer struct {
	*anteroom.RWMutex
	holding
}

type reader struct {
	rw *anteroom.RWMutex
	holding
}

func (r reader) Acquire(ctx context.Context, opts ...anteroom.AcquireOption) (*anteroom.Hold, error) {
	return r.rw.RAcquire(ctx, opts...)
}

func (r reader) TryAcquire(ctx context.Context, opts ...anteroom.AcquireOption) (*anteroom.Hold, error) {
	return r.rw.TryRAcquire(ctx, opts...)
}

func (r reader) Do(ctx context.Context, fn func(context.Context) error, opts ...anteroom.AcquireOption) error {
	return r.rw.RDo(ctx, fn, opts...)
}
func (r reader) Lock()                           { r.rw.RLock() }
func (r reader) TryLock() bool                   { return r.rw.TryRLock() }
func (r reader) TryLockFor(d time.Duration) bool { return r.rw.TryRLockFor(d) }
func (r reader) Unlock()                         { r.rw.RUnlock() }

type permits struct {
	s *anteroom.Semaphore
	w *anteroom.Weighted
	n int64
	holding
}

func (p permits) Acquire(ctx context.Context, opts ...anteroom.AcquireOption) (*anteroom.Hold, error) {
	return p.s.Acquire(ctx, p.n, opts...)
}

func (p permits) TryAcquire(ctx context.Context, opts ...anteroom.AcquireOption) (*anteroom.Hold, error) {
	return p.s.TryAcquire(ctx, p.n, opts...)
}

func (p permits) Do(ctx context.Context, fn func(context.Context) error, opts ...anteroom.AcquireOption) error {
	return p.s.Do(ctx, p.n, fn, opts...)
}
func (p permits) TryLock() bool { return p.w.TryAcquire(p.n) }
func (p permits) Unlock()       { p.w.Release(p.n) }

func (p permits) Lock() {
	for p.w.Acquire(context.Background(), p.n) != nil { // Redis may refuse
		time.Sleep(10 * time.Millisecond)
	}
}

func (p permits) TryLockFor(d time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return p.w.Acquire(ctx, p.n) == nil
}
