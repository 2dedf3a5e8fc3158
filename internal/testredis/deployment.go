package testredis

import (
	"context"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/anteroom/anteroom/internal/pace"
)

const (
	// formTimeout bounds the forming of a deployment, and failoverTimeout a failover: only a hang takes so long. Processes meet, agree
	// and copy each by its own timers, which a loaded machine stretches up to twenty times: see paced. An election without a majority
	// is repeated after two minutes then.
	formTimeout     = 10 * time.Minute
	failoverTimeout = 10 * time.Minute
	// askTimeout bounds one request to a server, which may be stopped.
	askTimeout = 2 * time.Second
	// busOffset is the distance between a Cluster node's port and that of its bus.
	busOffset = 10000
	// firstPort and lastPort bound the ports of deployments. They are below those that systems give to outgoing
	// connections, so a node that was killed gets its port back.
	firstPort, lastPort = 10001, 22000
)

// nodePort returns a port that is free and whose Cluster bus port is free too.
func nodePort(tb TB) int {
	tb.Helper()
	for range 1000 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		if isFree(port) && isFree(port+busOffset) {
			return port
		}
	}
	tb.Fatal("no free port for a node")
	return 0
}

func isFree(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	_ = l.Close()
	return true
}

// wait polls until done returns "", or fails the test with done's last result.
func wait(tb TB, within time.Duration, what string, done func() (missing string)) {
	tb.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(within)
	for {
		missing := done()
		if missing == "" {
			return
		}
		if time.Now().After(deadline) {
			tb.Fatalf("not within %v: %s: %s", within, what, missing)
			return
		}
		<-tick.C
	}
}

// Port returns the port on which the server listens.
func (s *Server) Port() int { return s.port }

// Running reports whether the process runs and is not paused.
func (s *Server) Running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cmd != nil && !s.paused
}

// CutReplicas pauses the given replicas of s and closes their links, so that nothing written from now on reaches
// them. What the master sent before may still be in their sockets. Resume reconnects them. It returns when the master
// counts no replica.
func (s *Server) CutReplicas(tb TB, replicas ...*Server) {
	tb.Helper()
	for _, r := range replicas {
		r.Pause()
	}
	s.direct(func(c *redis.Client) {
		ctx := context.Background()
		wait(tb, formTimeout, "the master has no replica", func() string {
			if err := c.ClientKillByFilter(ctx, "type", "replica").Err(); err != nil {
				return err.Error()
			}
			if n := info(ctx, c, "replication")["connected_slaves"]; n != "0" {
				return n + " replicas"
			}
			return ""
		})
	})
}

// direct calls f with a client of this server only, which exists for the call only.
func (s *Server) direct(f func(c *redis.Client)) {
	o := &redis.Options{
		MaxRetries: -1, DialTimeout: askTimeout, ReadTimeout: askTimeout,
		DialerRetries: 1, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	s.reach(o)
	c := redis.NewClient(o)
	defer func() { _ = c.Close() }()
	f(c)
}

// info returns a section of INFO; empty if the server did not answer.
func info(ctx context.Context, c *redis.Client, section string) map[string]string {
	values := map[string]string{}
	for line := range strings.Lines(c.Info(ctx, section).Val()) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			values[name] = value
		}
	}
	return values
}

// paced is a time in milliseconds that a loaded machine stretches: else its servers take each other for dead.
func paced(ms int) int { return int(pace.Scale(time.Duration(ms)*time.Millisecond) / time.Millisecond) }
