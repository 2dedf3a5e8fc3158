package main

import (
	"context"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/faultnet"
	"github.com/anteroom/anteroom/lab/promise"
)

// redislockREADME is bsm/redislock with the watchdog that its README recommends, word for word: a ticker at a third
// of the lease, and the work's context is cancelled when Refresh fails. The client is go-redis with its defaults,
// except for a connection for every hold, so that no hold waits for another's connection.
func redislockREADME(lease time.Duration) promise.Library {
	return ofRedislock("redislock 0.10.0, README", "its README's ticker: Refresh every third of the lease of "+lease.String()+
		", the context is cancelled when it fails; go-redis' defaults", lease, redis.Options{}, 0)
}

// redislockCareful is the same with everything that a user can tighten: a Refresh has a third of the lease, go-redis
// heeds that and does not retry. So the context ends at the latest two thirds of the lease after the last success, at
// the price of a lock that does not survive any interruption of a third of its lease.
func redislockCareful(lease time.Duration) promise.Library {
	return ofRedislock("redislock 0.10.0, tightened", "as before, but Refresh with a time limit of a third of the lease, go-redis with ContextTimeoutEnabled and without retries",
		lease, redis.Options{ContextTimeoutEnabled: true, MaxRetries: -1}, lease/3)
}

func ofRedislock(name, settings string, lease time.Duration, opts redis.Options, limit time.Duration) promise.Library {
	return promise.Library{
		Name: name, Settings: settings, Lease: lease,
		Key:       func(name string) string { return name },
		Usurp:     `redis.call('set', KEYS[1], 'usurper', 'PX', 60000)`,
		Questions: []string{"workCtx.Err"},
		Connect: func(addr string, dial faultnet.DialFunc) (promise.Client, error) {
			o := opts
			o.Addr, o.Dialer, o.PoolSize = addr, dial, 1024
			rdb := redis.NewClient(&o)
			return &ticking{redislock.New(rdb), rdb, lease, limit}, nil
		},
	}
}

type ticking struct {
	locker *redislock.Client
	rdb    *redis.Client
	lease  time.Duration
	limit  time.Duration // of one Refresh; 0: none of ours
}

func (c *ticking) Acquire(ctx context.Context, name string) (promise.Hold, error) {
	lock, err := c.locker.Obtain(ctx, name, c.lease, nil)
	if err != nil {
		return nil, err
	}
	work, cancel := context.WithCancel(context.Background())
	h := &ticked{lock: lock, contextHold: contextHold{work}, cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(h.ended)
		ticker := time.NewTicker(c.lease / 3)
		defer ticker.Stop()
		for {
			select {
			case <-work.Done():
				return
			case <-ticker.C:
				if err := c.refresh(work, lock); err != nil {
					cancel()
					return
				}
			}
		}
	}()
	return h, nil
}

func (c *ticking) refresh(ctx context.Context, lock *redislock.Lock) error {
	if c.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.limit)
		defer cancel()
	}
	return lock.Refresh(ctx, c.lease, nil)
}

func (c *ticking) Close() { _ = c.rdb.Close() }

type ticked struct {
	contextHold
	lock   *redislock.Lock
	cancel context.CancelFunc
	ended  chan struct{}
}

func (h *ticked) Release() {
	h.cancel()
	<-h.ended
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = h.lock.Release(ctx)
}

// contextHold is notified by a context, and checked by asking that context.
type contextHold struct{ ctx context.Context }

func (h contextHold) Done() <-chan struct{} { return h.ctx.Done() }

func (h contextHold) Held(int) bool { return h.ctx.Err() == nil }
