package lettucecompat_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/headcount"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// wrapped is a client of a type that New does not know: go-redis sends all commands.
func (b *bed) wrapped(t testing.TB, change ...func(*lettucecompat.Options)) *lettucecompat.Client {
	t.Helper()
	limit := func(o *lettucecompat.Options) { o.CommandTimeout = time.Second }
	return newClient(t, struct{ lettucecompat.Redis }{b.rdb}, append([]func(*lettucecompat.Options){limit}, change...)...)
}

func oneSlot(o *lettucecompat.Options) { o.MaxInFlight = 1 }

// mindful is a client that minds the deadlines of contexts.
func mindful(o *redis.Options) { o.ContextTimeoutEnabled = true }

func TestScriptFlush(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		c := b.client(t)
		for i := range 3 {
			b.raw.ScriptFlush(ctx)
			want(t, "acquire", c.Do(ctx, asks("k", i)).Word, has)
			b.raw.ScriptFlush(ctx)
			want(t, "renew", c.Extend(ctx, renews("k", i), 0).Outcome, ok)
			b.raw.ScriptFlush(ctx)
			want(t, "release", c.Do(ctx, gives("k", i)).Word, hasNothing)
		}
	})
}

// TestObservers: every command is reported once with its outcome.
func TestObservers(t *testing.T) {
	t.Parallel()
	b := onMini(t)
	var stats []lettucecompat.CommandStat
	c := b.client(t, func(o *lettucecompat.Options) {
		o.OnCommand = func(s lettucecompat.CommandStat) { stats = append(stats, s) }
	})
	c.Do(ctx, asks("k", 1))
	c.Do(ctx, asks("k", 2))
	c.Renew(ctx, []lettucecompat.Renewal{{Key: "k", Field: me(1), Lease: time.Second}, {Key: "x", Field: me(1), Lease: time.Second}}, 0)
	c.Do(ctx, gives("k", 1))
	if err := c.Ping(ctx, 0); err != nil {
		t.Fatal(err)
	}
	wants := []lettucecompat.CommandStat{{Name: "acquire", Outcome: ok}, {Name: "acquire", Outcome: ok}, {Name: "renew", Outcome: gone}, {Name: "release", Outcome: ok}, {Name: "ping", Outcome: ok}}
	want(t, "commands", len(stats), len(wants))
	for i := range wants {
		if stats[i].Duration <= 0 || stats[i].Name != wants[i].Name || stats[i].Outcome != wants[i].Outcome {
			t.Fatalf("command %d is %+v, want %+v", i, stats[i], wants[i])
		}
	}
	if lettucecompat.RTT(c) <= 0 {
		t.Fatal("no round trip was measured")
	}
}

// TestDelegate_IsBounded: a hung server costs five times MaxInFlight calls of go-redis, and what finds no room is never sent. When it answers again
// everything flows.
func TestDelegate_IsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, gate := onMini(t), newGate("blocker")
		b.rdb.AddHook(gate)
		const most = 3
		c := b.wrapped(t, func(o *lettucecompat.Options) { o.MaxInFlight = most })
		for range 6 * most {
			r := asks("blocker", 1)
			r.Timeout = 10 * time.Millisecond
			start := time.Now()
			c.Do(ctx, r)
			want(t, "took", time.Since(start), r.Timeout)
		}
		want(t, "sent", len(gate.arrived), 5*most)
		want(t, "under way", lettucecompat.UnderWay(c), 5*most)
		want(t, "beyond", c.Do(ctx, asks("k", 2)).Outcome, failed)
		want(t, "a renewal", c.Extend(ctx, renews("k", 1), 0).Outcome, gone)
		gate.open()
		synctest.Wait()
		want(t, "under way", lettucecompat.UnderWay(c), 0)
		want(t, "after", c.Do(ctx, asks("k", 3)).Outcome, ok)
	})
}

// TestDelegate_WhoWaitsLeaves: a caller that finds no room takes its command along, immediately.
func TestDelegate_WhoWaitsLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, gate := onMini(t), newGate("blocker")
		b.rdb.AddHook(gate)
		c := b.wrapped(t, oneSlot)
		first, second := make(chan lettucecompat.Answer, 1), make(chan lettucecompat.Answer, 1)
		go func() { first <- c.Do(ctx, asks("blocker", 1)) }()
		<-gate.arrived
		cause := errors.New("enough")
		cctx, cancel := context.WithCancelCause(ctx)
		go func() { second <- c.Do(cctx, asks("k", 2)) }()
		synctest.Wait()
		start := time.Now()
		cancel(cause)
		got := <-second
		want(t, "outcome", got.Outcome, failed)
		want(t, "cause", errors.Is(got.Err, cause), true)
		want(t, "took", time.Since(start), time.Duration(0))
		gate.open()
		want(t, "first", (<-first).Outcome, ok)
		synctest.Wait()
		b.wantHash(t, "k", hash{})
	})
}

