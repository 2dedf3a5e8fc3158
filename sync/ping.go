package anteroom

import (
	"context"
	"fmt"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// pingKey is the key that Ping tries where it is given none.
const pingKey = "anteroom:ping"

// pingPatience is how long Ping and Open wait for an answer at least: a first connection
// may need a name, a Sentinel and TLS before it.
const pingPatience = 5 * time.Second

// patience is the time limit of a question that nobody waits for a lock behind.
func (m *Manager) patience() time.Duration {
	return max(pingPatience, m.defaults.lock.Timeout)
}

// Ping asks Redis whether locks of these keys could be acquired, renewed and released: it
// makes the calls of an acquire and a release in one script, which leaves nothing behind
// and disturbs nobody. Call it when a program starts, and in its readiness check. Nil means
// that an Acquire would get an answer, now: address, password, permissions and scripts are
// right, and the server takes writes. It does not say whether a key is free.
//
// Where an ACL restricts the keys, give one key for each pattern, for example "order:0"
// for order:*. Without keys it tries "anteroom:ping", which is as good as any where the
// user may use all keys, and on a Cluster speaks for one shard. It asks for what
// Config.Defaults needs; Fencing and Replicas need more. The rights to a
// key that is held at the moment can be asked for on Redis 7.0 and newer only, and whether
// the server's memory is full is not asked for it.
//
// It returns an *Error for the first key that is refused: ErrConfig for what a person has
// to change, in Redis or in the program, with the remedy; ErrUnavailable where Redis does
// not answer within ctx (and at most 5 seconds or CommandTimeout, if that is longer, for
// each key) or cannot serve at the moment; ErrClosed after Close.
func (m *Manager) Ping(ctx context.Context, keys ...string) error {
	const op = "ping"
	given := len(keys) > 0
	if !given {
		keys = []string{pingKey}
	}
	for _, key := range keys {
		if err := m.validKey(key); err != nil {
			return newError(op, key, err)
		}
	}
	cfg := &m.defaults.cfg
	for _, key := range keys {
		if m.closing.Load() {
			return newError(op, key, ErrClosed)
		}
		err := m.wire.Rehearse(ctx, lettucecompat.RehearseRequest{
			Key: key, Fenced: cfg.Fencing, Replicas: cfg.Replicas > 0, Strings: m.stringHolders(key), Timeout: m.patience(),
		})
		if err != nil && !given && lettucecompat.Permanent(err) {
			err = fmt.Errorf("%w (Ping was given no key and tried %q; if the ACL restricts the keys, give it one that it allows)", err, pingKey)
		}
		if err != nil {
			return notReached(op, key, err, lettucecompat.Guess(err))
		}
	}
	return nil
}
