package lettucecompat_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/silence"
	"github.com/anteroom/anteroom/internal/testredis"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
)

// lines is a logger of go-redis that keeps what it is given.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) Printf(_ context.Context, format string, v ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, fmt.Sprintf(format, v...))
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.all, "\n")
}

// TestOpen_WritesNoLinesInAnOutage: go-redis writes nothing of its own for a client of Open, whose errors are those of
// the dialer.
func TestOpen_WritesNoLinesInAnOutage(t *testing.T) {
	said := &lines{}
	redis.SetLogger(said)
	t.Cleanup(silence.Logs)
	for _, url := range []string{"redis://127.0.0.1:1", "redis+cluster://127.0.0.1:1"} {
		client := opened(t, url, lettucecompat.Options{})
		sub := client.Subscribe(t.Context(), "c")
		t.Cleanup(func() { _ = sub.Close() })
		for range 50 {
			err := client.Process(t.Context(), redis.NewCmd(t.Context(), "ping"))
			op, is := errors.AsType[*net.OpError](err)
			if !is || op.Op != "dial" || !errors.Is(err, syscall.ECONNREFUSED) || !strings.HasPrefix(err.Error(), "dial tcp 127.0.0.1:1: ") {
				t.Fatalf("%s: %v", url, err)
			}
		}
		if _, err := client.Pipelined(t.Context(), func(p redis.Pipeliner) error { p.Ping(t.Context()); return nil }); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%s: %v", url, err)
		}
	}
	if text := said.String(); text != "" {
		t.Errorf("go-redis wrote\n%s", text)
	}
}

// TestOpen_WorksAfterAnOutage: what an outage leaves in the pool fails no command after it.
func TestOpen_WorksAfterAnOutage(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	client := opened(t, s.URL()+"?min_idle_conns=4", lettucecompat.Options{})
	want(t, "before", client.Ping(t.Context()).Err(), error(nil))
	s.Kill()
	for range 40 {
		if err := client.Ping(t.Context()).Err(); err == nil {
			t.Fatal("a server that is gone answers")
		}
		time.Sleep(time.Millisecond)
	}
	s.Restart()
	for i := range 40 {
		if err := client.Ping(t.Context()).Err(); err != nil {
			t.Errorf("command %d after the outage: %v", i, err)
		}
	}
}
