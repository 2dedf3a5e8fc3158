package history

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// pulse is how often the laboratory asks whether Redis answers.
	pulse = 50 * time.Millisecond
	// slow is when an answer is so late that Redis counts as away: a command of the
	// library has little more time, and several follow each other until somebody is told.
	slow = 120 * time.Millisecond
)

// startPulse records when Redis, or the machine, is slower than the bounds can ask for,
// whatever the reason: a fault, a disk, other programs. The function that it returns
// ends that.
func (l *Lab) startPulse() (stop func()) {
	c := redis.NewClient(&redis.Options{Addr: l.Server.Addr(), MaxRetries: -1, ReadTimeout: 10 * time.Second, PoolSize: 1})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(pulse)
		defer ticker.Stop()
		last := Now()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			err := c.Ping(ctx).Err()
			if now := Now(); ctx.Err() == nil && (err != nil || now-last > int64(pulse+slow)) {
				l.away(AllProcs, last, false, "slow")
			}
			last = Now()
		}
	}()
	return func() {
		cancel()
		_ = c.Close()
		<-ended
	}
}
