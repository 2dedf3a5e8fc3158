package promise

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// seize takes every free key, and returns the time at which it ran and the indexes of the keys that it took. The
// clock of Redis does not advance while a script runs.
var seize = redis.NewScript(`
local t = redis.call('time')
local got = {t[1], t[2]}
for i, key in ipairs(KEYS) do
  if redis.call('set', key, 'rival', 'NX', 'PX', 60000) then got[#got + 1] = i end
end
return got`)

// rivalPause is the pause between two attempts of the rival.
const rivalPause = 200 * time.Microsecond

// rival returns a client that waits for an answer as long as it takes, so that a grant is never missed, and that
// go-redis never retries.
func rival(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, ReadTimeout: -1, WriteTimeout: -1, MaxRetries: -1})
}

// hammer tries to take the keys, without pause, until it has had each of them once. It returns when Redis granted
// each, in microseconds.
func hammer(ctx context.Context, rdb *redis.Client, keys []string) ([]int64, error) {
	granted := make([]int64, len(keys))
	left := make([]int, len(keys)) // indexes of the keys that were not granted yet
	for i := range left {
		left[i] = i
	}
	for len(left) > 0 {
		names := make([]string, len(left))
		for i, at := range left {
			names[i] = keys[at]
		}
		answer, err := seize.Run(ctx, rdb, names).Slice()
		if err != nil {
			return nil, fmt.Errorf("the rival: %w", err)
		}
		at, places, err := seized(answer)
		if err != nil {
			return nil, err
		}
		for _, p := range places {
			granted[left[p-1]] = at
		}
		waiting := left[:0]
		for _, i := range left {
			if granted[i] == 0 {
				waiting = append(waiting, i)
			}
		}
		left = waiting
		if ctx.Err() != nil {
			return nil, fmt.Errorf("the rival did not get %d of %d keys: %w", len(left), len(keys), ctx.Err())
		}
		time.Sleep(rivalPause)
	}
	return granted, nil
}

// seized parses the answer of seize.
func seized(answer []any) (at int64, places []int64, err error) {
	if len(answer) < 2 {
		return 0, nil, fmt.Errorf("the rival got %v", answer)
	}
	at, err = micros(answer[:2])
	for _, p := range answer[2:] {
		place, isInt := p.(int64)
		if !isInt {
			err = errors.Join(err, fmt.Errorf("the rival got %v", p))
		}
		places = append(places, place)
	}
	return at, places, err
}

// micros parses an answer to TIME.
func micros(t []any) (int64, error) {
	var parts [2]int64
	for i := range parts {
		if len(t) != 2 {
			return 0, fmt.Errorf("TIME answered %v", t)
		}
		text, _ := t[i].(string)
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("TIME answered %v: %w", t, err)
		}
		parts[i] = n
	}
	return parts[0]*1_000_000 + parts[1], nil
}
