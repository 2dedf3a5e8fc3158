package lettucecompat_test

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"

	"github.com/anteroom/anteroom/internal/faultnet"
	"github.com/anteroom/anteroom/internal/testredis"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// seen is a hook that notes what goes through it.
type seen struct {
	plainHook
	mu     sync.Mutex
	names  []string
	values []any
}

func (s *seen) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if c, is := cmd.(interface{ Val() any }); is && cmd.Name() == "evalsha" {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.names, s.values = append(s.names, cmd.FullName()), append(s.values, c.Val())
		}
		return err
	}
}

// TestDirect_HooksSeeEachCommand, and its answer, as they do where go-redis sends it.
func TestDirect_HooksSeeEachCommand(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		each := func(rdb lettucecompat.Redis) {
			c := newClient(t, rdb)
			warm(t, c)
			want(t, "renew", c.Renew(ctx, []lettucecompat.Renewal{renews("k", 1)}, 0)[0].Outcome, gone)
			want(t, "status", c.Status(ctx, []lettucecompat.Query{{Key: "k", Field: me(1)}}, 0)[0].Outcome, gone)
			if _, err := c.ForceRelease(ctx, "k", false); err != nil {
				t.Error(err)
			}
		}
		each(b.raw) // the scripts are loaded
		direct, delegated := &seen{}, &seen{}
		b.rdb.AddHook(direct)
		b.raw.AddHook(delegated)
		each(b.rdb)
		each(struct{ lettucecompat.Redis }{b.raw})
		want(t, "commands", len(direct.names), 5)
		want(t, "what they were", fmt.Sprint(direct.names), fmt.Sprint(delegated.names))
		want(t, "what was answered", fmt.Sprint(direct.values), fmt.Sprint(delegated.values))
	})
}

// replacing is a hook that sends another command in place of each script.
type replacing struct{ plainHook }

func (replacing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() != "evalsha" {
			return next(ctx, cmd)
		}
		other := redis.NewCmd(ctx, cmd.Args()...)
		err := next(ctx, other)
		cmd.(interface{ SetVal(any) }).SetVal(other.Val())
		cmd.SetErr(err)
		return err
	}
}

// TestDirect_AHookSendsAnotherCommand: go-redis does, on connections of its pool.
func TestDirect_AHookSendsAnotherCommand(t *testing.T) {
	t.Parallel()
	b := onReal(t, nil)
	warm(t, newClient(t, b.raw)) // the script is loaded
	b.rdb.AddHook(replacing{})
	c := b.client(t)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if got := c.Do(ctx, asks("k"+strconv.Itoa(i), 1)); got.Word != has {
				t.Errorf("%+v", got)
			}
		})
	}
	all.Wait()
	b.net.CloseAll()
	warm(t, c)
}

// retrying is a hook that sends a command twice, as one that retries.
type retrying struct{ plainHook }

func (retrying) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		_ = next(ctx, cmd)
		return next(ctx, cmd)
	}
}

// TestWire_I1_AHookSendsOnce: the second time it gets the answer of the first. What that has loaded comes in between.
func TestWire_I1_AHookSendsOnce(t *testing.T) {
	t.Parallel()
	b := onReal(t, nil)
	b.rdb.AddHook(retrying{})
	c := b.client(t)
	want(t, "outcome", c.Do(ctx, asks("k", 1)).Outcome, ok)
	want(t, "executed, and refused for want of the script", b.real.Stats(t)["evalsha"], int64(2))
	b.raw.ConfigResetStat(ctx)
	want(t, "outcome", c.Do(ctx, gives("k", 1)).Outcome, ok)
	want(t, "executed", b.real.Stats(t)["evalsha"], int64(1))
}

// TestWire_I1_AHookThatRetriesAfterALostReply: it is refused, and what has become of the command is unknown.
func TestWire_I1_AHookThatRetriesAfterALostReply(t *testing.T) {
	t.Parallel()
	b := onMini(t)
	b.rdb.AddHook(retrying{})
	c := b.client(t)
	warm(t, c)
	b.net.OnRequest("evalsha", 1, faultnet.Lost)
	got := c.Do(ctx, asks("k", 1))
	want(t, "outcome", got.Outcome, unknown)
	b.wantHash(t, "k", hash{me(1): "1"})
	want(t, "it was not sent again", strings.Contains(got.Err.Error(), "again"), true)
}

