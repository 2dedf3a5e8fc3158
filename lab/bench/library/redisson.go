package library

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// The shared locks of Redisson 3 and 4, by its scripts without what a retry of a command needs, and with its way to
// wait: a message lets one waiter of each process try again, or all of them, and nobody stands in line. What costs
// Redisson more is left out: a subscription stays, and nothing is renewed.

var (
	readLock = redis.NewScript(`
local mode = redis.call('hget', KEYS[1], 'mode')
if mode == false then
  redis.call('hset', KEYS[1], 'mode', 'read', ARGV[2], 1)
  redis.call('set', KEYS[2] .. ':1', 1, 'px', ARGV[1])
  redis.call('pexpire', KEYS[1], ARGV[1])
  return nil
end
if mode == 'read' or redis.call('hexists', KEYS[1], ARGV[2] .. ':write') == 1 then
  local n = redis.call('hincrby', KEYS[1], ARGV[2], 1)
  redis.call('set', KEYS[2] .. ':' .. n, 1, 'px', ARGV[1])
  redis.call('pexpire', KEYS[1], math.max(redis.call('pttl', KEYS[1]), ARGV[1]))
  return nil
end
return redis.call('pttl', KEYS[1])`)
	readUnlock = redis.NewScript(`
if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then return nil end
local n = redis.call('hincrby', KEYS[1], ARGV[2], -1)
if n == 0 then redis.call('hdel', KEYS[1], ARGV[2]) end
redis.call('del', KEYS[2] .. ':' .. (n + 1))
if redis.call('hlen', KEYS[1]) > 1 then
  local longest = -3
  for _, field in ipairs(redis.call('hkeys', KEYS[1])) do
    for i = tonumber(redis.call('hget', KEYS[1], field)) or 0, 1, -1 do
      longest = math.max(longest, redis.call('pttl', KEYS[3] .. ':' .. field .. ':rwlock_timeout:' .. i))
    end
  end
  if longest > 0 then redis.call('pexpire', KEYS[1], longest) return 0 end
end
redis.call('del', KEYS[1])
redis.call('publish', ARGV[1], 0)
return 1`)
	writeLock = redis.NewScript(`
if redis.call('exists', KEYS[1]) == 0 then
  redis.call('hset', KEYS[1], 'mode', 'write', ARGV[2] .. ':write', 1)
  redis.call('pexpire', KEYS[1], ARGV[1])
  return nil
end
return redis.call('pttl', KEYS[1])`)
	writeUnlock = redis.NewScript(`
if redis.call('hdel', KEYS[1], ARGV[2] .. ':write') == 0 then return nil end
redis.call('del', KEYS[1])
redis.call('publish', ARGV[1], 1)
return 1`)
	permitAcquire = redis.NewScript(`
local over = redis.call('zrangebyscore', KEYS[2], 0, ARGV[2], 'limit', 0, 1)
if #over > 0 then
  redis.call('zrem', KEYS[2], over[1])
  redis.call('publish', ARGV[1], redis.call('incr', KEYS[1]))
end
redis.call('set', KEYS[1], ARGV[5], 'nx')
if tonumber(redis.call('get', KEYS[1])) >= 1 then
  redis.call('decr', KEYS[1])
  redis.call('zadd', KEYS[2], ARGV[3], ARGV[4])
  return nil
end
return redis.call('zrange', KEYS[2], 0, 0, 'withscores')[2] - ARGV[2]`)
	permitRelease = redis.NewScript(`
if redis.call('zrem', KEYS[2], ARGV[2]) == 0 then return nil end
redis.call('publish', ARGV[1], redis.call('incr', KEYS[1]))
return 1`)
)

// redissonFor is the way of Redisson's RReadWriteLock, or of its RPermitExpirableSemaphore of Permits.
func redissonFor(name string) Library {
	return Library{
		Name: name, Module: "github.com/redis/go-redis/v9",
		Settings: "Redisson's scripts and its way to wait, by go-redis with its defaults; lease 30s, no watchdog",
		Sends:    []string{"evalsha", "eval", "subscribe", "hello", "client|setinfo"},
		Open: func(addr string) (Client, error) {
			return &redissonClient{rdb: defaults.client(addr), id: fmt.Sprint(rand.Uint64()), permits: name == RedissonPermits, rooms: map[string]*redissonRoom{}}, nil
		},
	}
}

