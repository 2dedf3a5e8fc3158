package anteroom

import (
	"context"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/queue"
)

// Semaphore has a number of units, its capacity, that all processes which use the same key in the same Redis share. Who
// acquires some waits until they are free. Those who wait are served in the order in which they began to: many small wants
// never starve a large one. Who waits for more than there is beside what its own process has joins the line of the others when
// that has become enough.
//
// Make one with Manager.Semaphore or Manager.NewSemaphore; the zero Semaphore returns ErrConfig. It is cheap and holds no
// state. It must not be copied after first use. All methods are safe for concurrent use.
//
// Capacities may differ, between processes, as in a rolling deploy, and within one: the least of those who hold counts, for all. Who
// comes with a lesser one waits until all units that are held fit in it beside its own, and that counts until the last one with it
// has left. Meanwhile who wants more than it waits, and a try is ErrNotAcquired. Each process says by EventCapacity that another one
// counts with another.
type Semaphore struct{ common }

// Semaphore returns the semaphore of key with so many units and Config.Defaults. What NewSemaphore would refuse is reported
// by the methods of the semaphore.
func (m *Manager) Semaphore(key string, capacity int64) *Semaphore {
	s := new(Semaphore)
	_ = s.initSemaphore(m, key, LockConfig{}, capacity)
	return s
}

// NewSemaphore returns the semaphore that cfg describes, with so many units: from 1 to 1<<29. It returns an *Error that
// wraps ErrConfig for what NewRWMutex refuses, and for Fencing in cfg: those who share a Semaphore have no order.
func (m *Manager) NewSemaphore(cfg LockConfig, capacity int64) (*Semaphore, error) {
	s := new(Semaphore)
	if err := s.initSemaphore(m, cfg.Key, cfg, capacity); err != nil {
		return nil, newError("new semaphore", cfg.Key, err)
	}
	return s, nil
}

func (s *Semaphore) initSemaphore(m *Manager, key string, cfg LockConfig, capacity int64) error {
	if capacity < 1 || capacity > lettucecompat.MostUnits {
		err := configError("capacity", "is %d; it must be from 1 to %d", capacity, int64(lettucecompat.MostUnits))
		s.m, s.key, s.settings = m, key, &settings{refused: err}
		return err
	}
	return s.init(m, key, cfg, capacity)
}

// Capacity returns how many units the semaphore has, as it was made: while others hold that know of fewer, fewer are given.
// It is 0 where it was refused.
func (s *Semaphore) Capacity() int64 {
	if s.settings == nil {
		return 0
	}
	return s.capacity
}

// Acquire waits until it has n units, or ctx ends. n is from 1 to the capacity, or else ErrConfig is returned immediately.
// Options and other errors are as for Mutex.Acquire; Lease ends this Hold alone, and Note is ErrConfig. With a context that
// carries a Hold of this semaphore it takes n more, so that a Hold's units cannot be spent twice.
func (s *Semaphore) Acquire(ctx context.Context, n int64, opts ...AcquireOption) (*Hold, error) {
	return s.hold(ctx, "acquire", queue.Refusable, n, opts)
}

// TryAcquire is Acquire that does not wait: it returns ErrNotAcquired if n units are not free, or somebody waits, or
// did so within the last second. Units that another process no longer uses, and keeps for up to 10 ms, are not free: after a burst that
// is so until it has come and gone less often than that.
func (s *Semaphore) TryAcquire(ctx context.Context, n int64, opts ...AcquireOption) (*Hold, error) {
	return s.hold(ctx, "try acquire", queue.Try|queue.Refusable, n, opts)
}

// Do acquires n units, runs fn and releases them, as Mutex.Do does.
func (s *Semaphore) Do(ctx context.Context, n int64, fn func(ctx context.Context) error, opts ...AcquireOption) error {
	if err := s.unusable("do"); err != nil {
		return err
	}
	return s.do(ctx, "do", n, fn, opts)
}

func (s *Semaphore) hold(ctx context.Context, op string, kind queue.Kind, n int64, opts []AcquireOption) (*Hold, error) {
	if err := s.unusable(op); err != nil {
		return nil, err
	}
	return s.acquire(ctx, op, kind, n, nil, opts)
}

// unusable returns why s cannot be used; nil if it can.
func (s *Semaphore) unusable(op string) *Error {
	if s == nil {
		return notMade(op, "Semaphore")
	}
	return s.common.unusable(op, "Semaphore")
}

// Weighted is a Semaphore with the three methods of golang.org/x/sync/semaphore.Weighted, for existing code. Who acquires by
// them is not notified of a loss: nobody else of this process comes in before the lost units were released. All methods are
// safe for concurrent use.
type Weighted struct{ s *Semaphore }

// Weighted returns the semaphore with the methods of x/sync's.
func (s *Semaphore) Weighted() *Weighted { return &Weighted{s} }

// Acquire waits until it has n units, or ctx ends. On failure it returns an *Error and has none; the errors are those of
// Semaphore.Acquire. Unlike with x/sync's an n above the capacity is refused immediately, as ErrConfig. 0 is no unit: it
// asks and waits for nothing.
func (w *Weighted) Acquire(ctx context.Context, n int64) error {
	return w.enter(ctx, "acquire", queue.Refusable, n)
}

// TryAcquire takes n units if they are free and nobody waits, as Semaphore.TryAcquire finds it, and reports whether it did.
// Where it asks Redis it takes up to CommandTimeout; false also means that Redis did not answer, or that n is above the
// capacity. It panics for other mistakes in the program. 0 is no unit, and always there.
func (w *Weighted) TryAcquire(n int64) bool {
	err := w.enter(context.Background(), "try acquire", queue.Try|queue.Refusable, n)
	if s := w.of(); s != nil && s.Capacity() > 0 && n > s.capacity {
		return false // a mistake here, which x/sync's answers so
	}
	return succeeded(err)
}

func (w *Weighted) enter(ctx context.Context, op string, kind queue.Kind, n int64) error {
	s := w.of()
	if err := s.unusable(op); err != nil {
		return err
	}
	switch {
	case n != 0:
		return s.enterUnnamed(ctx, op, kind, n)
	case ctx.Err() != nil:
		return newError(op, s.key, notGranted(ctx, ctx.Err()))
	}
	return nil
}

// of returns the Semaphore, nil of a Weighted that none has made.
func (w *Weighted) of() *Semaphore {
	if w == nil {
		return nil
	}
	return w.s
}

// Release gives n units back. Any goroutine may release them. It panics with an *Error if fewer were acquired by Weighted.
// Where they go back to Redis immediately, it waits for the answer up to twice CommandTimeout. 0 is no unit and changes
// nothing.
func (w *Weighted) Release(n int64) {
	const op = "release"
	s := w.of()
	if err := s.unusable(op); err != nil {
		panic(err)
	}
	if n != 0 {
		s.leave(op, n)
	}
}
