package lock

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/pace"
)

// confirmedLate is a hook by which WAIT finds a replica when its time limit ends.
type confirmedLate struct{}

func (confirmedLate) DialHook(next redis.DialHook) redis.DialHook { return next }

func (confirmedLate) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if wait, is := cmd.(interface{ SetVal(val any) }); is && cmd.Name() == "wait" {
			wait.SetVal(int64(1))
		}
		return err
	}
}

func (confirmedLate) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// A fixed lease that replicas confirm within their time limit, if later than the call lease is over, counts.
func TestLate_ReplicasConfirmAFixedLease(t *testing.T) {
	t.Parallel()
	_, client := fresh(t)
	c := client()
	c.AddHook(confirmedLate{})
	p := newParty(t, c, func(s *Settings) {
		s.Lease = Lease{For: 30 * time.Second, Period: -1, Margin: 1500 * time.Millisecond}
		s.Replicas, s.ReplicaTimeout, s.Timeout = 1, 2200*time.Millisecond, pace.Scale(time.Second)
	})
	ctx, cancel := context.WithTimeout(t.Context(), pace.Hang)
	defer cancel()
	begin := time.Now()
	o, err := p.acquire(ctx, "k", 0)
	if err != nil {
		t.Fatalf("after %v: %v", time.Since(begin), err)
	}
	mustRelease(t, o)
}
