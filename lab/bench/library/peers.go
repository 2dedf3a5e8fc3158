package library

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// peerLease is the lease of peers that take one. It is Anteroom's default, and so long that no peer has to extend it
// during a measurement.
const peerLease = 30 * time.Second

// redsyncFor is redsync on one pool. It never gives up by count, only by context. With short turns a delay of 5 ms has
// the highest rate of those that let every goroutine have a turn; with long turns, short delays only keep Redis busy,
// so it has its default of 50 to 250 ms.
func redsyncFor(kind Kind) Library {
	settings := "one pool, WithTries(MaxInt), expiry 30s; the default retry delay of 50 to 250 ms; go-redis' defaults"
	opts := []redsync.Option{redsync.WithTries(math.MaxInt), redsync.WithExpiry(peerLease)}
	if kind == Short {
		settings = "one pool, WithTries(MaxInt), expiry 30s; WithRetryDelay(5ms); go-redis' defaults"
		opts = append(opts, redsync.WithRetryDelay(5*time.Millisecond))
	}
	return Library{
		Name: Redsync, Module: "github.com/go-redsync/redsync/v4", Settings: settings,
		Sends: []string{"set", "evalsha", "eval", "hello", "client|setinfo"},
		Open: func(addr string) (Client, error) {
			rdb := defaults.client(addr)
			return redsyncClient{redsync.New(goredis.NewPool(rdb)), rdb, opts}, nil
		},
	}
}

type redsyncClient struct {
	rs   *redsync.Redsync
	rdb  *redis.Client
	opts []redsync.Option
}

func (c redsyncClient) Handle(key string) Handle { return redsyncHandle{c.rs.NewMutex(key, c.opts...)} }

func (c redsyncClient) Close() error { return c.rdb.Close() }

type redsyncHandle struct{ mu *redsync.Mutex }

func (h redsyncHandle) Lock(ctx context.Context) error { return h.mu.LockContext(ctx) }

var errNotUnlocked = errors.New("not unlocked")

func (h redsyncHandle) Unlock() error {
	ok, err := h.mu.Unlock()
	if err == nil && !ok {
		err = errNotUnlocked
	}
	return err
}

// redislockFor is redislock with a linear back-off, chosen for the same reasons as redsync's delay.
func redislockFor(kind Kind) Library {
	backoff := 5 * time.Millisecond
	if kind == Long {
		backoff = 100 * time.Millisecond
	}
	return Library{
		Name: Redislock, Module: "github.com/bsm/redislock",
		Settings: "LinearBackoff(" + backoff.String() + "), TTL 30s, no watchdog; go-redis' defaults",
		Sends:    []string{"evalsha", "eval", "hello", "client|setinfo"},
		Open: func(addr string) (Client, error) {
			rdb := defaults.client(addr)
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

// rueidislockFor is rueidislock as in its README for one Redis, with the same lease as the others. TryNextAfter bounds
// each command; with the default of 20 ms an attempt that takes longer is given up, and with NoLoopTracking its
// waiters are then not notified. If turns are short it omits NoLoopTracking, which saves a command, but is no faster
// there, and some goroutines then have no turn for a long time.
func rueidislockFor(kind Kind) Library {
	settings := "KeyMajority 1, NoLoopTracking, KeyValidity 30s, TryNextAfter 2s"
	if kind == Short {
		settings = "KeyMajority 1, KeyValidity 30s, TryNextAfter 2s"
	}
	return Library{
		Name: Rueidislock, Module: "github.com/redis/rueidis", Settings: settings,
		Sends: []string{"evalsha", "eval", "hello", "client|tracking", "client|setinfo", "ping"},
		Open: func(addr string) (Client, error) {
			locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
				ClientOption: rueidis.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true},
				KeyMajority:  1, NoLoopTracking: kind != Short, KeyValidity: peerLease, TryNextAfter: 2 * time.Second,
			})
			return rueidislockClient{locker}, err
		},
	}
}

type rueidislockClient struct{ locker rueidislock.Locker }

func (c rueidislockClient) Handle(key string) Handle {
	return &rueidislockHandle{locker: c.locker, key: key}
}

func (c rueidislockClient) Close() error { c.locker.Close(); return nil }

type rueidislockHandle struct {
	locker  rueidislock.Locker
	key     string
	held    context.Context
	release context.CancelFunc
}

func (h *rueidislockHandle) Lock(ctx context.Context) (err error) {
	h.held, h.release, err = h.locker.WithContext(ctx, h.key)
	return err
}

func (h *rueidislockHandle) Held() (string, context.Context) { return "rueidislock:0:" + h.key, h.held }

func (h *rueidislockHandle) Unlock() error { h.release(); return nil }
