package lettucecompat_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/faultnet"
	"github.com/anteroom/anteroom/internal/headcount"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// mindful is a client on which callers carry their calls themselves.
func mindful(o *redis.Options) { o.ContextTimeoutEnabled = true }

// sentHere returns a function that reports whether the oldest command that b has sent since
// then, and that it has not been asked about, was sent on the goroutine of a test.
func sentHere(b *bed) func() bool {
	stack := make([]byte, 1<<16)
	seen := make(chan string, 10)
	b.rdb.AddHook(traceHook{func(context.Context) { seen <- string(stack[:runtime.Stack(stack, false)]) }})
	return func() bool { return strings.Contains(<-seen, "testing.tRunner(") }
}

// crowd has 21 callers share the only place of c's sender.
func crowd(t *testing.T, b *bed) (c *lettucecompat.Client, g *gate) {
	t.Helper()
	g = newGate("blocker")
	b.rdb.AddHook(g)
	c = b.client(t, oneSlot)
	warm(t, c)
	replies := g.fill(t, c, 20)
	g.open()
	for range 21 {
		want(t, "outcome", (<-replies).Outcome, ok)
	}
	return c, g
}

// TestWire_I7_ACallerThatCarriesItselfIsFree: exactly at its limit, whatever it waits for.
func TestWire_I7_ACallerThatCarriesItselfIsFree(t *testing.T) {
	for _, tc := range []struct {
		name    string
		fault   func(b *bed, c *lettucecompat.Client)
		outcome lettucecompat.Outcome
	}{
		{"for an answer", func(b *bed, _ *lettucecompat.Client) { b.net.BlackHole() }, unknown},
		{"for a connection", func(b *bed, _ *lettucecompat.Client) {
			// The user's own command has the only one, and its answer does not come.
			b.net.HoldReplies()
			go b.rdb.BLPop(ctx, time.Minute, "empty")
			synctest.Wait()
		}, failed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			noPooledTimers()
			synctest.Test(t, func(t *testing.T) {
				b := onMini(t, mindful, func(o *redis.Options) { o.PoolSize = 1 })
				c := b.client(t)
				warm(t, c)
				tc.fault(b, c)
				before, start := headcount.Bubble(), time.Now()
				got := c.Do(ctx, asks("k", 1))
				want(t, "took", time.Since(start), time.Second)
				want(t, "outcome", got.Outcome, tc.outcome)
				want(t, "timeout", errors.Is(got.Err, lettucecompat.ErrTimeout), true)
				live, total := lettucecompat.RoundTrips(c)
				want(t, "live", live, 0)
				want(t, "total", total, 0)
				synctest.Wait() // the alarm has rung, and ends
				if after := headcount.Bubble(); after > before {
					t.Errorf("%d goroutines before, %d after", before, after)
				}
				b.net.Heal()
				time.Sleep(time.Minute)
				want(t, "after", c.Do(ctx, asks("other", 2)).Outcome, ok)
				want(t, "taken", b.raw.Exists(ctx, "k").Val(), int64(0))
			})
		})
	}
}

// TestACallerCarriesItself: on its own goroutine if it cannot leave and the
// client will be back in time, with what the hooks of the client may expect; otherwise not.
func TestACallerCarriesItself(t *testing.T) {
	t.Parallel()
	long := func(o *redis.Options) { o.ReadTimeout = time.Minute }
	for _, tc := range []struct {
		name   string
		option func(*redis.Options)
		wrap   bool // in a type that New does not know
		leaves bool // the caller's context can end
		idle   bool // Redis has not answered for a while
		held   bool // the caller may be held
		own    bool
	}{
		{name: "by itself", option: mindful, own: true},
		{name: "by itself after a while", option: mindful, idle: true, own: true},
		{name: "may leave", option: mindful, leaves: true},
		{name: "default client", option: unchanged},
		{name: "default client, may be held", option: unchanged, held: true, own: true},
		{name: "default client, may be held, after a while", option: unchanged, held: true, idle: true},
		{name: "default client, may be held and leave", option: unchanged, held: true, leaves: true},
		{name: "default client with a long limit, may be held", option: long, held: true},
		{name: "client of an unknown type", option: mindful, held: true, wrap: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := onMini(t, tc.option)
				c := b.client(t)
				if tc.wrap {
					c = newClient(t, struct{ lettucecompat.Redis }{b.rdb})
				}
				cctx, cancel := ctx, context.CancelFunc(func() {})
				if tc.leaves {
					cctx, cancel = context.WithCancel(ctx)
				}
				defer cancel()
				warm(t, c)
				if tc.idle {
					time.Sleep(2 * time.Second)
				}
				here := sentHere(b)
				r := asks("k", 1)
				r.MayBeHeld = tc.held
				want(t, "acquire", c.Do(cctx, r).Outcome, ok)
				want(t, "on the caller's goroutine", here(), tc.own)
			})
		})
	}
}

// TestWire_I7_ACarriedCallIsNotSentLate: a connection that is greeted only after the call's
// time is over brings nothing of it to Redis.
func TestWire_I7_ACarriedCallIsNotSentLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := onMini(t)
		c := b.client(t)
		warm(t, c)
		b.net.HoldReplies()
		go b.rdb.BLPop(ctx, time.Minute, "empty") // has the only connection
		synctest.Wait()
		time.AfterFunc(2*time.Second, b.net.Heal)
		got := c.Do(ctx, patient("k", 1))
		want(t, "outcome", got.Outcome, failed)
		want(t, "timeout", errors.Is(got.Err, lettucecompat.ErrTimeout), true)
		time.Sleep(time.Minute)
		want(t, "taken", b.raw.Exists(ctx, "k").Val(), int64(0))
	})
}