type redissonClient struct {
	rdb     *redis.Client
	id      string
	permits bool
	handles atomic.Int64

	mu    sync.Mutex
	rooms map[string]*redissonRoom
}

// redissonRoom is where the goroutines of one process wait for messages about one key.
type redissonRoom struct {
	waiting atomic.Int64
	again   chan struct{} // a waiter may try again
	sub     *redis.PubSub
	done    chan struct{}
}

func (c *redissonClient) Handle(key string) Handle {
	return &redissonHandle{c: c, key: key, holder: fmt.Sprintf("%s:%d", c.id, c.handles.Add(1))}
}

func (c *redissonClient) Close() (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.rooms {
		err = errors.Join(err, r.sub.Close())
		<-r.done
	}
	return errors.Join(err, c.rdb.Close())
}

// room returns that of a key, once it is subscribed to.
func (c *redissonClient) room(ctx context.Context, key string) (*redissonRoom, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.rooms[key]; r != nil {
		return r, nil
	}
	r := &redissonRoom{again: make(chan struct{}, 1<<10), sub: c.rdb.Subscribe(ctx, "redisson:"+key), done: make(chan struct{})}
	if _, err := r.sub.Receive(ctx); err != nil {
		return nil, errors.Join(err, r.sub.Close())
	}
	c.rooms[key] = r
	go func() {
		defer close(r.done)
		for m := range r.sub.Channel() {
			n := int64(1)
			if c.permits || m.Payload == "1" { // so many are free, or readers can come in together
				n = r.waiting.Load()
			}
			for ; n > 0; n-- {
				select {
				case r.again <- struct{}{}:
				default:
				}
			}
		}
	}()
	return r, nil
}

type redissonHandle struct {
	c           *redissonClient
	key, holder string
	entries     uint64
}

func (h *redissonHandle) keys() []string {
	return []string{h.key, "{" + h.key + "}:" + h.holder + ":rwlock_timeout", "{" + h.key + "}"}
}

// acquire runs the script until it answers nil. An integer is after how long it is worth to try again without a message.
func (h *redissonHandle) acquire(ctx context.Context, attempt func() *redis.Cmd) error {
	if err := attempt().Err(); err != nil {
		return unlessNil(err)
	}
	r, err := h.c.room(ctx, h.key)
	if err != nil {
		return err
	}
	r.waiting.Add(1)
	defer r.waiting.Add(-1)
	for {
		wait, err := attempt().Int64()
		if err != nil {
			return unlessNil(err)
		}
		select {
		case <-r.again:
		case <-time.After(time.Duration(max(wait, 0)) * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func unlessNil(err error) error {
	if errors.Is(err, redis.Nil) {
		return nil
	}
	return err
}

func (h *redissonHandle) Lock(ctx context.Context) error {
	return h.acquire(ctx, func() *redis.Cmd {
		if !h.c.permits {
			return writeLock.Run(ctx, h.c.rdb, h.keys(), peerLease.Milliseconds(), h.holder)
		}
		h.entries++
		now := time.Now()
		return permitAcquire.Run(ctx, h.c.rdb, []string{h.key, "{" + h.key + "}:timeout"}, "redisson:"+h.key,
			now.UnixMilli(), now.Add(peerLease).UnixMilli(), fmt.Sprint(h.holder, ":", h.entries), Permits)
	})
}

func (h *redissonHandle) Unlock() error {
	ctx := context.Background()
	if h.c.permits {
		return permitRelease.Run(ctx, h.c.rdb, []string{h.key, "{" + h.key + "}:timeout"}, "redisson:"+h.key, fmt.Sprint(h.holder, ":", h.entries)).Err()
	}
	return writeUnlock.Run(ctx, h.c.rdb, h.keys(), "redisson:"+h.key, h.holder).Err()
}

func (h *redissonHandle) RLock(ctx context.Context) error {
	return h.acquire(ctx, func() *redis.Cmd {
		return readLock.Run(ctx, h.c.rdb, h.keys(), peerLease.Milliseconds(), h.holder)
	})
}

func (h *redissonHandle) RUnlock() error {
	return readUnlock.Run(context.Background(), h.c.rdb, h.keys(), "redisson:"+h.key, h.holder).Err()
}