// TestWire_I7_ACallerIsFree: exactly at its limit, whatever it waits for and whatever the client minds.
func TestWire_I7_ACallerIsFree(t *testing.T) {
	t.Parallel()
	for name, option := range map[string]func(*redis.Options){"default": unchanged, "mindful": mindful} {
		for _, wrap := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/wrapped=%v", name, wrap), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := onMini(t, option)
					c := b.client(t)
					if wrap {
						c = b.wrapped(t)
					}
					warm(t, c)
					b.net.BlackHole()
					start := time.Now()
					got := c.Do(ctx, asks("k", 1))
					want(t, "took", time.Since(start), time.Second)
					want(t, "outcome", got.Outcome, unknown)
					want(t, "timeout", errors.Is(got.Err, lettucecompat.ErrTimeout), true)
					b.net.Heal()
					time.Sleep(time.Minute)
					want(t, "after", c.Do(ctx, asks("other", 2)).Outcome, ok)
				})
			})
		}
	}
}

// TestWire_I8_RenewalsHaveTheirOwnCapacity: with every command hanging in a hook, renewals pass.
func TestWire_I8_RenewalsHaveTheirOwnCapacity(t *testing.T) {
	t.Parallel()
	for _, wrap := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b, gate := onMini(t), newGate("blocker")
			b.rdb.AddHook(gate)
			c := b.client(t, oneSlot)
			if wrap {
				c = b.wrapped(t, oneSlot)
			}
			warm(t, c)
			b.put(t, "k", hash{me(1): "1"}, time.Second)
			replies := make(chan lettucecompat.Answer, 1)
			go func() { replies <- c.Do(ctx, asks("blocker", 1)) }()
			<-gate.arrived
			start := time.Now()
			want(t, "renewal", c.Renew(ctx, []lettucecompat.Renewal{{Key: "k", Field: me(1), Lease: time.Minute}}, 0)[0].Outcome, ok)
			want(t, "took", time.Since(start), time.Duration(0))
			gate.open()
			<-replies
		})
	}
}

// TestCloseRefusesAndWaits for what is under way, at most one time limit.
func TestCloseRefusesAndWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, gate := onMini(t), newGate("blocker")
		b.rdb.AddHook(gate)
		c := b.client(t)
		w := c.Watch("k")
		defer w.Close()
		replies := make(chan lettucecompat.Answer, 1)
		go func() { replies <- c.Do(ctx, asks("blocker", 1)) }()
		<-gate.arrived
		start := time.Now()
		c.Close()
		want(t, "waited for the command under way", time.Since(start), time.Second)
		<-w.C()
		got := c.Do(ctx, asks("k", 1))
		want(t, "outcome", got.Outcome, failed)
		want(t, "error", got.Err, lettucecompat.ErrClosed)
		want(t, "renew", c.Extend(ctx, lettucecompat.Renewal{Key: "k", Field: me(1)}, 0).Err, lettucecompat.ErrClosed)
		want(t, "probe", c.Probe(ctx), lettucecompat.ErrClosed)
		c.Subscribe()
		late := c.Watch("other")
		<-late.C()
		late.Close()
		gate.open()
		if got := <-replies; !errors.Is(got.Err, lettucecompat.ErrTimeout) {
			t.Errorf("behind the hook: %+v", got)
		}
		synctest.Wait() // what was under way has ended
		c.Close()
	})
}

// TestWire_I12_NoGoroutineWhenIdle: right after a burst nothing is left running, without Close.
func TestWire_I12_NoGoroutineWhenIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := onMini(t)
		c := b.client(t)
		warm(t, c)
		synctest.Wait()
		before, open := headcount.Bubble(), b.net.Open()
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() { c.Do(ctx, gives(fmt.Sprintf("k%d", i), 1)) })
		}
		all.Wait()
		synctest.Wait()
		if after := headcount.Bubble(); after > before {
			t.Fatalf("%d goroutines before, %d after", before, after)
		}
		want(t, "connections", b.net.Open(), open)
	})
}

// TestInterfaces: what a user passes satisfies Redis.
var (
	_ lettucecompat.Redis = (*redis.Client)(nil)
	_ lettucecompat.Redis = (*redis.ClusterClient)(nil)
	_ lettucecompat.Redis = (*redis.Ring)(nil)
	_ lettucecompat.Redis = redis.UniversalClient(nil)
)
