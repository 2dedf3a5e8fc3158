package lettucecompat_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/faultnet"
	"github.com/anteroom/anteroom/internal/pace"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// watchConfirmed returns a watch whose first signal has been taken.
func watchConfirmed(t testing.TB, c *lettucecompat.Client, key string) *lettucecompat.Watch {
	t.Helper()
	w := c.Watch(key)
	t.Cleanup(w.Close)
	signal(t, "confirmation of "+key, w.C())
	want(t, "confirmed", w.Confirmed(), true)
	return w
}

func quiet(t testing.TB, w *lettucecompat.Watch) {
	t.Helper()
	select {
	case <-w.C():
		t.Fatal("a signal that nothing caused")
	default:
	}
}

func TestWire_I9_WokenByRelease(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		holder := b.client(t)
		waiter := newClient(t, b.raw, func(o *lettucecompat.Options) { o.ClientID = "you" })
		want(t, "acquire", holder.Do(ctx, asks("k", 1)).Outcome, ok)
		w := watchConfirmed(t, waiter, "k")
		other := watchConfirmed(t, waiter, "other")
		rel := holder.Do(ctx, gives("k", 1))
		want(t, "release", rel.Outcome, ok)
		signal(t, "release", w.C())
		quiet(t, other)
		// Confirmed already: the next watch of the channel is signalled immediately.
		second := waiter.Watch("k")
		defer second.Close()
		quietOnce := len(second.C())
		want(t, "signals of a watch on a confirmed channel", quietOnce, 1)
		quiet(t, w)
	})
}

// TestWire_I9_Resubscribed: after the connection was killed every watch is signalled,
// because a message may have been lost in between.
func TestWire_I9_Resubscribed(t *testing.T) {
	t.Parallel()
	b := onReal(t, nil)
	changes := make(chan bool, 10)
	c := b.client(t, func(o *lettucecompat.Options) { o.OnSubscription = func(up bool, _ error) { changes <- up } })
	w1, w2 := watchConfirmed(t, c, "k1"), watchConfirmed(t, c, "k2")
	want(t, "up", <-changes, true)
	if err := b.raw.Do(ctx, "client", "kill", "type", "pubsub").Err(); err != nil {
		t.Fatal(err)
	}
	signal(t, "k1 again", w1.C())
	signal(t, "k2 again", w2.C())
	want(t, "down", <-changes, false)
	want(t, "up again", <-changes, true)
	b.raw.Publish(ctx, "lock:release:k1", lettucecompat.ReleaseMessage("k1", "x", time.Now()))
	signal(t, "a message on the new connection", w1.C())
}

func TestReconnect(t *testing.T) {
	t.Parallel()
	b := onReal(t, nil)
	c := b.client(t)
	w := watchConfirmed(t, c, "k")
	before := b.net.Dials()
	c.Reconnect()
	signal(t, "Reconnect", w.C())
	eventually(t, "a new connection", func() bool { return b.net.Dials() > before && w.Confirmed() })
}

// split lets the subscription go through a network of its own.
type split struct {
	*redis.Client
	sub *redis.Client
}

func (s split) Subscribe(ctx context.Context, channels ...string) *redis.PubSub {
	return s.sub.Subscribe(ctx, channels...)
}

func TestProbe(t *testing.T) {
	t.Parallel()
	b := onReal(t, nil)
	subnet := faultnet.New(nil)
	sub := redis.NewClient(options(b.real.Addr(), subnet.Dial))
	defer sub.Close()
	c := newClient(t, split{b.rdb, sub}, func(o *lettucecompat.Options) { o.CommandTimeout = pace.Scale(300 * time.Millisecond) })
	if err := c.Probe(ctx); err != nil {
		t.Fatalf("nothing is subscribed: %v", err)
	}
	w := watchConfirmed(t, c, "k")
	err := c.Probe(ctx)
	if err != nil {
		t.Fatalf("healthy: %v", err)
	}
	// Open, and dead: nothing but the probe can know.
	subnet.HoldReplies()
	if err = c.Probe(ctx); !errors.Is(err, lettucecompat.ErrNotDelivered) {
		t.Fatalf("dead connection: %v", err)
	}
	subnet.Heal()
	signal(t, "the new connection", w.C())
	eventually(t, "healthy again", func() bool { return c.Probe(ctx) == nil })
	cctx, cancel := context.WithCancel(ctx)
	cancel()
	if err = c.Probe(cctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("cancelled: %v", err)
	}
}

