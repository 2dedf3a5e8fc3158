package lettucecompat_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// roundTripCount is a go-redis hook that counts round roundTrips, and how many are under way together. Each
// takes delay: a faultnet between client and miniredis delays each answer of a pipeline by itself.
type roundTripCount struct {
	delay time.Duration

	mu                    sync.Mutex
	now, most, all, asked int
}

func (n *roundTripCount) count(cmds []redis.Cmder, send func() error) error {
	if cmds[0].Name() != "evalsha" {
		return send()
	}
	n.mu.Lock()
	n.now, n.all, n.asked = n.now+1, n.all+1, n.asked+len(cmds)
	n.most = max(n.most, n.now)
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		n.now--
		n.mu.Unlock()
	}()
	time.Sleep(n.delay)
	return send()
}

func (n *roundTripCount) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (n *roundTripCount) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return n.count([]redis.Cmder{cmd}, func() error { return next(ctx, cmd) })
	}
}

func (n *roundTripCount) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		return n.count(cmds, func() error { return next(ctx, cmds) })
	}
}

// pairs has callers lock and unlock a key of their own so many times.
func pairs(t *testing.T, c *lettucecompat.Client, callers, times int, mayBeHeld bool) {
	t.Helper()
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			key := fmt.Sprintf("key%d", i)
			for n := range times {
				ask, back := asks(key, n), gives(key, n)
				ask.MayBeHeld, back.MayBeHeld = mayBeHeld, mayBeHeld
				if got := c.Do(ctx, ask); got.Word != has {
					t.Errorf("%+v", got)
				}
				if got := c.Do(ctx, back); got.Word != hasNothing {
					t.Errorf("%+v", got)
				}
			}
		})
	}
	wg.Wait()
}

// TestSender_OneRoundTripIsUnderWay while none is slow, by any sender.
func TestSender_OneRoundTripIsUnderWay(t *testing.T) {
	t.Parallel()
	for name, option := range map[string]func(*redis.Options){"default": unchanged, "mindful": mindful} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, roundTrips := onMini(t, option), &roundTripCount{}
				b.rdb.AddHook(roundTrips)
				c := b.client(t)
				pairs(t, c, 20, 5, true) // all connections are there
				roundTrips.most, roundTrips.delay = 0, lettucecompat.SlowAfter/2
				pairs(t, c, 20, 20, true)
				want(t, "under way together", roundTrips.most, 1)
			})
		})
	}
}

// TestSender_CallersThatComeAgainShare: those who were answered together are together on the next
// round trip, though its goroutine is there before they are.
func TestSender_CallersThatComeAgainShare(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	synctest.Test(t, func(t *testing.T) {
		b, roundTrips := onMini(t), &roundTripCount{}
		b.rdb.AddHook(roundTrips)
		c := b.client(t)
		const callers, times = 20, 50
		pairs(t, c, callers, 5, false) // all connections are there
		roundTrips.all, roundTrips.asked, roundTrips.delay = 0, 0, lettucecompat.SlowAfter/2
		pairs(t, c, callers, times, false)
		if least := 2 * times; roundTrips.all > least+least/4 {
			t.Errorf("%d round trips for %d commands of %d callers", roundTrips.all, roundTrips.asked, callers)
		}
	})
}

// TestSender_ASlowOneAdmitsAnother, after a fixed time, also if its caller makes it.
func TestSender_ASlowOneAdmitsAnother(t *testing.T) {
	t.Parallel()
	for name, option := range map[string]func(*redis.Options){"default": unchanged, "mindful": mindful} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, gate := onMini(t, option), newGate("blocker")
				b.rdb.AddHook(gate)
				c := b.client(t)
				warm(t, c)
				done := make(chan struct{})
				go func() { defer close(done); c.Do(ctx, asks("blocker", 1)) }()
				<-gate.arrived
				start := time.Now()
				want(t, "beside it", c.Do(ctx, asks("k", 1)).Outcome, ok)
				want(t, "took", time.Since(start), lettucecompat.SlowAfter)
				start = time.Now()
				want(t, "later", c.Do(ctx, asks("k2", 1)).Outcome, ok)
				want(t, "took", time.Since(start), time.Duration(0))
				gate.open()
				<-done
			})
		})
	}
}

// A slow round trip that is full admits another for those that it has left.
func TestSender_ASlowFullOneAdmitsAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, gate := onMini(t), newGate("blocker")
		gate.before = func() {
			if gate.pipelines.Load() == 1 { // the full one
				<-gate.opened
			}
		}
		b.rdb.AddHook(gate)
		c := b.client(t)
		warm(t, c)
		var all sync.WaitGroup
		defer all.Wait()
		defer gate.open()
		say := func(key string, n int) { all.Go(func() { c.Do(ctx, asks(key, n)) }) }
		say("blocker", 1)
		<-gate.arrived
		const more = 300
		for i := range more {
			say("k"+strconv.Itoa(i), 1)
		}
		synctest.Wait()
		want(t, "queued", lettucecompat.Queued(c), more)
		time.Sleep(lettucecompat.SlowAfter)
		synctest.Wait()
		if n := lettucecompat.Queued(c); n == 0 || n == more {
			t.Errorf("%d are left by a full one", n)
		}
		time.Sleep(lettucecompat.SlowAfter)
		synctest.Wait()
		want(t, "queued beside a slow one", lettucecompat.Queued(c), 0)
	})
}

