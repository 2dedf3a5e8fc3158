package lettucecompat_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/pace"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// warm opens the connection, so that the next command is written immediately.
func warm(t testing.TB, c *lettucecompat.Client) {
	t.Helper()
	c.Do(ctx, asks("warm", 99))
	if got := c.Do(ctx, gives("warm", 99)); got.Outcome != ok {
		t.Fatalf("warming up: %+v", got)
	}
}

// TestWire_I1_NeverRetried: each way in which go-redis would send a command again, with
// its own defaults (3 retries). The server counts.
func TestWire_I1_NeverRetried(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		fault func(b *bed)
	}{
		{"reply later than ReadTimeout", func(b *bed) { b.net.HoldReplies() }},
		{"cut before the reply", func(b *bed) { b.net.CutReplies(1, 0) }},
		{"cut in the reply", func(b *bed) { b.net.CutReplies(1, 2) }},
	} {
		never := func(t *testing.T, b *bed, make func(testing.TB, ...func(*lettucecompat.Options)) *lettucecompat.Client) {
			c := make(t, func(o *lettucecompat.Options) { o.CommandTimeout = pace.Scale(300 * time.Millisecond) })
			warm(t, c)
			b.raw.ConfigResetStat(ctx)
			tc.fault(b)
			got := c.Do(ctx, asks("k", 1))
			b.net.Heal()
			want(t, "outcome", got.Outcome, unknown)
			want(t, "class", lettucecompat.Classify(got.Err), lettucecompat.ClassUnknown)
			want(t, "EVALSHA executed", b.real.Stats(t)["evalsha"], int64(1))
			b.wantHash(t, "k", hash{me(1): "1"})

			want(t, "a repeat", c.Do(ctx, asks("k", 1)).Word, void)
			b.wantHash(t, "k", hash{me(1): "1"})

			tc.fault(b)
			want(t, "release", c.Do(ctx, gives("k", 1)).Outcome, unknown)
			b.net.Heal()
			want(t, "repeated release", c.Do(ctx, gives("k", 1)).Word, lost)
			b.wantHash(t, "k", hash{})
		}
		soon := func(o *redis.Options) { o.ReadTimeout = pace.Scale(300 * time.Millisecond) }
		t.Run(tc.name, func(t *testing.T) {
			b := onReal(t, nil, soon)
			never(t, b, b.client)
		})
		t.Run(tc.name+" by go-redis", func(t *testing.T) {
			b := onReal(t, nil, soon)
			never(t, b, b.wrapped)
		})
	}
}

// noPooledTimers is called before a bubble in which a command waits for a connection. go-redis keeps the timers of such waits
// in a sync.Pool, which two collections empty, and one of another bubble panics. A test that calls it is not parallel.
func noPooledTimers() {
	runtime.GC()
	runtime.GC()
}

// TestWire_I2_WithdrawnIsCertain: a command that only waits for a connection when its
// caller leaves has certainly no effect, now and later.
func TestWire_I2_WithdrawnIsCertain(t *testing.T) {
	noPooledTimers()
	synctest.Test(t, func(t *testing.T) {
		b := onMini(t, func(o *redis.Options) { o.PoolSize = 1 })
		c := b.wrapped(t)
		warm(t, c)
		b.net.HoldReplies()
		results := make(chan lettucecompat.Answer, 1)
		go func() { results <- c.Do(ctx, asks("sent", 1)) }()
		synctest.Wait()
		start := time.Now()
		waiting := c.Do(ctx, asks("waiting", 2))
		want(t, "waited", time.Since(start), time.Second)
		want(t, "waiting for a connection", waiting.Outcome, failed)
		want(t, "timeout", errors.Is(waiting.Err, lettucecompat.ErrTimeout), true)
		want(t, "sent", (<-results).Outcome, unknown)
		b.net.Heal()
		time.Sleep(10 * time.Second)
		want(t, "the withdrawn command ran", b.raw.Exists(ctx, "waiting").Val(), int64(0))
	})
}

func TestWire_I2_Unreachable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := onMini(t)
		c := b.client(t, func(o *lettucecompat.Options) { o.CommandTimeout = 5 * time.Second })
		b.net.Refuse()
		got := c.Do(ctx, asks("k", 1))
		want(t, "outcome", got.Outcome, failed)
		want(t, "class", lettucecompat.Classify(got.Err), lettucecompat.ClassUnreachable)
	})
}

// TestWire_I7_AbandonedImmediately: exactly at its limit in virtual time, and immediately when
// the context ends, although the connection answers nothing for its own five seconds.
func TestWire_I7_AbandonedImmediately(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := onMini(t)
		c := b.client(t)
		warm(t, c)
		b.net.BlackHole()
		start := time.Now()
		s := asks("k", 1)
		s.Timeout = 300 * time.Millisecond
		got := c.Do(ctx, s)
		want(t, "took", time.Since(start), 300*time.Millisecond)
		want(t, "outcome", got.Outcome, unknown)

		cause := errors.New("enough")
		cctx, cancel := context.WithCancelCause(ctx)
		time.AfterFunc(70*time.Millisecond, func() { cancel(cause) })
		start = time.Now()
		rel := c.Do(cctx, gives("k", 2))
		want(t, "took", time.Since(start), 70*time.Millisecond)
		want(t, "error", errors.Is(rel.Err, cause), true)
		want(t, "cancelled before", c.Do(cctx, asks("k", 3)).Outcome, failed)
		b.net.Heal()
		// The abandoned acquire was written: it takes effect now, late. Its clean-up wins.
		synctest.Wait()
		b.wantHash(t, "k", hash{me(1): "1"})
		want(t, "clean-up", c.Do(ctx, gives("k", 1)).Word, hasNothing)
	})
}

// TestStoppedServer: with Redis under SIGSTOP a caller is free at its own limit, far
// below the read limit, and what it sent takes effect later.
func TestStoppedServer(t *testing.T) {
	t.Parallel()
	b := onReal(t, nil, func(o *redis.Options) { o.ReadTimeout = 2 * pace.Hang })
	c := b.client(t)
	warm(t, c)
	b.real.Pause()
	start := time.Now()
	s := asks("k", 1)
	s.Timeout = pace.Scale(100 * time.Millisecond) // enough to write it
	got := c.Do(ctx, s)
	if d := time.Since(start); d > pace.Hang {
		t.Fatalf("free after %v", d)
	}
	want(t, "outcome", got.Outcome, unknown)
	b.real.Resume()
	eventually(t, "the late acquire", func() bool { return b.raw.Exists(ctx, "k").Val() == 1 })
	want(t, "clean-up", c.Do(ctx, gives("k", 1)).Word, hasNothing)
}
