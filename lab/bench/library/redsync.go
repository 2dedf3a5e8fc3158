package library

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

// peerLease is the lease of peers that take one. It is Anteroom's default, and so long that no peer has to extend it
// during a measurement.
const peerLease = 30 * time.Second

// redsyncFor chooses the delay between attempts: with short turns 5 ms has the highest rate of those that let every
// goroutine have a turn. With long turns, short delays only keep Redis busy.
func redsyncFor(kind Kind) Library {
	if kind == Short {
		return redsyncWith(5 * time.Millisecond)
	}
	return redsyncWith(0)
}

// redsyncWith is redsync on one pool. It never gives up by count, only by context. A delay of 0 means the default, 50
// to 250 ms at random.
func redsyncWith(delay time.Duration) Library {
	settings := "one pool, WithTries(MaxInt), expiry 30s; the default retry delay of 50 to 250 ms; go-redis' defaults"
	opts := []redsync.Option{redsync.WithTries(math.MaxInt), redsync.WithExpiry(peerLease)}
	if delay > 0 {
		settings = "one pool, WithTries(MaxInt), expiry 30s; WithRetryDelay(" + delay.String() + "); go-redis' defaults"
		opts = append(opts, redsync.WithRetryDelay(delay))
	}
	return Library{
		Name: Redsync, Module: "github.com/go-redsync/redsync/v4", Settings: settings,
		Sends: []string{"set", "evalsha", "eval", "hello", "client|setinfo"},
		Open: func(addr string) (Client, error) {
			rdb := redis.NewClient(&redis.Options{Addr: addr})
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