// TestSender_SlowOnesAreBounded: MaxInFlight is how many round trips have callers that wait.
func TestSender_SlowOnesAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, gate := onMini(t), newGate("blocker")
		b.rdb.AddHook(gate)
		const most = 3
		c := b.client(t, func(o *lettucecompat.Options) { o.MaxInFlight = most })
		warm(t, c)
		replies := make(chan lettucecompat.Answer, 2*most)
		for i := range 2 * most {
			go func() { replies <- c.Do(ctx, asks("blocker", i+1)) }()
			time.Sleep(2 * lettucecompat.SlowAfter)
		}
		live, total := lettucecompat.RoundTrips(c)
		want(t, "awaited", live, most)
		want(t, "all", total, most)
		want(t, "queued", lettucecompat.Queued(c), most)
		gate.open()
		for range 2 * most {
			<-replies
		}
		want(t, "pipelines", gate.pipelines.Load(), int64(1)) // the others together
	})
}

// TestSender_WaitsForReplicasTravelAlone: several in parallel, since none counts as the one under way, and
// also those that had to queue.
func TestSender_WaitsForReplicasTravelAlone(t *testing.T) {
	t.Parallel()
	for _, inFlight := range []int{1, 3} {
		t.Run(fmt.Sprintf("in-flight=%d", inFlight), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, gate := onMini(t), newGate("blocker")
				b.rdb.AddHook(gate)
				c := b.client(t, func(o *lettucecompat.Options) { o.MaxInFlight = inFlight })
				warm(t, c)
				b.put(t, "blocker", hash{me(1): "1", me(2): "1", me(3): "1"}, time.Minute)
				replies := make(chan lettucecompat.RenewReply, 3)
				for i := range 3 {
					go func() {
						replies <- c.Extend(ctx, synced("blocker", i+1), 0)
					}()
				}
				start := time.Now()
				synctest.Wait()
				want(t, "sent", len(gate.arrived), inFlight)
				want(t, "immediately", time.Since(start), time.Duration(0))
				gate.open()
				for range 3 {
					got := <-replies
					want(t, "outcome", got.Outcome, refused) // there is no replica
				}
				want(t, "pipelines", gate.pipelines.Load(), int64(0))
			})
		})
	}
}

// TestSender_AnAnswerAtTheLimit: a caller that leaves in the moment of its answer has it, and its round trip ends once.
func TestSender_AnAnswerAtTheLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := onMini(t)
		c := b.client(t)
		warm(t, c)
		b.net.Delay(time.Second) // the limit
		var answered, left int
		for i := range 100 {
			switch got := c.Do(ctx, asks(fmt.Sprintf("k%d", i), i)); {
			case got.Outcome == ok:
				answered++
			case got.Outcome == unknown && errors.Is(got.Err, lettucecompat.ErrTimeout):
				left++
			default:
				t.Fatalf("%+v", got)
			}
			time.Sleep(time.Second)
		}
		live, total := lettucecompat.RoundTrips(c)
		want(t, "awaited", live, 0)
		want(t, "all", total, 0)
		if answered == 0 || left == 0 {
			t.Skipf("%d were answered and %d have left", answered, left)
		}
	})
}

// TestSender_KeepsNothingThatWasLeft: a hung server does not fill the memory with requests.
func TestSender_KeepsNothingThatWasLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, gate := onMini(t), newGate("blocker")
		b.rdb.AddHook(gate)
		c := b.client(t, oneSlot, func(o *lettucecompat.Options) { o.CommandTimeout = time.Minute })
		warm(t, c)
		first := make(chan struct{})
		go func() { defer close(first); c.Do(ctx, asks("blocker", 1)) }()
		<-gate.arrived
		var left atomic.Int64
		for i := range 100 {
			go func() {
				r := asks(fmt.Sprintf("k%d", i), 1)
				r.Timeout = time.Duration(1+i%10) * time.Second
				if c.Do(ctx, r).Outcome == failed {
					left.Add(1)
				}
			}()
		}
		time.Sleep(9500 * time.Millisecond)
		want(t, "queued", lettucecompat.Queued(c), 10)
		time.Sleep(time.Second)
		want(t, "left", left.Load(), int64(100))
		want(t, "queued", lettucecompat.Queued(c), 0)
		gate.open()
		<-first
		want(t, "after", c.Do(ctx, asks("k", 1)).Outcome, ok)
	})
}

// TestSender_LeavingAndComingTogether is for the race detector, and for what only a crowd finds: each
// caller is answered or free, and nothing is under way at the end.
func TestSender_LeavingAndComingTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := onMini(t)
		c := b.client(t, func(o *lettucecompat.Options) { o.CommandTimeout = 20 * time.Millisecond })
		warm(t, c)
		b.net.Latency(2*time.Millisecond, 2*time.Millisecond, 7)
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				for n := range 20 {
					cctx, cancel := context.WithTimeout(ctx, time.Duration(1+(i*7+n)%12)*time.Millisecond)
					got := c.Do(cctx, asks(fmt.Sprintf("k%d", i), n+1))
					if got.Outcome == failed && got.Err == nil {
						t.Errorf("%+v", got)
					}
					cancel()
				}
			})
		}
		wg.Wait()
		time.Sleep(time.Minute)
		live, total := lettucecompat.RoundTrips(c)
		want(t, "awaited", live, 0)
		want(t, "all", total, 0)
		want(t, "queued", lettucecompat.Queued(c), 0)
		b.net.Heal()
		want(t, "after", c.Do(ctx, asks("k", 1)).Outcome, ok)
	})
}
