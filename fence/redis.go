package fence

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Evaler is a client of go-redis: of one server, Sentinel, a Cluster or a Ring. A pipeline is none, since its answers come
// later.
type Evaler interface {
	Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd
}

// Redis sets keys that refuse stale tokens. Safe for concurrent use.
//
// The greatest token is kept in a key of its own: anteroom:seen:{KEY}, and for a KEY with a brace, which on a Cluster must
// have a hash tag, anteroom:seen:tag:KEY. Both lie in one slot; so does the lock if they share its hash tag, as {order:42} and
// {order:42}:state do. The user needs +eval +get +set +type, and rights on both keys.
//
// A server that loses the newest writes in a restart or a failover loses value and token together. One that evicts may
// lose the token alone: as for locks, maxmemory-policy must be noeviction.
type Redis struct {
	Client Evaler

	// RecordTime is how long the greatest token stays after its value has expired. It must be longer than a process that
	// has lost its lock may stop and then write. From 1 s. Defaults to 7 days.
	RecordTime time.Duration
}

// set has the keys of value and token, and gets the value, the token, and what is left to each in ms. Tokens are compared as text, because
// Lua's numbers are exact up to 2^53 only.
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

// Set sets key to value, a string for ttl, as SET does, if no greater token was seen, and makes this one the greatest. It
// returns an error that wraps ErrStale, and names the greater token, if there is one. With a ttl of 0 value and token stay
// until they are deleted: token first, and when no old holder can be running. To delete a value under its guard, set it for
// a millisecond.
//
// A key of another type is left as it is, with Redis's WRONGTYPE, so that the lock's own key cannot be overwritten. So are, with an
// error, a token below 1, and a ttl below a millisecond. After any other error Redis may or may not have set the
// value; go-redis repeats a command whose answer was lost, which may get ErrStale though the first had set the value,
// before the newer holder did.
//
// The text of the script is sent each time, about 600 bytes: no digest of it is computed here.
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
