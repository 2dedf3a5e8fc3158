package interop

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	anteroom "github.com/anteroom/anteroom/sync"
)

var bg = context.Background()

// peer is a kind of Java program.
type peer struct {
	name, env string // env names its jar
	dialect   lettucecompat.Dialect
	lease     string   // its option for the lease, in ms
	jvm       []string // flags
}

// smallJVM starts fast and takes little: several run on two processors.
var smallJVM = []string{"-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"}

var (
	lettuce   = peer{"Lettuce", "ANTEROOM_LETTUCE", lettucecompat.DesignDocument, "--lease", smallJVM}
	redissons = []peer{
		{"Redisson 4", "ANTEROOM_REDISSON_4", lettucecompat.Redisson, "--watchdog", smallJVM},
		{"Redisson 3", "ANTEROOM_REDISSON_3", lettucecompat.Redisson, "--watchdog", smallJVM},
	}
	all = append([]peer{lettuce}, redissons...)
)

// each tries a rule with several kinds of programs.
func each(t *testing.T, peers []peer, test func(t *testing.T, p peer)) {
	for _, p := range peers {
		t.Run(p.name, func(t *testing.T) { test(t, p) })
	}
}

// stage is a Redis, and the peer that is tried on it.
type stage struct {
	t    *testing.T
	peer peer
	url  string // in our form
}

func single(t *testing.T, p peer) (stage, *testredis.Server) {
	s := testredis.Start(t)
	return stage{t, p, s.URL()}, s
}

// java starts a Java program.
func (s stage) java(options ...string) *java {
	s.t.Helper()
	scheme, rest, _ := strings.Cut(s.url, "://")
	hosts, master, _ := strings.Cut(rest, "/")
	switch scheme {
	case "redis+cluster":
		options = append(options, "--cluster")
	case "redis+sentinel":
		options = append(options, "--sentinel", master)
	}
	hosts = "redis://" + strings.ReplaceAll(hosts, ",", ",redis://")
	return startJava(s.t, s.peer, hosts, options...)
}

// withLease is the option for Java's lease.
func (s stage) withLease(lease time.Duration) []string {
	return []string{s.peer.lease, fmt.Sprint(lease.Milliseconds())}
}

// manager returns a Manager on the Redis that is closed with the test.
func (s stage) manager() *anteroom.Manager {
	s.t.Helper()
	m, err := anteroom.Open(bg, s.url, anteroom.Config{Dialect: anteroom.Dialect(s.peer.dialect), Logger: slog.New(slog.DiscardHandler)})
	must(s.t, err)
	s.t.Cleanup(func() { must(s.t, m.Close(bg)) })
	return m
}

// client returns a plain client of the Redis.
func (s stage) client() redis.UniversalClient {
	s.t.Helper()
	rdb, err := lettucecompat.Open(s.url, lettucecompat.Options{})
	must(s.t, err)
	s.t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// lockOf returns the lock k with that lease.
func lockOf(t *testing.T, m *anteroom.Manager, lease time.Duration) *anteroom.Mutex {
	t.Helper()
	mu, err := m.NewMutex(anteroom.LockConfig{Key: "k", LeaseTime: lease})
	must(t, err)
	return mu
}

func acquire(t *testing.T, mu *anteroom.Mutex) *anteroom.Hold {
	t.Helper()
	h, err := mu.Acquire(bg)
	must(t, err)
	return h
}

// pass acquires in the background, and releases.
func pass(mu *anteroom.Mutex) <-chan error {
	done := make(chan error, 1)
	go func() { done <- mu.Do(bg, func(context.Context) error { return nil }) }()
	return done
}

// within fails where what took longer than bound, and prints how long it took.
func within(t *testing.T, bound, took time.Duration, what string) {
	t.Helper()
	t.Logf("%s: %v", what, took.Round(100*time.Microsecond))
	if !pace.Within(took, bound) {
		t.Errorf("%s took %v, more than %v", what, took, bound)
	}
}

// eventually polls for what no signal tells.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(answerTime); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}
