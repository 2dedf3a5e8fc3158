package anteroom_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/faultnet"
	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	anteroom "github.com/anteroom/anteroom/sync"
)

// Every way in, in parallel, on the same keys, by two Managers whose callers carry their calls
// themselves, while replies are lost and callers leave: one is inside at a time, everybody
// comes back, and nothing is left but what lands late.
func TestMixedWaysIn(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	for _, r := range []bool{true, false} {
		t.Run(fmt.Sprintf("reentrant=%v", r), func(t *testing.T) {
			t.Parallel()
			mixed(t, s, r)
		})
	}
}

func mixed(t *testing.T, s *testredis.Server, r bool) {
	const keys = 3
	// Longer than the call lease, so that what somebody has entered can be distinguished from what nobody has.
	mixedLease := pace.Scale(3 * time.Second)
	name := func(k int) string { return fmt.Sprintf("%v,%d", r, k) }
	var inside [keys]atomic.Int32
	var entered atomic.Int64
	var managers []*anteroom.Manager
	var work sync.WaitGroup
	over := time.Now().Add(mixedFor)
	faults := faultnet.New((&net.Dialer{}).DialContext)
	for range 2 {
		m, _ := manager(t, s.Client(t, mindful, func(o *redis.Options) { o.Dialer = faults.Dial }), anteroom.Config{})
		managers = append(managers, m)
		for g := range 12 {
			work.Go(func() {
				for i := g; time.Now().Before(over); i++ {
					k := i % keys
					mu := mutex(t, m, anteroom.LockConfig{Key: name(k), Reentrant: r, Fair: k == 0, Fencing: k == 1, MaxHandoffs: 20, LeaseTime: mixedLease})
					enter(t, mu, i, func() {
						entered.Add(1)
						if n := inside[k].Add(1); n != 1 {
							t.Errorf("%d inside", n)
						}
						if rand.IntN(10) == 0 {
							time.Sleep(time.Duration(rand.IntN(1000)) * time.Microsecond)
						}
						inside[k].Add(-1)
					})
				}
			})
		}
	}
	work.Go(func() {
		for time.Now().Before(over) {
			faults.CutReplies(1, rand.IntN(3))
			time.Sleep(20 * time.Millisecond)
		}
		faults.Heal()
	})
	work.Wait()
	t.Logf("%d were inside", entered.Load())
	for _, m := range managers {
		ctx, cancel := context.WithTimeout(bg, pace.Hang)
		defer cancel()
		if err := m.Close(ctx); err != nil {
			t.Errorf("Close: %v", err)
		}
		if left := m.Snapshot(); len(left) != 0 {
			t.Errorf("left in the process: %+v", left)
		}
	}
	for k := range keys {
		// A command whose connection was cut may land after the one that has cleaned up behind it. What it makes is
		// nobody's, so it is never renewed.
		if left := s.Client(t).PTTL(bg, name(k)).Val(); left > lettucecompat.CallLease(mixedLease) {
			t.Errorf("%s is left in Redis for %v", name(k), left)
		}
	}
}

const mixedFor = time.Second

// enter goes in by the way that i decides, where it can, and out again.
func enter(t *testing.T, mu *anteroom.Mutex, i int, inside func()) {
	ctx, cancel := context.WithTimeout(bg, time.Duration(rand.IntN(4000))*time.Microsecond)
	defer cancel()
	var h *anteroom.Hold
	locked := false
	switch (i / 3) % 7 {
	case 0:
		mu.Lock()
		locked = true
	case 1:
		locked = mu.TryLock()
	case 2:
		locked = mu.TryLockFor(time.Duration(rand.IntN(4000)) * time.Microsecond)
	case 3:
		h, _ = mu.Acquire(bg)
	case 4:
		h, _ = mu.Acquire(ctx)
	case 5:
		h, _ = mu.TryAcquire(bg)
	case 6:
		_ = mu.Do(ctx, func(context.Context) error { inside(); return nil })
	}
	if locked {
		if mu.Config().Reentrant && i%2 == 0 {
			pass(mu) // enters again
		}
		inside()
		mu.Unlock()
	}
	if h != nil {
		inside()
		if i%2 == 0 {
			_ = h.Release(bg)
			return
		}
		passed := make(chan struct{})
		go func() { _ = h.Release(ctx); close(passed) }()
		<-passed
	}
}
