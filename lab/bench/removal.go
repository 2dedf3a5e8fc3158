package main

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/lab/bench/library"
)

const (
	removed      = 200 // locks
	removedEvery = 20 * time.Millisecond
	removedBound = 10 * time.Second
)

// removeSome deletes the keys of some held locks, one after the other, and measures from before the DEL until the holder
// is notified. Where the library notifies nobody it measures nothing. It returns how many were removed.
func removeSome(ctx context.Context, addr string, handles []library.Handle) (n int, f figures, err error) {
	if _, is := handles[0].(library.Watched); !is {
		return 0, figures{}, nil
	}
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer rdb.Close()
	var took []time.Duration
	for n = range min(removed, len(handles)) {
		key, held := handles[n].(library.Watched).Held()
		time.Sleep(removedEvery)
		began := time.Now()
		if gone, err := rdb.Del(ctx, key).Result(); err != nil || gone != 1 {
			return 0, nil, fmt.Errorf("DEL %s: %d, %w", key, gone, err)
		}
		select {
		case <-held.Done():
			took = append(took, time.Since(began))
		case <-time.After(removedBound):
			return 0, nil, fmt.Errorf("nobody was notified that %s is gone within %v", key, removedBound)
		}
	}
	return n + 1, figures{removalP50: quantile(took, 0.5), removalP99: quantile(took, 0.99)}, nil
}
