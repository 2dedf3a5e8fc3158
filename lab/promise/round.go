package promise

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/faultnet"
	"github.com/anteroom/anteroom/internal/testredis"
)

// Sample is the result of one hold.
type Sample struct {
	ByContext bool          // notified by its context; otherwise by the answer to a question
	Early     bool          // answered "lost" before anything was done to it; nothing else is set then
	Told      bool          // answered "lost" while it was watched
	Figure    time.Duration // told − grant, told − removal, or told − SIGCONT; set if Told
	Judged    bool          // something was promised about it
	Broken    bool          // that promise was broken, whatever the delay of the measurement
	Revived   bool          // said "held" after it had said "lost"
}

// patience is how long to wait, beyond the lease, until every hold was notified. What was not notified by then counts
// as never notified.
const patience = 15 * time.Second

// watchPause is between two passes over all holds of this process.
const watchPause = 200 * time.Microsecond

// round is one client with many holds on one server, and what is done to them.
type round struct {
	lib    Library
	server *testredis.Server
	names  []string
	keys   []string
	net    *faultnet.Network
	client Client
	holds  []Hold
}

// begin creates a client and acquires n locks, one after another over the time of one lease, so that their renewals
// are due at different times. Up to another lease passes after the last ones, so that the next step finds them
// anywhere in their rhythm.
func begin(ctx context.Context, lib Library, s *testredis.Server, n int) (*round, error) {
	r := &round{lib: lib, server: s, net: faultnet.New(nil)}
	r.name(n)
	var err error
	if r.client, err = lib.Connect(s.Addr(), r.net.Dial); err != nil {
		return nil, fmt.Errorf("%s: connect: %w", lib.Name, err)
	}
	if r.holds, err = acquire(ctx, lib, r.client, r.names); err != nil {
		r.end()
		return nil, err
	}
	return r, nil
}

// name names the locks of the round.
func (r *round) name(n int) {
	prefix := fmt.Sprintf("promise:%d", rand.Uint32())
	for i := range n {
		r.names = append(r.names, fmt.Sprintf("%s:%d", prefix, i))
		r.keys = append(r.keys, r.lib.Key(r.names[i]))
	}
}

// acquire takes one lock of each name, over spread(lib) in total.
func acquire(ctx context.Context, lib Library, c Client, names []string) (holds []Hold, err error) {
	defer func() {
		if err != nil {
			releaseAll(holds)
			holds, err = nil, fmt.Errorf("%s: acquire: %w", lib.Name, err)
		}
	}()
	step := spread(lib) / time.Duration(len(names))
	for began := time.Now(); len(holds) < len(names); {
		h, err := c.Acquire(ctx, names[len(holds)])
		if err != nil {
			return holds, err
		}
		holds = append(holds, h)
		if err := sleep(ctx, time.Until(began.Add(step*time.Duration(len(holds))))); err != nil {
			return holds, err
		}
	}
	return holds, sleep(ctx, rand.N(spread(lib)))
}

func releaseAll(holds []Hold) {
	var wg sync.WaitGroup
	for _, h := range holds {
		wg.Go(h.Release)
	}
	wg.Wait()
}

// spread is the time over which locks are acquired and removed: a lease, but no more than needed to hit every point
// between two renewals or two checks.
func spread(lib Library) time.Duration { return min(lib.Lease, time.Second) }

// end heals the network and releases the held locks.
func (r *round) end() {
	r.net.Heal()
	releaseAll(r.holds)
	r.client.Close()
}

// flush empties the server for the next round.
func flush(ctx context.Context, s *testredis.Server) error {
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr()})
	defer rdb.Close()
	return rdb.FlushAll(ctx).Err()
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(max(d, 0))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// clock detects that the wall clock was set, which would spoil every figure.
type clock struct{ began time.Time }

// maxSlew is how far a slewed clock may deviate from the monotonic one in a round.
const maxSlew = 20 * time.Millisecond

func (c clock) check() error {
	end := time.Now()
	if jump := end.Round(0).Sub(c.began.Round(0)) - end.Sub(c.began); jump.Abs() > maxSlew {
		return fmt.Errorf("the wall clock was set by %v while it was measured with", jump)
	}
	return nil
}

// figure is the time between two times of the wall clock.
func figure(from, to int64) time.Duration { return time.Duration(to-from) * time.Microsecond }
