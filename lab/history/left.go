package history

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/anteroom/anteroom/internal/pace"
)

// leftInRedis searches for leaks: channels, connections of workers, keys without a time to live that are not fencing
// records, and locks that still exist when every lease is over.
func (l *Lab) leftInRedis() (leaks []string) {
	ctx, cancel := context.WithTimeout(context.Background(), pace.Hang)
	defer cancel()
	_ = l.Operator.Close(ctx)
	if channels, err := l.Admin.PubSubChannels(ctx, "*").Result(); err != nil || len(channels) > 0 {
		leaks = append(leaks, fmt.Sprintf("channels %q %v", channels, err))
	}
	clients, err := l.Admin.ClientList(ctx).Result()
	if err != nil || strings.Contains(clients, "user="+workerUser) {
		leaks = append(leaks, fmt.Sprintf("connections %q %v", clients, err))
	}
	longest := foreignCounts
	for _, c := range l.Setup.Locks {
		longest = max(longest, c.LeaseTime, c.MinHold)
	}
	// A killed worker leaves its leases; an extended one is the longest.
	over := time.Now().Add(pace.Scale(longest + extension))
	for {
		left := l.keysLeft(ctx, time.Now().After(over))
		if len(left) == 0 {
			return leaks
		}
		if ctx.Err() != nil || time.Now().After(over) || endless(left) {
			return append(leaks, left...)
		}
		time.Sleep(50 * time.Millisecond) // there is no signal for a key that expires
	}
}

// foreignCounts is how long a line remembers that a holder calls nobody (docs/internals/protocol.md §5.6).
const foreignCounts = 10 * time.Second

// extension is the longest that a worker requests with Lease or Extend.
const extension = 3 * time.Second

const noEnd = "a key without an end: "

func endless(left []string) bool {
	for _, s := range left {
		if strings.HasPrefix(s, noEnd) {
			return true
		}
	}
	return false
}

// keysLeft lists the keys that are not fencing records.
func (l *Lab) keysLeft(ctx context.Context, details bool) (left []string) {
	keys := l.Admin.Scan(ctx, 0, "*", 1000).Iterator()
	for keys.Next(ctx) {
		key := keys.Val()
		if strings.HasPrefix(key, "anteroom:fence:") {
			continue
		}
		ttl, err := l.Admin.PTTL(ctx, key).Result()
		switch {
		case err != nil:
			left = append(left, err.Error())
		case ttl == -1:
			left = append(left, noEnd+key)
		case ttl >= 0 && details:
			left = append(left, fmt.Sprintf("the key %s for another %v: %v", key, ttl, l.Admin.HGetAll(ctx, key).Val()))
		case ttl >= 0:
			left = append(left, key)
		}
	}
	if err := keys.Err(); err != nil {
		left = append(left, err.Error())
	}
	return left
}
