package anteroom_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	anteroom "github.com/anteroom/anteroom/sync"
)

// replicas answers WAIT: the first with none, later ones with one replica. The release
// that follows the first is on its way for three seconds.
type replicas struct {
	waits atomic.Int64
	slow  atomic.Bool
}

func (h *replicas) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *replicas) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if name := cmd.Args()[0]; strings.HasPrefix(name.(string), "eval") && h.slow.CompareAndSwap(true, false) {
			time.Sleep(3 * time.Second)
			ctx = context.Background() // its caller has left, and it is not called back
		}
		err := next(ctx, cmd)
		if w, can := cmd.(interface{ SetVal(any) }); can && cmd.Name() == "wait" {
			before := h.waits.Add(1) - 1
			w.SetVal(before)
			h.slow.Store(before == 0)
			err = nil
		}
		return err
	}
}

func (h *replicas) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// I3: too few replicas confirmed a grant, and the release that took it back has no
// answer. It may land at any time, so the next attempt has another field.
func TestSync_I3_ALateReleaseForWantOfReplicasMeetsNoLaterGrant(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		rdb, h := s.client(), &replicas{}
		rdb.AddHook(h)
		m, _ := manager(t, rdb, anteroom.Config{})
		ok(t, acquire(t, m.Mutex("warm")).Release(bg)) // the server knows the scripts
		mu := mutex(t, m, anteroom.LockConfig{Key: "k", Replicas: 1, ReplicaTimeout: 100 * time.Millisecond})
		hold := acquire(t, mu)
		if h.waits.Load() != 2 || h.slow.Load() {
			t.Fatalf("the fault did not do what the test wants: %+v", h)
		}
		time.Sleep(4 * time.Second) // the release has landed
		if s.HGet("k", hold.Holder()) != "1" {
			t.Fatalf("a release of an earlier attempt has removed the lock; the holder thinks: %v", hold.Err())
		}
		ok(t, hold.Release(bg))
	})
}

// A client that breaks off the wait for replicas is refused, with what to set.
func TestReplicaTimeoutIsBelowTheClients(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		o := *s.client().Options()
		o.ReadTimeout = 2 * time.Second
		rdb := redis.NewClient(&o)
		t.Cleanup(func() { _ = rdb.Close() })
		m, _ := manager(t, rdb, anteroom.Config{})
		for timeout, accepted := range map[time.Duration]bool{1999 * time.Millisecond: true, 2 * time.Second: false} {
			cfg := anteroom.LockConfig{Key: "k", Replicas: 1, ReplicaTimeout: timeout}
			_, err := m.NewMutex(cfg)
			if accepted != (err == nil) || err != nil && !strings.Contains(err.Error(), "ReplicaTimeout is 2s; it must be less than the client's ReadTimeout, here 2s") {
				t.Errorf("%v: %v", timeout, err)
			}
			cfg.Key = ""
			other, err := anteroom.NewManager(rdb, anteroom.Config{Defaults: cfg})
			if accepted != (err == nil) || err != nil && !errors.Is(err, anteroom.ErrConfig) {
				t.Errorf("%v as a default: %v", timeout, err)
			}
			if err == nil {
				ok(t, other.Close(bg))
			}
			cfg.Key, cfg.Replicas = "k", 0
			if _, err := m.NewMutex(cfg); err != nil {
				t.Errorf("without replicas: %v", err)
			}
		}
	})
}
