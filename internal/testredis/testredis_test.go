package testredis_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/silence"
	"github.com/anteroom/anteroom/internal/testredis"
)

func TestMain(m *testing.M) {
	silence.Logs()
	goleak.VerifyTestMain(m)
}

func TestServerLivesAndDies(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := testredis.Start(t)
	c := s.Client(t, func(o *redis.Options) { o.MaxRetries = -1; o.ReadTimeout = pace.Scale(300 * time.Millisecond) })
	if err := c.Set(ctx, "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	s.Pause()
	if err := c.Get(ctx, "k").Err(); err == nil {
		t.Fatal("a paused server answered")
	}
	s.Resume()
	if v, err := c.Get(ctx, "k").Result(); err != nil || v != "v" {
		t.Fatalf("after Resume: %q, %v", v, err)
	}
	if n := s.Stats(t)["set"]; n != 1 {
		t.Fatalf("the server counted %d SET commands, want 1", n)
	}
	pid := s.Pid()
	s.Restart()
	if s.Pid() == pid || s.Pid() == 0 {
		t.Fatalf("process id %d after %d", s.Pid(), pid)
	}
	if n, err := c.Exists(ctx, "k").Result(); err != nil || n != 0 {
		t.Fatalf("after a restart with empty memory: %d, %v", n, err)
	}
}

// A server that something else has ended is named by the test to which it belonged, whatever else that says.
func TestServerThatEndsByItself(t *testing.T) {
	t.Parallel()
	err := testredis.WithoutTest("the name", func(p *testredis.Program) error {
		c := testredis.Start(p).Client(p, func(o *redis.Options) { o.MaxRetries, o.DialerRetries = -1, 1 })
		_ = c.ShutdownNoSave(context.Background()).Err() // the connection ends without an answer
		for c.Ping(context.Background()).Err() == nil {
			time.Sleep(time.Millisecond)
		}
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "ended by itself") {
		t.Fatal(err)
	}
}
