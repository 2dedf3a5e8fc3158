package history

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/pace"
)

const (
	// pulse is how often the laboratory checks that Redis answers.
	pulse = 50 * time.Millisecond
	// slow is the delay of an answer from which Redis counts as away: the library's time limit for a command is
	// little more, and several commands may follow each other until a holder is notified.
	slow = 120 * time.Millisecond
	// measures is after how many pulses it is measured how slow the machine is, for History.Slow.
	measures = 10
)

// startPulse records when Redis, or the machine, is slower than the bounds assume, whatever the reason: a fault, a
// disk, other programs. The returned function ends that.
func (l *Lab) startPulse() (stop func()) {
	c := redis.NewClient(&redis.Options{Addr: l.Server.Addr(), MaxRetries: -1, ReadTimeout: 10 * time.Second, PoolSize: 1})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(pulse)
		defer ticker.Stop()
		last := Now()
		for n := 1; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			err := c.Ping(ctx).Err()
			if now := Now(); ctx.Err() == nil && (err != nil || now-last > int64(pulse+slow)) {
				l.away(AllProcs, last, false, "slow")
			}
			if n%measures == 0 {
				pace.Factor()
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
