package conformance_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/testredis"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	anteroom "github.com/anteroom/anteroom/sync"
)

// stuck bounds an acquire. Nothing may hang for longer.
const stuck = 90 * time.Second

// newManager returns a Manager like that of a separate process.
func newManager(t *testing.T, rdb anteroom.Redis) *anteroom.Manager {
	t.Helper()
	m, err := anteroom.NewManager(rdb, anteroom.Config{CommandTimeout: time.Second, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.CloseWithin(5 * time.Second) })
	return m
}

func lock(t *testing.T, m *anteroom.Manager, cfg anteroom.LockConfig) *anteroom.Mutex {
	t.Helper()
	cfg.LeaseTime, cfg.WatchdogPeriod = 5*time.Second, time.Second
	mu, err := m.NewMutex(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return mu
}

// eventually waits until f is true.
func eventually(t *testing.T, within time.Duration, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(within); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", within, what)
		}
	}
}

// confirmed is a lock that requires one replica, and is patient with it.
func confirmed(key string) anteroom.LockConfig {
	return anteroom.LockConfig{Key: key, Replicas: 1, ReplicaTimeout: 300 * time.Millisecond, Fencing: true}
}

// refusedForReplicas checks that the lock is refused because replicas are missing, and that nothing of it remains on
// its master.
func refusedForReplicas(t *testing.T, p *anteroom.Manager, master *redis.Client, cfg anteroom.LockConfig) {
	t.Helper()
	h, err := lock(t, p, cfg).TryAcquire(context.Background())
	for begin := time.Now(); errors.Is(err, anteroom.ErrUnavailable) && time.Since(begin) < 30*time.Second; {
		// A busy machine did not answer in time, or go-redis asked the stopped node for the layout. What that try may
		// have left is removed before the key is forgotten.
		eventually(t, stuck, "the key is forgotten", func() bool { return len(p.Snapshot()) == 0 })
		h, err = lock(t, p, cfg).TryAcquire(context.Background())
	}
	if !errors.Is(err, anteroom.ErrNotAcquired) || !errors.Is(err, lettucecompat.ErrReplicas) {
		t.Fatalf("%s without its replica: %v, %v", cfg.Key, h, err)
	}
	if n, err := master.Exists(context.Background(), cfg.Key).Result(); err != nil || n != 0 {
		t.Fatalf("%s is left behind: %d, %v", cfg.Key, n, err)
	}
	eventually(t, stuck, "the key is forgotten", func() bool { return len(p.Snapshot()) == 0 })
}

// granted checks that the lock is granted. (A grant that is refused for its replicas, or without an answer, is
// retried until the end of the context.)
func granted(t *testing.T, p *anteroom.Manager, cfg anteroom.LockConfig) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	h, err := lock(t, p, cfg).Acquire(ctx)
	if err != nil {
		t.Fatalf("%s: %v", cfg.Key, err)
	}
	if err := h.Release(ctx); err != nil {
		t.Fatal(err)
	}
}

// usableAgain makes a caller wait for the lock, brings the replicas back, and returns how long after that the lock
// was granted.
func usableAgain(t *testing.T, p *anteroom.Manager, cfg anteroom.LockConfig, back func()) time.Duration {
	t.Helper()
	got := make(chan error, 1)
	mu := lock(t, p, cfg)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), stuck)
		defer cancel()
		h, err := mu.Acquire(ctx)
		if err == nil {
			err = h.Release(ctx)
		}
		got <- err
	}()
	begin := time.Now()
	back()
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	return time.Since(begin)
}

// stops are the ways in which a replica stops, and comes back.
var stops = map[string]struct{ stop, back func(*testredis.Server) }{
	"stopped": {(*testredis.Server).Pause, (*testredis.Server).Resume},
	"killed":  {(*testredis.Server).Kill, (*testredis.Server).Restart},
}

func TestReplicasBehindSentinel(t *testing.T) {
	t.Parallel()
	s := testredis.StartSentinel(t)
	p := newManager(t, s.Client(t))
	master, replicas := s.Master().Client(t), s.Replicas()
	for name, how := range stops {
		cfg := confirmed("order:" + name)
		granted(t, p, cfg)
		how.stop(replicas[0])
		granted(t, p, cfg) // the other one confirms
		how.stop(replicas[1])
		refusedForReplicas(t, p, master, cfg)
		cfg0 := cfg
		cfg0.Replicas = 0
		granted(t, p, cfg0) // a lock without Replicas is granted
		eventually(t, stuck, "the key is forgotten", func() bool { return len(p.Snapshot()) == 0 })
		t.Logf("%s: granted %v after the first replica came back", name, usableAgain(t, p, cfg, func() {
			how.back(replicas[0])
			how.back(replicas[1])
		}).Round(time.Millisecond))
		s.AwaitReady()
	}
	if s.Master() != s.Nodes()[0] {
		t.Fatal("the replicas' absence has moved the master")
	}
}