// TestAWatchEndsItsSubscription: with the last watch of a channel, so that we are no foreign listener to the releases
// of others. A watch that comes immediately finds it made anew.
func TestAWatchEndsItsSubscription(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := onMini(t)
		c := b.client(t)
		subscribed := func() int {
			synctest.Wait()
			return b.mini.PubSubNumSub("lock:release:k")["lock:release:k"]
		}
		w1, w2 := c.Watch("k"), c.Watch("k")
		<-w1.C()
		w1.Close()
		w1.Close()
		want(t, "watched", subscribed(), 1)
		w2.Close()
		want(t, "not watched", subscribed(), 0)
		want(t, "channels", lettucecompat.Channels(c), 1)
		for range 100 {
			w := c.Watch("k")
			<-w.C()
			w.Close()
			w = c.Watch("k")
			<-w.C()
			synctest.Wait()
			want(t, "confirmed", w.Confirmed(), true)
			w.Close()
		}
		for i := range 300 {
			w := c.Watch(fmt.Sprintf("k%d", i))
			<-w.C()
			defer w.Close()
		}
		want(t, "channels", lettucecompat.Channels(c), 301)
		want(t, "not watched", subscribed(), 0)
	})
}

// TestWatchesWhileDownLeaveNothing: with no connection at all a watch costs its own
// memory only.
func TestWatchesWhileDownLeaveNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := onMini(t)
		b.net.Refuse()
		c := b.client(t)
		for i := range 10_000 {
			c.Watch(fmt.Sprintf("k%d", i)).Close()
		}
		want(t, "channels", lettucecompat.Channels(c), 1)
		w := c.Watch("k")
		time.Sleep(time.Minute)
		if n := b.net.Dials(); n < 30 || n > 100 {
			t.Fatalf("%d dials in a minute, want about one in 0.5 to 2 s", n)
		}
		b.net.Heal()
		<-w.C()
		want(t, "confirmed", w.Confirmed(), true)
		w.Close()
	})
}

func TestMalformedMessages(t *testing.T) {
	t.Parallel()
	b := onReal(t, nil)
	warnings := make(chan lettucecompat.Warning, 10)
	forced := make(chan string, 10)
	c := b.client(t, func(o *lettucecompat.Options) {
		o.OnWarning = func(w lettucecompat.Warning) { warnings <- w }
		o.OnMessage = func(m lettucecompat.Message) { forced <- m.Key }
	})
	w := watchConfirmed(t, c, "k")
	for _, payload := range []string{"", "{", "null", "[]", "\x00\xff", `{"lockKey":7}`} {
		b.raw.Publish(ctx, "lock:release:k", payload)
		signal(t, payload, w.C())
	}
	for _, payload := range []string{"", "{}", "forced", "forced - k", "called - 1 1 0 0 k", "probe x"} {
		b.raw.Publish(ctx, "anteroom:client:me", payload)
	}
	eventually(t, "all are counted", func() bool {
		return len(warnings)+lettucecompat.Unreported(c, lettucecompat.WarnMalformedMessage) == 12
	})
	want(t, "warnings", len(warnings), 1)
	want(t, "forced", len(forced), 0)
	b.raw.Publish(ctx, "anteroom:client:me", "forced - 1 k")
	want(t, "forced", <-forced, "k")
}

func TestForceReleaseNotifiesTheHolder(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		forced := make(chan lettucecompat.Message, 10)
		holder := b.client(t, func(o *lettucecompat.Options) {
			o.OnMessage = func(m lettucecompat.Message) { forced <- m }
		})
		other := newClient(t, b.raw, func(o *lettucecompat.Options) { o.ClientID = "you" })
		const key = "k\xff\x00{\"}" // any bytes
		watchConfirmed(t, holder, "anything")
		want(t, "acquire", holder.Do(ctx, asks(key, 17)).Outcome, ok)
		waiter := watchConfirmed(t, other, key)
		released, err := other.ForceRelease(ctx, key, false)
		if err != nil || len(released) != 1 || released[0] != me(17) {
			t.Fatalf("%v, %v", released, err)
		}
		want(t, "notice", <-forced, lettucecompat.Message{Kind: lettucecompat.MessageForced, Key: key, N: number(17)})
		signal(t, "the waiter", waiter.C())
	})
}

// A connection that fails is reported down when it fails, not when go-redis has given up
// making another one to a server that is silent.
func TestSubscriber_DownIsReportedImmediately(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		type change struct {
			up bool
			at time.Time
		}
		changes := make(chan change, 10)
		b := onMini(t)
		c := b.client(t, func(o *lettucecompat.Options) {
			o.OnSubscription = func(up bool, _ error) { changes <- change{up, time.Now()} }
		})
		c.Subscribe()
		want(t, "up", (<-changes).up, true)
		time.Sleep(time.Minute)
		b.net.BlackHole() // new connections are made and never greeted
		failed := time.Now()
		b.net.CloseAll()
		down := <-changes
		want(t, "up", down.up, false)
		want(t, "notified after", down.at.Sub(failed), time.Duration(0))
		want(t, "still up", lettucecompat.Up(c), false)
		b.net.Heal()
		want(t, "up again", (<-changes).up, true)
	})
}