// prefixing is a hook that renames keys, where they are.
type prefixing struct{ plainHook }

func (prefixing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if args := cmd.Args(); cmd.Name() == "evalsha" {
			for i := range args[2].(int) {
				args[3+i] = "app:" + args[3+i].(string)
			}
		}
		return next(ctx, cmd)
	}
}

// TestDirect_AHookThatRenamesKeys: what travels is what the hook has made of the arguments.
func TestDirect_AHookThatRenamesKeys(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, b *bed) {
		b.rdb.AddHook(prefixing{})
		c := b.client(t)
		for i := range 2 { // the first time the script is loaded
			want(t, "acquire", c.Do(ctx, asks("k", i)).Outcome, ok)
			b.wantHash(t, "app:k", hash{me(i): "1"})
			b.wantHash(t, "k", nil)
			want(t, "release", c.Do(ctx, gives("k", i)).Outcome, ok)
		}
	})
}

// counting is a limiter that counts.
type counting struct{ allowed, results, failed atomic.Int64 }

func (l *counting) Allow() error { l.allowed.Add(1); return nil }

func (l *counting) ReportResult(err error) {
	l.results.Add(1)
	if err != nil {
		l.failed.Add(1)
	}
}

// TestDirect_TheLimiterIsAsked about each command, and told how it ended.
func TestDirect_TheLimiterIsAsked(t *testing.T) {
	t.Parallel()
	l := &counting{}
	b := onMini(t, func(o *redis.Options) { o.Limiter = l })
	c := b.client(t)
	warm(t, c)
	allowed, results := l.allowed.Load(), l.results.Load()
	want(t, "acquire", c.Do(ctx, asks("k", 1)).Outcome, ok)
	want(t, "asked", l.allowed.Load()-allowed, int64(1))
	want(t, "told", l.results.Load()-results, int64(1))
}

// TestDirect_OneConnection serves many callers, near and far, and no other is opened.
func TestDirect_OneConnection(t *testing.T) {
	t.Parallel()
	for _, delay := range []time.Duration{0, time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			b := onMini(t)
			c := b.client(t)
			b.net.Delay(delay)
			for range 20 {
				warm(t, c)
			}
			before := b.net.Open() // with that of go-redis for SCRIPT LOAD
			together(t, c, 100)
			want(t, "connections", b.net.Open(), before)
		})
	}
}

// impatient is a hook that looks at a command, and first sends it with a context that has ended.
type impatient struct{ plainHook }

func (impatient) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		_ = cmd.Args()
		ended, end := context.WithCancel(ctx)
		if end(); next(ended, cmd) == nil {
			return nil
		}
		return next(ctx, cmd)
	}
}

// TestDirect_AHookWhoseContextHasEnded has sent nothing, and may send then.
func TestDirect_AHookWhoseContextHasEnded(t *testing.T) {
	t.Parallel()
	b := onReal(t, nil)
	warm(t, b.client(t))
	b.rdb.AddHook(impatient{})
	got := b.client(t).Do(ctx, asks("k", 1))
	want(t, "outcome", got.Outcome, ok)
	want(t, "word", got.Word, has)
}

// TestDirect_ManyFirstCalls: the server knows no script yet. One call loads it by go-redis, and the others wait for that. None carries
// the source, which an ACL may forbid.
func TestDirect_ManyFirstCalls(t *testing.T) {
	t.Parallel()
	b := onReal(t, nil)
	b.net.Delay(50 * time.Millisecond) // all are sent before one is answered
	c := b.client(t)
	together(t, c, 100)
	if n := b.net.Dials(); n > 5 { // two of ours at most, and one of go-redis, which takes another now and then
		t.Errorf("%d connections", n)
	}
	stats := b.real.Stats(t)
	if stats["script|load"] > 3 || stats["eval"] > 0 {
		t.Errorf("%v", stats)
	}
}

