package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	anteroom "github.com/anteroom/anteroom/sync"
)

// kindFlags say which kind of lock exec and lock take. Without any it is a Mutex.
type kindFlags struct {
	shared, exclusive bool  // an RWMutex, to read or to write
	units, of         int64 // a Semaphore, if of is not 0
}

func (k *kindFlags) addTo(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.BoolVarP(&k.shared, "shared", "s", false, "read an RWMutex, beside others that read")
	fs.BoolVarP(&k.exclusive, "exclusive", "x", false, "write an RWMutex, alone")
	fs.Int64Var(&k.of, "of", 0, "take units of a Semaphore, which has `N` of them")
	fs.Int64Var(&k.units, "units", 1, "how many of the units")
	cmd.MarkFlagsMutuallyExclusive("shared", "exclusive", "of")
}

// mutex reports whether the lock is a Mutex.
func (k *kindFlags) mutex() bool { return !k.shared && !k.exclusive && k.of == 0 }

// misfit returns a usage error for a flag that makes no sense with this kind of lock.
func (f *execFlags) misfit(cmd *cobra.Command) error {
	given := cmd.Flags().Changed
	switch {
	case given("of") && (f.of < 1 || f.of > lettucecompat.MostUnits):
		return usageError("--of is %d; it must be from 1 to %d", f.of, int64(lettucecompat.MostUnits))
	case given("units") && f.of == 0:
		return usageError("--units is for a Semaphore; --of says how many units that has")
	case f.of > 0 && (f.units < 1 || f.units > f.of):
		return usageError("--units is %d; it must be from 1 to %d (--of)", f.units, f.of)
	case f.mutex():
		return nil
	case f.seize:
		return usageError("--seize is for a Mutex, which has one holder to take it from")
	case given("note"):
		return usageError("--note is for a Mutex; Redis has no place for a note of the others")
	case f.atLeast != 0:
		return usageError("--at-least is for a Mutex; the units of the others are free once they are given back")
	case f.of > 0 && f.fencing:
		return usageError("--fencing: those who share a Semaphore have no order, and so no tokens")
	}
	written, err := dialect(cmd)
	if err == nil && written != lettucecompat.DesignDocument {
		err = usageError("--dialect %v has Mutexes only", written)
	}
	return err
}

// entry is the way in to a lock: try does not wait.
type entry struct {
	try, wait func(ctx context.Context) (*anteroom.Hold, error)
}

// entryTo returns that to the lock that cfg and the flags describe.
func (f *execFlags) entryTo(m *anteroom.Manager, cfg anteroom.LockConfig) (entry, error) {
	type enter = func(context.Context, ...anteroom.AcquireOption) (*anteroom.Hold, error)
	with := func(try, wait enter, opts ...anteroom.AcquireOption) entry {
		return entry{
			func(ctx context.Context) (*anteroom.Hold, error) { return try(ctx, opts...) },
			func(ctx context.Context) (*anteroom.Hold, error) { return wait(ctx, opts...) },
		}
	}
	if f.of > 0 {
		s, err := m.NewSemaphore(cfg, f.of)
		return entry{
			func(ctx context.Context) (*anteroom.Hold, error) { return s.TryAcquire(ctx, f.units) },
			func(ctx context.Context) (*anteroom.Hold, error) { return s.Acquire(ctx, f.units) },
		}, err
	}
	if !f.mutex() {
		rw, err := m.NewRWMutex(cfg)
		if f.shared {
			return with(rw.TryRAcquire, rw.RAcquire), err
		}
		return with(rw.TryAcquire, rw.Acquire), err
	}
	mu, err := m.NewMutex(cfg)
	if f.seize {
		return with(mu.TryAcquire, mu.Seize, anteroom.Note(f.note)), err
	}
	return with(mu.TryAcquire, mu.Acquire, anteroom.Note(f.note)), err
}

// callLease is what Redis gives new units, until their first renewal makes their lease whole, a tenth of a second later.
const callLease = 2 * time.Second

// whole waits for the whole lease, from which the supervisor counts and which leaves the command a margin in which to end.
// The hold of a Mutex has it with its note. It reports false if the lock is lost before.
func (x *execution) whole(ctx context.Context, hold *anteroom.Hold) bool {
	if x.flags.mutex() || x.flags.lease <= callLease {
		return true
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for hold.Err() == nil && ctx.Err() != context.Canceled { //nolint:errorlint // as ctx gives it
		// New units have less, counted from before they were asked for.
		if hold.Deadline().Sub(hold.Since()) > callLease-callLease/10 {
			return true
		}
		<-tick.C
	}
	return hold.Err() == nil
}
