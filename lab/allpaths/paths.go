package allpaths

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	anteroom "github.com/anteroom/anteroom/sync"
)

// path causes something in the first process.
type path struct {
	name string
	// moves are the series that the path moves. It ends when they have moved.
	moves []moved
	do    func(ctx context.Context, s *scene) error
}

// scene is the environment of a path.
type scene struct {
	*process
	run *Run
	key string // used by this path only
	// before has the values of the path's series when it began.
	before map[string]float64
	ends   []func(time.Duration) // of the Managers created by the path
}

// endTime bounds the end of a path's own Manager. Nothing waits for what it still holds.
const endTime = 100 * time.Millisecond

// newManager returns a Manager of the process that lives as long as the path.
func (s *scene) newManager(rdb *redis.Client) *anteroom.Manager {
	m, end := s.run.newManager(s.process, rdb)
	s.ends = append(s.ends, end)
	return m
}

// TakeAll takes each path once and returns the failures. Paths that need only their own key run concurrently; then
// those that change the network of the process, one after the other, while Work goes on. It also fails if something
// was not counted by the end (I1).
func (r *Run) TakeAll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, takeTime)
	defer cancel()
	alone := slices.Concat(acquirePaths, linePaths, lossPaths, watchdogPaths)
	errs := make([]error, len(alone))
	var wg sync.WaitGroup
	for i, p := range alone {
		wg.Go(func() { errs[i] = r.take(ctx, p) })
	}
	wg.Wait()
	err := errors.Join(errs...)
	for _, p := range networkPaths {
		err = errors.Join(err, r.take(ctx, p))
		r.processes[0].net.Heal()
	}
	if err != nil {
		return err
	}
	return r.complete(ctx, moveTime)
}

// tries is how often a path is tried until its series have moved. On a machine that stalls for some seconds a command
// may exceed its limit, or another mechanism may act first, for example the renewal instead of the watchdog; then the
// path is tried again. takeTime bounds all paths together; some ten seconds are usual.
const (
	tries    = 10
	takeTime = 4 * time.Minute
)

// take takes one path.
func (r *Run) take(ctx context.Context, p path) error {
	var errs []error
	for range tries {
		err := r.try(ctx, p)
		if err == nil {
			return nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", p.name, err))
		r.processes[0].net.Heal()
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

// try takes a path once, with a key of its own.
func (r *Run) try(ctx context.Context, p path) error {
	victim := r.processes[0]
	s := &scene{process: victim, run: r, key: fmt.Sprintf("path:%d", r.serial.Add(1)), before: map[string]float64{}}
	for _, m := range p.moves {
		v, err := victim.value(m)
		if err != nil {
			return err
		}
		s.before[m.String()] = v
	}
	defer func() {
		for _, end := range s.ends {
			end(endTime)
		}
	}()
	if err := p.do(ctx, s); err != nil {
		return err
	}
	for _, m := range p.moves {
		if err := s.await(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// await waits until one of the path's series has moved since the path began.
func (s *scene) await(ctx context.Context, m moved) error {
	return s.above(ctx, m, s.before[m.String()])
}

// config is a lock of the class payments, at which the faults are aimed. It is renewed so rarely that the watchdog is
// the first to notice them.
func (s *scene) config() anteroom.LockConfig {
	return anteroom.LockConfig{
		Key: s.key, Name: "payments", LeaseTime: 10 * time.Second, RenewalTime: 3 * time.Second,
		WatchdogPeriod: watchdogPeriod, AlertThreshold: 1,
	}
}

// hold acquires the lock of cfg, and returns after its first renewal, which comes soon, however rare they are.
func (s *scene) hold(ctx context.Context, cfg anteroom.LockConfig, opts ...anteroom.AcquireOption) (*anteroom.Hold, error) {
	h, err := s.lock(cfg).Acquire(ctx, opts...)
	if err == nil {
		pause(ctx, 250*time.Millisecond)
	}
	return h, err
}

// other acquires the path's key in another process.
func (s *scene) other(ctx context.Context) (*anteroom.Hold, error) {
	return s.run.processes[1].lock(s.config()).Acquire(ctx)
}

// lost waits until h is lost, and releases it. The error of that Release is expected.
func lost(ctx context.Context, h *anteroom.Hold) error {
	ctx, cancel := context.WithTimeout(ctx, moveTime)
	defer cancel()
	select {
	case <-h.Context().Done():
		_ = h.Release(ctx)
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the hold was not lost: %w", ctx.Err())
	}
}
