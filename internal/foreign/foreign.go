// Package foreign is, for tests, a client that knows only the design document: its scripts (docs/internals/decisions.md
// §7 and §13) word for word, over plain commands.
package foreign

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// The document's scripts. KEYS[1] is the lock, ARGV[1] the lease in milliseconds, ARGV[2] the holder; each returns 1
// or 0.
const (
	Lock = `if redis.call('exists', KEYS[1]) == 0 then
    redis.call('hset', KEYS[1], ARGV[2], 1)
    redis.call('pexpire', KEYS[1], ARGV[1])
    return 1
else
    if redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
        redis.call('hincrby', KEYS[1], ARGV[2], 1)
        redis.call('pexpire', KEYS[1], ARGV[1])
        return 1
    else
        return 0
    end
end`
	Unlock = `if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then
    return 0
else
    local counter = redis.call('hincrby', KEYS[1], ARGV[2], -1)
    if counter > 0 then
        redis.call('pexpire', KEYS[1], ARGV[1])
        return 1
    else
        redis.call('del', KEYS[1])
        return 1
    end
end`
	Renew = `if redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
    redis.call('pexpire', KEYS[1], ARGV[1])
    return 1
else
    return 0
end`
	Check = `if redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
    return 1
else
    return 0
end`
)

// Client runs the scripts as Holder.
type Client struct {
	RDB    *redis.Client
	Holder string
}

// Run runs a script and reports whether it returned 1.
func (c Client) Run(ctx context.Context, script, key string, lease time.Duration) (bool, error) {
	n, err := c.RDB.Eval(ctx, script, []string{key}, lease.Milliseconds(), c.Holder).Int()
	return n == 1, err
}

// Publish announces the release of the lock, in the document's format.
func (c Client) Publish(ctx context.Context, key string) error {
	message := fmt.Sprintf(`{"lockKey": %q, "releaseTime": %d, "holder": %q}`, key, time.Now().UnixMilli(), c.Holder)
	return c.RDB.Publish(ctx, "lock:release:"+key, message).Err()
}