// TestWire_I7_AClientWithoutDeadlinesHoldsOneCaller: when Redis falls silent, the one caller
// that carries its call is held for the client's own limit; all others, those beside it and
// those after it, are free at theirs, though they may be held as well.
func TestWire_I7_AClientWithoutDeadlinesHoldsOneCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := onMini(t)
		c := b.client(t)
		warm(t, c)
		b.net.BlackHole()
		start := time.Now()
		held, beside := make(chan time.Duration, 1), make(chan time.Duration, 10)
		acquire := func(key string, took chan<- time.Duration) {
			got := c.Do(ctx, patient(key, 1))
			if !errors.Is(got.Err, lettucecompat.ErrTimeout) {
				t.Errorf("%s: %+v", key, got)
			}
			took <- time.Since(start)
		}
		go acquire("held", held)
		synctest.Wait()
		for i := range 10 {
			go acquire(fmt.Sprintf("beside%d", i), beside)
		}
		for range 10 {
			want(t, "beside it", <-beside, time.Second)
		}
		if took := <-held; took < 4*time.Second || took > 5*time.Second+100*time.Millisecond {
			t.Errorf("it was held for %v, the client's limit is 5s", took)
		}
		start = time.Now()
		got := c.Do(ctx, patient("held", 1))
		want(t, "after it", time.Since(start), time.Second)
		want(t, "timeout", errors.Is(got.Err, lettucecompat.ErrTimeout), true)
	})
}

// TestWire_I7_AHeldCallerKeepsNoPlace: one connection is dead, and a caller is held by it. Its
// place is free when its time is over, and no second one is held beside it.
func TestWire_I7_AHeldCallerKeepsNoPlace(t *testing.T) {
	t.Parallel()
	for _, places := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) { aHeldCallerKeepsNoPlace(t, places) })
	}
}

func aHeldCallerKeepsNoPlace(t *testing.T, places int) {
	b := onMini(t)
	c := b.client(t, func(o *lettucecompat.Options) { o.MaxInFlight = places })
	warm(t, c)
	acquire := func(key string) (lettucecompat.Answer, time.Duration) {
		start := time.Now()
		return c.Do(ctx, patient(key, 1)), time.Since(start)
	}
	b.net.HalfOpen(faultnet.All) // those that are open; new ones work
	done := make(chan struct{})
	go func() {
		defer close(done)
		if got, took := acquire("held"); !errors.Is(got.Err, lettucecompat.ErrTimeout) || took < 4*time.Second {
			t.Errorf("held: %+v after %v", got, took)
		}
	}()
	synctest.Wait()
	time.Sleep(1100 * time.Millisecond)
	got, took := acquire("other")
	want(t, "another key", got.Outcome, lettucecompat.OutcomeOK)
	want(t, "immediately", took < 100*time.Millisecond, true)
	b.net.HalfOpen(faultnet.All)
	_, took = acquire("beside")
	want(t, "beside the held one", took, time.Second)
	<-done
}

// TestACallerThatCarriesItselfLeavesTheQueueToOthers: it is free when its own answer is
// there, and what queued behind it continues without it.
func TestACallerThatCarriesItselfLeavesTheQueueToOthers(t *testing.T) {
	t.Parallel()
	_, gate := crowd(t, onReal(t, nil, mindful))
	want(t, "pipelines", gate.pipelines.Load(), int64(1))
}

// TestUncontendedPairCosts: exactly two commands, and no more allocations than go-redis makes
// by itself for the same two.
func TestUncontendedPairCosts(t *testing.T) {
	b := onReal(t, nil, mindful)
	c := newClient(t, b.raw)
	pair := newClient(t, b.rdb)
	warm(t, pair)
	warm(t, c)
	before := b.real.Stats(t)["evalsha"]
	const runs = 200
	ours := testing.AllocsPerRun(runs, func() {
		if pair.Do(ctx, asks("k", 7)).Word != has || pair.Do(ctx, gives("k", 7)).Word != hasNothing {
			t.Fatal("failed")
		}
	})
	want(t, "commands of a pair", float64(b.real.Stats(t)["evalsha"]-before)/(runs+1), 2.0)
	message := lettucecompat.ReleaseMessage("k", me(7), time.Now())
	theirs := testing.AllocsPerRun(runs, func() {
		if !bare(b.rdb, message) {
			t.Fatal("failed")
		}
	})
	t.Logf("%.0f allocations a pair, %.0f of them go-redis'", ours, theirs)
	if ours > theirs+1 { // a call is one piece, go-redis' own are several; both means are rounded down
		t.Errorf("%.0f allocations a pair, against %.0f of two bare EVALSHA", ours, theirs)
	}
}

// TestWire_I7_OneSilenceHoldsOneCaller: a round trip without an answer ends the trust that the last
// answer gave, also where that is younger than trustTime. The limits are short, so that the held caller is back before the answer is old.
func TestWire_I7_OneSilenceHoldsOneCaller(t *testing.T) {
	t.Parallel()
	const limit, read = 100 * time.Millisecond, 300 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		b := onMini(t, func(o *redis.Options) { o.ReadTimeout, o.WriteTimeout = read, read })
		c := b.client(t, func(o *lettucecompat.Options) { o.CommandTimeout = limit })
		warm(t, c)
		b.net.BlackHole()
		for i, most := range []time.Duration{read + limit, limit, limit} {
			r := asks("k", 1)
			r.MayBeHeld = true
			start := time.Now()
			got := c.Do(ctx, r)
			if took := time.Since(start); took > most || i == 0 && took <= limit {
				t.Errorf("caller %d is free after %v", i+1, took)
			}
			want(t, "timeout", errors.Is(got.Err, lettucecompat.ErrTimeout), true)
			time.Sleep(read) // what it has left has ended
		}
	})
}
