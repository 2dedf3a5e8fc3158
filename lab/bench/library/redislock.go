package library

import (
	"context"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
)

// redislockFor chooses the back-off between attempts, for the same reasons as redsyncFor.
func redislockFor(kind Kind) Library {
	if kind == Long {
		return redislockWith(100 * time.Millisecond)
	}
	return redislockWith(5 * time.Millisecond)
}

// redislockWith is redislock with a linear back-off.
func redislockWith(backoff time.Duration) Library {
	return Library{
		Name: Redislock, Module: "github.com/bsm/redislock",
		Settings: "LinearBackoff(" + backoff.String() + "), TTL 30s, no watchdog; go-redis' defaults",
		Sends:    []string{"evalsha", "eval", "hello", "client|setinfo"},
		Open: func(addr string) (Client, error) {
			rdb := redis.NewClient(&redis.Options{Addr: addr})
			return &redislockClient{redislock.New(rdb), rdb, &redislock.Options{RetryStrategy: redislock.LinearBackoff(backoff)}}, nil
		},
	}
}

type redislockClient struct {
	locker *redislock.Client
	rdb    *redis.Client
	opts   *redislock.Options
}

func (c *redislockClient) Handle(key string) Handle { return &redislockHandle{c: c, key: key} }

func (c *redislockClient) Close() error { return c.rdb.Close() }

type redislockHandle struct {
	c    *redislockClient
	key  string
	lock *redislock.Lock
}

func (h *redislockHandle) Lock(ctx context.Context) (err error) {
	h.lock, err = h.c.locker.Obtain(ctx, h.key, peerLease, h.c.opts)
	return err
}

func (h *redislockHandle) Unlock() error { return h.lock.Release(context.Background()) }
