package conformance_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	anteroom "github.com/anteroom/anteroom/sync"
)

// A lock that demands a replica's confirmation is granted while one of two replicas is there. While none is, it is
// refused, and nothing of it remains. Who waits meanwhile has it when they are back.
func TestReplicasBehindSentinel(t *testing.T) {
	t.Parallel()
	s := testredis.StartSentinel(t)
	m, err := anteroom.NewManager(s.Client(t), anteroom.Config{CommandTimeout: pace.Scale(time.Second), Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	t.Cleanup(func() { _ = m.CloseWithin(5 * time.Second) })
	master, replicas := s.Master().Client(t), s.Replicas()
	for name, how := range map[string]struct{ stop, back func(*testredis.Server) }{
		"stopped": {(*testredis.Server).Pause, (*testredis.Server).Resume},
		"killed":  {(*testredis.Server).Kill, (*testredis.Server).Restart},
	} {
		lock := func(replicas int) *anteroom.Mutex {
			for begin := time.Now(); len(m.Snapshot()) > 0; time.Sleep(5 * time.Millisecond) { // the key has another configuration until then
				if time.Since(begin) > pace.Hang {
					t.Fatal("the key is not forgotten")
				}
			}
			mu, err := m.NewMutex(anteroom.LockConfig{
				Key: "order:" + name, LeaseTime: pace.Scale(5 * time.Second), WatchdogPeriod: time.Second,
				Replicas: replicas, ReplicaTimeout: min(pace.Scale(300*time.Millisecond), 4*time.Second), Fencing: true, // below the client's ReadTimeout
			})
			must(t, err)
			return mu
		}
		granted := func(mu *anteroom.Mutex) error {
			ctx, cancel := context.WithTimeout(context.Background(), pace.Hang)
			defer cancel()
			return mu.Do(ctx, func(context.Context) error { return nil })
		}
		must(t, granted(lock(1)))
		how.stop(replicas[0])
		must(t, granted(lock(1)))
		how.stop(replicas[1])
		_, err := lock(1).TryAcquire(context.Background())
		for begin := time.Now(); errors.Is(err, anteroom.ErrUnavailable) && time.Since(begin) < pace.Hang; {
			_, err = lock(1).TryAcquire(context.Background()) // a busy machine did not answer in time
		}
		if n := master.Exists(context.Background(), "order:"+name).Val(); n != 0 || !errors.Is(err, anteroom.ErrNotAcquired) || !errors.Is(err, lettucecompat.ErrReplicas) {
			t.Fatalf("%s without replicas: %v, and %d keys are left", name, err, n)
		}
		must(t, granted(lock(0)))
		mu, in := lock(1), make(chan error, 1)
		go func() { in <- granted(mu) }()
		how.back(replicas[0])
		how.back(replicas[1])
		must(t, <-in)
		s.AwaitReady()
	}
	if s.Master() != s.Nodes()[0] {
		t.Fatal("the replicas' absence has moved the master")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
