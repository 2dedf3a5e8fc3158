package lettucecompat_test

import (
	"context"
	"maps"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/anteroom/anteroom/internal/faultnet"
	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

var ctx = context.Background()

// bed is a server, a plain client to inspect it, and the means to disturb it.
type bed struct {
	raw  *redis.Client // not disturbed
	rdb  *redis.Client // what a Client under test gets; goes through net
	net  *faultnet.Network
	mini *miniredis.Miniredis // nil on a real server
	real *testredis.Server    // nil on miniredis
}

// onMini works inside and outside of a synctest bubble.
func onMini(t testing.TB, opts ...func(*redis.Options)) *bed {
	t.Helper()
	m := miniredis.NewMiniRedis()
	m.ClockTTL(true)
	gate := faultnet.NewGate(m)
	b := &bed{mini: m, net: faultnet.New(gate.Dial)}
	b.raw = redis.NewClient(options("127.0.0.1:6379", gate.Dial))
	b.rdb = redis.NewClient(options("127.0.0.1:6379", b.net.Dial, opts...))
	t.Cleanup(func() {
		_ = b.rdb.Close()
		_ = b.raw.Close()
		b.net.CloseAll()
		gate.Close()
	})
	return b
}

func onReal(t testing.TB, args []string, opts ...func(*redis.Options)) *bed {
	t.Helper()
	s := testredis.Start(t, args...)
	b := &bed{real: s, net: faultnet.New(nil), raw: s.Client(t)}
	b.rdb = redis.NewClient(options(s.Addr(), b.net.Dial, opts...))
	t.Cleanup(func() { _ = b.rdb.Close(); b.net.CloseAll() })
	return b
}

func options(addr string, dial faultnet.DialFunc, opts ...func(*redis.Options)) *redis.Options {
	o := &redis.Options{
		Addr: addr, Dialer: dial,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	for _, f := range opts {
		f(o)
	}
	return o
}

// both runs a test on miniredis and on a real server.
func both(t *testing.T, test func(t *testing.T, b *bed)) {
	t.Run("miniredis", func(t *testing.T) { test(t, onMini(t)) })
	t.Run("redis", func(t *testing.T) { test(t, onReal(t, nil)) })
}

// client makes a Client on b, closed at the end of the test.
func (b *bed) client(t testing.TB, change ...func(*lettucecompat.Options)) *lettucecompat.Client {
	t.Helper()
	if b.mini != nil && time.Now().Year() < 2020 { // virtual time, which begins in 2000: the default limit is exact
		change = append([]func(*lettucecompat.Options){func(o *lettucecompat.Options) { o.CommandTimeout = time.Second }}, change...)
	}
	return newClient(t, b.rdb, change...)
}

func newClient(t testing.TB, rdb lettucecompat.Redis, change ...func(*lettucecompat.Options)) *lettucecompat.Client {
	t.Helper()
	// Generous, for machines that are busy with something else.
	opt := lettucecompat.Options{ClientID: "me", CommandTimeout: 30 * time.Second}
	for _, f := range change {
		f(&opt)
	}
	c, err := lettucecompat.New(rdb, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func (b *bed) hash(t testing.TB, key string) map[string]string {
	t.Helper()
	h, err := b.raw.HGetAll(ctx, key).Result()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func (b *bed) wantHash(t testing.TB, key string, want map[string]string) {
	t.Helper()
	if got := b.hash(t, key); !maps.Equal(got, want) {
		t.Fatalf("hash %q is %v, want %v", key, got, want)
	}
}

func (b *bed) wantTTL(t testing.TB, key string, low, high time.Duration) {
	t.Helper()
	if got := b.raw.PTTL(ctx, key).Val(); got < low || got > high {
		t.Fatalf("TTL of %q is %v, want %v to %v", key, got, low, high)
	}
}

// signal waits for a signal on ch.
func signal(t testing.TB, what string, ch <-chan struct{}) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(pace.Hang):
		t.Fatalf("no signal: %s", what)
	}
}

// eventually polls for what no signal reports.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(pace.Hang); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

func want(t testing.TB, what string, got, want any) {
	t.Helper()
	if got != want {
		t.Fatalf("%s is %v, want %v", what, got, want)
	}
}

// plainHook is what a hook does with what it does not care for.
type plainHook struct{}

func (plainHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (plainHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// together has n callers take a lock each, all at the same time.
func together(t *testing.T, c *lettucecompat.Client, n int) {
	t.Helper()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if got := c.Do(ctx, asks("k"+strconv.Itoa(i), 1)); got.Outcome != ok || got.Word != has {
				t.Errorf("%+v", got)
			}
		})
	}
	all.Wait()
}
