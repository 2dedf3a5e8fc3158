package lettucecompat_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/headcount"
	"github.com/anteroom/anteroom/internal/pace"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

func oneSlot(o *lettucecompat.Options) { o.MaxInFlight = 1 }

func TestSender_SharesRoundTrips(t *testing.T) {
	t.Parallel()
	b := onReal(t, nil)
	gate := newGate("blocker")
	b.rdb.AddHook(gate)
	c := b.client(t, oneSlot, func(o *lettucecompat.Options) { o.CommandTimeout = pace.Hang })
	warm(t, c)
	gate.processed.Store(0)
	replies := gate.fill(t, c, 300)
	gate.open()
	for range 301 {
		if got := <-replies; got.Outcome != ok {
			t.Fatalf("%+v", got)
		}
	}
	want(t, "pipelines for 300 requests of at most 256 each", gate.pipelines.Load(), int64(2))
	want(t, "commands in pipelines", gate.commands.Load(), int64(300))
	want(t, "single commands", gate.processed.Load(), int64(1))
}

// TestCloseEndsWhenTheLastQueuedCallIsLeft: nobody waits for anything any more, so Close does
// not either.
func TestCloseEndsWhenTheLastQueuedCallIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := onMini(t)
		gate := newGate("blocker")
		b.rdb.AddHook(gate)
		c := b.client(t, oneSlot, func(o *lettucecompat.Options) { o.CommandTimeout = time.Minute })
		for range 5 { // as many as may be given up before new requests wait
			r := asks("blocker", 1)
			r.Timeout = 10 * time.Millisecond
			c.Do(ctx, r)
		}
		leaving, leave := context.WithCancel(ctx)
		left := make(chan struct{})
		go func() { c.Do(leaving, asks("k", 2)); close(left) }()
		synctest.Wait()
		want(t, "queued", lettucecompat.Queued(c), 1)
		closed := make(chan time.Duration)
		start := time.Now()
		go func() { c.Close(); closed <- time.Since(start) }()
		synctest.Wait()
		leave()
		<-left
		if took := <-closed; took > time.Second {
			t.Errorf("Close took %v", took)
		}
		gate.open()
	})
}

// TestSender_NoScriptInPipeline: the commands whose script the server has forgotten, and
// only these, are sent again.
func TestSender_NoScriptInPipeline(t *testing.T) {
	t.Parallel()
	b := onReal(t, nil)
	gate := newGate("blocker")
	gate.before = func() {
		if gate.pipelines.Load() == 1 {
			b.raw.ScriptFlush(ctx)
		}
	}
	b.rdb.AddHook(gate)
	c := b.client(t, oneSlot, func(o *lettucecompat.Options) { o.CommandTimeout = pace.Hang })
	replies := gate.fill(t, c, 10)
	gate.open()
	for range 11 {
		if got := <-replies; got.Outcome != ok {
			t.Fatalf("%+v", got)
		}
	}
	for i := range 10 {
		b.wantHash(t, fmt.Sprintf("key%d", i), hash{me(1): "1"})
	}
	want(t, "pipelines", gate.pipelines.Load(), int64(2))
}

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

// TestWire_I7_QueuedIsNeverSent: a caller that leaves the queue takes its command along.
func TestWire_I7_QueuedIsNeverSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := onMini(t)
		gate := newGate("blocker")
		b.rdb.AddHook(gate)
		c := b.client(t, oneSlot, func(o *lettucecompat.Options) { o.CommandTimeout = time.Minute })
		warm(t, c)
		first := make(chan lettucecompat.Answer, 1)
		go func() { first <- c.Do(ctx, asks("blocker", 1)) }()
		<-gate.arrived
		cctx, cancel := context.WithCancel(ctx)
		second := make(chan lettucecompat.Answer, 1)
		go func() { second <- c.Do(cctx, asks("k", 2)) }()
		synctest.Wait()
		want(t, "queued", lettucecompat.Queued(c), 1)
		cancel()
		got := <-second
		want(t, "outcome", got.Outcome, failed)
		want(t, "still queued", lettucecompat.Queued(c), 0)
		gate.open()
		want(t, "first", (<-first).Outcome, ok)
		synctest.Wait()
		b.wantHash(t, "k", hash{})
	})
}

// TestWire_I7_AbandonedAreBounded: a hung server costs five round trips per place and no more;
// when it answers again everything flows.
func TestWire_I7_AbandonedAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := onMini(t)
		gate := newGate("blocker")
		b.rdb.AddHook(gate)
		c := b.client(t, oneSlot, func(o *lettucecompat.Options) { o.CommandTimeout = 10 * time.Millisecond })
		for range 20 {
			c.Do(ctx, asks("blocker", 1))
		}
		live, total := lettucecompat.RoundTrips(c)
		want(t, "live", live, 0)
		want(t, "total", total, 5)
		want(t, "sent", len(gate.arrived), 5)
		want(t, "beyond", c.Do(ctx, asks("k", 2)).Outcome, failed)
		gate.open()
		synctest.Wait()
		_, total = lettucecompat.RoundTrips(c)
		want(t, "total", total, 0)
		want(t, "after", c.Do(ctx, asks("k", 3)).Outcome, ok)
	})
}

// TestWire_I8_RenewalsHaveTheirOwnCapacity: with every acquire hanging, renewals pass.
func TestWire_I8_RenewalsHaveTheirOwnCapacity(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := onMini(t)
		gate := newGate("blocker")
		b.rdb.AddHook(gate)
		c := b.client(t, oneSlot)
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

func TestCloseRefusesAndWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := onMini(t)
		gate := newGate("blocker")
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
		err := c.Probe(ctx)
		want(t, "probe", err, lettucecompat.ErrClosed)
		c.Subscribe()
		late := c.Watch("other")
		<-late.C()
		late.Close()
		gate.open()
		<-replies
		synctest.Wait() // what was under way has ended
		c.Close()
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

// TestInterfaces: what a user passes satisfies Redis.
var (
	_ lettucecompat.Redis = (*redis.Client)(nil)
	_ lettucecompat.Redis = (*redis.ClusterClient)(nil)
	_ lettucecompat.Redis = (*redis.Ring)(nil)
	_ lettucecompat.Redis = redis.UniversalClient(nil)
)

// TestWire_I12_NoGoroutineWhenIdle: right after a burst nothing is left running, without Close (the
// bubble's end is checked by synctest: it would never come).
func TestWire_I12_NoGoroutineWhenIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := onMini(t)
		c, err := lettucecompat.New(b.rdb, lettucecompat.Options{ClientID: "me"})
		if err != nil {
			t.Fatal(err)
		}
		warm(t, c)
		synctest.Wait()
		before := headcount.Bubble()
		done := make(chan lettucecompat.Word, 100)
		for i := range 100 {
			go func() { done <- c.Do(ctx, gives(fmt.Sprintf("k%d", i), 1)).Word }()
		}
		for range 100 {
			want(t, "word", <-done, lost)
		}
		live, total := lettucecompat.RoundTrips(c)
		want(t, "live", live, 0)
		want(t, "total", total, 0)
		b.net.CloseAll() // the server's goroutine of each connection
		b.rdb.Close()
		synctest.Wait()
		if after := headcount.Bubble(); after > before {
			t.Fatalf("%d goroutines before, %d after", before, after)
		}
	})
}
