package promise

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/testredis"
)

// Removal is how a key disappears under its holder.
type Removal uint8

const (
	// Deleted: DEL.
	Deleted Removal = iota
	// OtherType: overwritten by a key of another type, a list.
	OtherType
	// OtherHolder: overwritten as if another client held it.
	OtherHolder
	// Flushed: FLUSHALL.
	Flushed
	// Restarted: SIGKILL, and a server with empty memory on the same port.
	Restarted
)

// Removals are all of them.
func Removals() []Removal {
	return []Removal{Deleted, OtherType, OtherHolder, Flushed, Restarted}
}

// String names the removal as tables do.
func (k Removal) String() string {
	return [...]string{"DEL", "other type", "other holder", "FLUSHALL", "restart, empty"}[k]
}

// Removed takes n locks and removes their keys. The figure is told − removal. The promise is broken by an answer
// "held" to a question asked later than Library.Bound after the removal and after Redis was reachable again.
func Removed(lib Library, s *testredis.Server, n int, kind Removal) ([]Sample, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 4*lib.Lease+2*patience)
	defer cancel()
	r, err := begin(ctx, lib, s, n)
	if err != nil {
		return nil, err
	}
	defer r.end()
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr(), MaxRetries: -1})
	defer rdb.Close()
	clock := clock{time.Now()}
	w := watch(r.holds, len(lib.Questions), watchPause)
	removed, reachable, err := r.remove(ctx, rdb, kind)
	if err == nil {
		wait, cancel := context.WithTimeout(ctx, lib.Lease+patience)
		w.told(wait)
		cancel()
	}
	seen := w.finish()
	if err != nil {
		return nil, fmt.Errorf("%s: %v: %w", lib.Name, kind, err)
	}
	if err := clock.check(); err != nil {
		return nil, err
	}
	samples := make([]Sample, n)
	for i, see := range seen {
		samples[i] = sample(see, removed[i], removed[i])
		if lib.Bound > 0 {
			samples[i].judge(see.LastHeld > max(removed[i], reachable)+lib.Bound.Microseconds())
		}
	}
	return samples, flush(ctx, s)
}

// remove removes all keys. It returns the time of each removal, and since when the server was reachable again, if it
// was unreachable in between.
func (r *round) remove(ctx context.Context, rdb *redis.Client, kind Removal) (removed []int64, reachable int64, err error) {
	removed = make([]int64, len(r.keys))
	all := func(at int64) {
		for i := range removed {
			removed[i] = at
		}
	}
	switch kind {
	case Flushed:
		at, err := r.run(ctx, rdb, `redis.call('flushall')`, "")
		all(at)
		return removed, 0, err
	case Restarted:
		all(now())
		r.server.Restart()
		return removed, now(), nil
	}
	statement := map[Removal]string{
		Deleted:     `redis.call('del', KEYS[1])`,
		OtherType:   `redis.call('del', KEYS[1]) redis.call('rpush', KEYS[1], 'x') redis.call('pexpire', KEYS[1], 60000)`,
		OtherHolder: r.lib.Usurp,
	}[kind]
	// In another order than they were acquired, and over some time, so that each removal hits its hold at another
	// point of its rhythm.
	began, n := time.Now(), len(r.keys)
	for step, i := range rand.Perm(n) {
		if removed[i], err = r.run(ctx, rdb, statement, r.keys[i]); err != nil {
			return nil, 0, err
		}
		if err := sleep(ctx, time.Until(began.Add(spread(r.lib)*time.Duration(step+1)/time.Duration(n)))); err != nil {
			return nil, 0, err
		}
	}
	return removed, 0, nil
}

// run runs a statement and returns the time of Redis' clock at which it ran.
func (r *round) run(ctx context.Context, rdb *redis.Client, statement, key string) (int64, error) {
	t, err := rdb.Eval(ctx, `local t = redis.call('time') `+statement+` return t`, []string{key}).Slice()
	if err != nil {
		return 0, err
	}
	return micros(t)
}
