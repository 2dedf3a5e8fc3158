package lettucecompat_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/faultnet"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// sentinels lead a client to one of two servers.
type sentinels struct {
	beds   [2]*bed
	master atomic.Int32
	silent atomic.Pointer[func(ctx context.Context) error] // what a dial does without an answer
	dials  atomic.Int64
}

// addressed is a connection to a host of its own.
type addressed struct {
	net.Conn
	host byte
}

func (a addressed) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, a.host)} }

func (s *sentinels) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	s.dials.Add(1)
	if silent := s.silent.Load(); silent != nil {
		return nil, (*silent)(ctx)
	}
	i := s.master.Load()
	nc, err := s.beds[i].net.Dial(ctx, network, addr)
	return addressed{nc, byte(i)}, err
}

// guided has a client whose master Sentinels name, in virtual time. go-redis' own, with which it learns the scripts, has no part in that.
func guided(t *testing.T, test func(t *testing.T, s *sentinels, c *lettucecompat.Client)) {
	synctest.Test(t, func(t *testing.T) {
		s := &sentinels{beds: [2]*bed{onMini(t), onMini(t)}}
		opt := options("FailoverClient", faultnet.DialFunc(s.dial))
		rdb := redis.NewClient(opt)
		t.Cleanup(func() { _ = rdb.Close() })
		test(t, s, newClient(t, rdb, func(o *lettucecompat.Options) { o.CommandTimeout = time.Second }))
	})
}

// A client keeps its locks at a master that is well, for as long as its Sentinels do not answer.
func TestFollow_SilentSentinels(t *testing.T) {
	t.Parallel()
	for name, silent := range map[string]func(ctx context.Context) error{
		"refused": func(context.Context) error { return errors.New("all sentinels are unreachable") },
		"silent":  func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			guided(t, func(t *testing.T, s *sentinels, c *lettucecompat.Client) {
				got := c.Do(ctx, asks("k", 1))
				want(t, "acquire", got.Word, has)
				want(t, "outcome", got.Outcome, ok)
				s.silent.Store(&silent)
				for i := range 20 {
					time.Sleep(10 * time.Second)
					begin := time.Now()
					if r := c.Extend(ctx, renews("k", 1), 0); r.Outcome != ok {
						t.Fatalf("renewal %d: %+v", i, r)
					}
					if took := time.Since(begin); took > 250*time.Millisecond || name == "refused" && took > 0 {
						t.Errorf("renewal %d took %v", i, took)
					}
				}
			})
		})
	}
}

// Nothing goes to the old master after a pause, though it answers; and little while commands are under way.
func TestFollow_AnotherMaster(t *testing.T) {
	t.Parallel()
	for name, pause := range map[string]time.Duration{"after a pause": time.Minute, "busy": 100 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			guided(t, func(t *testing.T, s *sentinels, c *lettucecompat.Client) {
				for range 30 {
					want(t, "acquire", c.Do(ctx, asks("k", 1)).Outcome, ok)
					time.Sleep(100 * time.Millisecond)
				}
				s.master.Store(1)
				late := time.Now().Add(lettucecompat.FollowEvery + pause)
				for i := range 30 {
					time.Sleep(pause)
					got := c.Do(ctx, asks("new", uint64(i+1)))
					want(t, "acquire", got.Outcome, ok)
					old := s.beds[0].raw.Exists(ctx, "new").Val() == 1
					if old && (pause > time.Second || time.Now().After(late)) {
						t.Fatalf("command %d went to the old master", i)
					}
					s.beds[0].raw.Del(ctx, "new")
				}
				if n := s.dials.Load(); n > 60 {
					t.Errorf("%d dials", n)
				}
			})
		})
	}
}

// A question without an answer is no reason to trust the old master later.
func TestFollow_AfterABlip(t *testing.T) {
	t.Parallel()
	guided(t, func(t *testing.T, s *sentinels, c *lettucecompat.Client) {
		want(t, "acquire", c.Do(ctx, asks("k", 1)).Outcome, ok)
		silent := func(context.Context) error { return errors.New("all sentinels are unreachable") }
		s.silent.Store(&silent)
		time.Sleep(10 * time.Second)
		want(t, "during the blip", c.Extend(ctx, renews("k", 1), 0).Outcome, ok)
		s.silent.Store(nil)
		s.master.Store(1)
		time.Sleep(10 * time.Minute)
		want(t, "after the failover", c.Do(ctx, asks("new", 2)).Outcome, ok)
		want(t, "at the old master", s.beds[0].raw.Exists(ctx, "new").Val(), int64(0))
	})
}

// Who has little time waits a quarter of it.
func TestFollow_ShortOfTime(t *testing.T) {
	t.Parallel()
	guided(t, func(t *testing.T, s *sentinels, c *lettucecompat.Client) {
		want(t, "acquire", c.Do(ctx, asks("k", 1)).Outcome, ok)
		want(t, "first renewal", c.Extend(ctx, renews("k", 1), 0).Outcome, ok) // it loads the script
		silent := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		s.silent.Store(&silent)
		time.Sleep(10 * time.Second)
		begin := time.Now()
		want(t, "renewal", c.Extend(ctx, renews("k", 1), 100*time.Millisecond).Outcome, ok)
		want(t, "it takes", time.Since(begin), 25*time.Millisecond)
	})
}
