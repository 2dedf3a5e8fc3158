package fence

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Evaler is a client of go-redis: of one server, Sentinel, a Cluster or a Ring. Not a pipeline, whose answers come later.
type Evaler interface {
	Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd
}

// Redis sets keys that refuse stale tokens. Safe for concurrent use.
//
// The greatest token is kept in a key of its own, anteroom:seen:{KEY}, or anteroom:seen:tag:KEY for a KEY with a brace,
// which on a Cluster must have a hash tag. Both keys are in one slot. The lock is there, too, if it has the same hash
// tag: {order:42} locks {order:42}:state. An ACL needs +eval +get +set +type, and both keys.
//
// A restart or a failover that loses the newest writes loses value and token together. Eviction may remove the token
// alone: as for locks, maxmemory-policy must be noeviction.
type Redis struct {
	Client Evaler

	// RecordTime is how long the greatest token stays after its value has expired. It must be longer than a process that
	// has lost its lock may stop and then write. From 1 s. Defaults to 7 days.
	RecordTime time.Duration
}

// set gets the keys of value and token; the value, the token, and the ms that each will live. It compares tokens as text,
// because Lua's numbers are exact only up to 2^53.
const set = `
local kind, seen = redis.call('type', KEYS[1]).ok, redis.call('get', KEYS[2])
if kind ~= 'string' and kind ~= 'none' then return redis.error_reply('WRONGTYPE the key has a ' .. kind) end
if seen and (#seen > #ARGV[2] or #seen == #ARGV[2] and seen > ARGV[2]) then return seen end
if ARGV[3] == '0' then
  redis.call('set', KEYS[2], ARGV[2])
  redis.call('set', KEYS[1], ARGV[1])
else
  redis.call('set', KEYS[2], ARGV[2], 'px', ARGV[4])
  redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[3])
end
return 'OK'`

// Set sets key to value for ttl, as SET does, if it has seen no greater token, and makes this one the greatest. Otherwise
// it returns an error that wraps ErrStale and names the greater token. With a ttl of 0 value and token stay until they
// are deleted; delete the token only once no older holder can be running. To delete a value under its guard, set it for
// a millisecond.
//
// A token below 1 and a ttl below a millisecond are refused, and so is, with WRONGTYPE, a key that has no string: the
// lock's own, for example. After any other error the value may have been set. go-redis repeats a command whose answer
// was lost; so ErrStale can also mean that the value was set, and then replaced by a newer holder.
//
// It sends the script each time, about 600 bytes.
func (g Redis) Set(ctx context.Context, key string, value any, ttl time.Duration, token int64) error {
	if err := valid(key, token); err != nil {
		return err
	}
	record := cmp.Or(g.RecordTime, 7*24*time.Hour)
	if ttl != 0 && ttl < time.Millisecond || record < time.Second {
		return fmt.Errorf("fence: %q: ttl %v must be 0 or at least 1ms, RecordTime %v at least 1s", key, ttl, record)
	}
	answer, err := g.Client.Eval(ctx, set, []string{key, seenKey(key)},
		value, token, ttl.Milliseconds(), (ttl + record).Milliseconds()).Text()
	switch {
	case err != nil:
		return fmt.Errorf("fence: %q: %w", key, err)
	case answer != "OK":
		return stale(key, token, answer)
	}
	return nil
}

// seenKey returns where the greatest token of a key is.
func seenKey(key string) string {
	if strings.ContainsAny(key, "{}") {
		return "anteroom:seen:tag:" + key
	}
	return "anteroom:seen:{" + key + "}"
}