// TestDirect_AFewDeadConnections: a firewall has forgotten the connections that there are. Only what travels on them is late.
func TestDirect_AFewDeadConnections(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := onMini(t)
		c := b.client(t)
		warm(t, c)
		b.net.HalfOpen(faultnet.Commands)
		const calls = 50
		took := make(chan time.Duration, calls)
		for i := range calls {
			go func() {
				start := time.Now()
				c.Do(ctx, asks("k"+strconv.Itoa(i), i))
				took <- time.Since(start)
			}()
			time.Sleep(10 * time.Millisecond)
		}
		late := 0
		for range calls {
			if <-took > 20*time.Millisecond {
				late++
			}
		}
		want(t, "late", late, 1)
	})
}

// TestDirect_AServerThatCloses a connection that is not in use costs no command its answer.
func TestDirect_AServerThatCloses(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	c := newClient(t, s.Client(t))
	warm(t, c)
	for i := range 20 {
		if err := s.Client(t).Do(ctx, "client", "kill", "type", "normal").Err(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond) // it has long not been used, and the end of the connection is here
		want(t, "acquire", c.Do(ctx, asks("k", 2*i)).Outcome, ok)
		want(t, "release", c.Do(ctx, gives("k", 2*i)).Outcome, ok)
	}
}

// TestDirect_NoMoreClients: the server has ended the connections and admits no new ones. Nothing was sent, and later all is as before.
func TestDirect_NoMoreClients(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	admin := s.Client(t)
	c := newClient(t, s.Client(t))
	warm(t, c)
	pool := admin.Conn()
	defer pool.Close()
	for _, command := range []string{"config set maxclients 1", "client kill type normal skipme yes"} {
		var args []any
		for word := range strings.FieldsSeq(command) {
			args = append(args, word)
		}
		if err := pool.Do(ctx, args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(20 * time.Millisecond) // the end of the connection is here
	want(t, "outcome", c.Do(ctx, asks("k", 1)).Outcome, failed)
	if err := pool.Do(ctx, "config", "set", "maxclients", 100).Err(); err != nil {
		t.Fatal(err)
	}
	want(t, "acquire", c.Do(ctx, asks("k", 2)).Word, has)
}

// rotating provides credentials that change.
type rotating struct {
	mu        sync.Mutex
	listeners []auth.CredentialsListener
}

func (r *rotating) Subscribe(l auth.CredentialsListener) (auth.Credentials, auth.UnsubscribeFunc, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listeners = append(r.listeners, l)
	return auth.NewBasicCredentials("default", ""), func() error { return nil }, nil
}

func (r *rotating) rotate() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.listeners {
		l.OnNext(auth.NewBasicCredentials("default", ""))
	}
}

// TestDirect_RotatedCredentials have the connection made anew.
func TestDirect_RotatedCredentials(t *testing.T) {
	t.Parallel()
	r := &rotating{}
	b := onReal(t, nil, func(o *redis.Options) { o.StreamingCredentialsProvider = r })
	c := b.client(t)
	warm(t, c)
	before, dials := b.net.Open(), b.net.Dials()
	r.rotate()
	warm(t, c)
	if b.net.Dials() == dials {
		t.Error("no connection was made anew")
	}
	eventually(t, "the connection of before has ended", func() bool { return b.net.Open() <= before })
}

// TestTrack_RotatedCredentials: the tracking connection, too, and what is removed then is found.
func TestTrack_RotatedCredentials(t *testing.T) {
	t.Parallel()
	r := &rotating{}
	w := onReal(t, nil, func(o *redis.Options) { o.StreamingCredentialsProvider = r }).follow(t, nil)
	defer w.hold(t, "k").Close()
	reads := lettucecompat.TrackReads(w.c)
	r.rotate()
	eventually(t, "read again, on another connection", func() bool { return lettucecompat.TrackReads(w.c) > reads })
	w.do(t, "del", "k")
	w.told(t, "DEL", "k")
}

// TestDirect_ADialerThatFails: nothing was sent.
func TestDirect_ADialerThatFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := onMini(t, func(o *redis.Options) {
			dial := o.Dialer
			first := true
			o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
				if first {
					first = false
					return nil, errNo
				}
				return dial(ctx, network, addr)
			}
		})
		c := b.client(t)
		got := c.Do(ctx, asks("k", 1))
		want(t, "outcome", got.Outcome, failed)
		want(t, "class", lettucecompat.Classify(got.Err), lettucecompat.ClassUnreachable)
		want(t, "the next", c.Do(ctx, asks("k", 1)).Outcome, ok)
	})
}
