package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/lab/bench/library"
)

const (
	removed      = 200 // times
	removedEvery = 20 * time.Millisecond
	removedFor   = 20 * time.Second // in all, where each takes long
	removedBound = 20 * time.Second
)

// removal removes a key that is held, or others, from Redis. It returns the moment before that, and how many are gone.
type removal func(ctx context.Context, rdb *redis.Client, key string) (began time.Time, gone int, err error)

// removals are by the name that plans have of them.
var removals = map[string]removal{
	"DEL": byCommand(func(ctx context.Context, rdb *redis.Client, key string) error { return rdb.Del(ctx, key).Err() }),
	"HDEL": func(ctx context.Context, rdb *redis.Client, key string) (time.Time, int, error) {
		fields, err := rdb.HKeys(ctx, key).Result()
		if err != nil {
			return time.Time{}, 0, err
		}
		return time.Now(), 1, rdb.HDel(ctx, key, fields...).Err()
	},
	"RENAME": byCommand(func(ctx context.Context, rdb *redis.Client, key string) error {
		return rdb.Rename(ctx, key, "renamed:"+key).Err()
	}),
	"SET": byCommand(func(ctx context.Context, rdb *redis.Client, key string) error {
		return rdb.Set(ctx, key, "another", 0).Err()
	}),
	// All connections but subscriptions end first.
	"DEL-after-KILL": func(ctx context.Context, rdb *redis.Client, key string) (began time.Time, gone int, err error) {
		time.Sleep(time.Second) // the connections have lasted
		began = time.Now()
		err = rdb.ClientKillByFilter(ctx, "type", "normal", "skipme", "yes").Err()
		return began, 1, errors.Join(err, rdb.Del(ctx, key).Err())
	},
	"eviction": evict,
	"FLUSHALL": func(ctx context.Context, rdb *redis.Client, _ string) (time.Time, int, error) {
		n, err := rdb.DBSize(ctx).Result()
		return time.Now(), int(n), errors.Join(err, rdb.FlushAll(ctx).Err())
	},
}

func byCommand(send func(ctx context.Context, rdb *redis.Client, key string) error) removal {
	return func(ctx context.Context, rdb *redis.Client, key string) (time.Time, int, error) {
		return time.Now(), 1, send(ctx, rdb, key)
	}
}

// evict leaves Redis less and less memory, until a command has to evict keys before it runs.
func evict(ctx context.Context, rdb *redis.Client, _ string) (began time.Time, gone int, err error) {
	number := func(section, name string) (n int) {
		text, failed := rdb.InfoMap(ctx, section).Result()
		_, unread := fmt.Sscan(text[section][name], &n)
		err = errors.Join(err, failed, unread)
		return n
	}
	before, used := number("Stats", "evicted_keys"), number("Memory", "used_memory")
	set := func(name string, value any) {
		err = errors.Join(err, rdb.ConfigSet(ctx, name, fmt.Sprint(value)).Err())
	}
	set("maxmemory-policy", "allkeys-random")
	for ; gone == 0 && err == nil; used -= 1 << 10 {
		began = time.Now()
		set("maxmemory", used)
		gone = number("Stats", "evicted_keys") - before
	}
	set("maxmemory", 0)
	return began, number("Stats", "evicted_keys") - before, err
}

// removalPlan is the work of a child.
type removalPlan struct {
	Library, Addr, Prefix, By string
	N                         int
}

// removeSome measures how long after a key is removed its holder is notified, of a process that holds many.
func removeSome(ctx context.Context, r round) (f figures, err error) {
	c, err := child.Start(ctx, "removal", removalPlan{r.lib.Name, r.addr, r.load.Prefix, r.removedBy, r.load.Keys}, 2*growWithin)
	if err != nil {
		return nil, err
	}
	err = c.Receive(&f, growWithin)
	return f, errors.Join(err, c.Stop(growWithin))
}

// removalRole is the child's side.
func removalRole(ctx context.Context, l *child.Link, raw json.RawMessage) error {
	var plan removalPlan
	if err := json.Unmarshal(raw, &plan); err != nil {
		return err
	}
	c, err := openAlone(plan.Library, plan.Addr)
	if err != nil {
		return err
	}
	defer c.Close()
	rdb := redis.NewClient(&redis.Options{Addr: plan.Addr})
	defer rdb.Close()
	if err := rdb.Ping(ctx).Err(); err != nil { // connected from here on
		return err
	}
	var (
		keys     = make([]string, plan.N)
		notified = make(chan time.Time, plan.N)
	)
	err = each(plan.N, func(i int) error {
		h := c.Handle(fmt.Sprintf("%s:held:%d", plan.Prefix, i)).(library.Watched)
		if err := h.Lock(ctx); err != nil {
			return err
		}
		key, held := h.Held()
		keys[i] = key
		context.AfterFunc(held, func() { notified <- time.Now() })
		return nil
	})
	if err != nil {
		return err
	}
	time.Sleep(2 * time.Second) // the garbage of acquiring is gone
	var took []time.Duration
	end := time.Now().Add(removedFor)
	for _, key := range keys[:min(removed, len(keys))] {
		if len(took) == len(keys) || time.Now().After(end) {
			break
		}
		time.Sleep(removedEvery)
		began, gone, err := removals[plan.By](ctx, rdb, key)
		if err != nil {
			return err
		}
		for range gone {
			select {
			case at := <-notified:
				took = append(took, at.Sub(began))
			case <-time.After(removedBound):
				return fmt.Errorf("%s: nobody was notified within %v", plan.By, removedBound)
			}
		}
	}
	return l.Send(figures{removalP50: quantile(took, 0.5), removalP99: quantile(took, 0.99)})
}
