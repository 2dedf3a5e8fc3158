package anteroom_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	anteroom "github.com/anteroom/anteroom/sync"
)

// lateExtend holds back what answers an Extend by an hour.
type lateExtend struct{ by atomic.Int64 }

func (l *lateExtend) DialHook(next redis.DialHook) redis.DialHook { return next }

func (l *lateExtend) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if slices.Contains(cmd.Args(), any("3600000")) {
			time.Sleep(time.Duration(l.by.Load()))
		}
		return err
	}
}

func (l *lateExtend) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// An Extend that was executed before the key was removed, and is answered after it was taken again, is not relied on: what
// it raised went with the key. Its caller is told that its outcome is unknown.
func TestReacquire_ALateExtendIsUnknown(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		rdb, late := s.client(), &lateExtend{}
		rdb.AddHook(late)
		m, _ := manager(t, rdb, anteroom.Config{})
		h := acquire(t, mutex(t, m, anteroom.LockConfig{Key: "k", Fencing: true, Recovery: anteroom.RecoverReacquire, WatchdogPeriod: time.Hour}))
		time.Sleep(time.Second)
		time.Sleep(time.Until(m.Snapshot()[0].NextRenewal) - 200*time.Millisecond)
		late.by.Store(int64(900 * time.Millisecond))
		extended := make(chan error)
		go func() { extended <- h.Extend(bg, time.Hour) }()
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if s.TTL("k") < 50*time.Minute {
			t.Fatalf("not executed: %v", s.TTL("k"))
		}
		s.Del("k")
		if err := <-extended; !errors.Is(err, anteroom.ErrUnknown) {
			t.Errorf("Extend: %v", err)
		}
		if left, kept := time.Until(h.Deadline()), s.TTL("k"); !h.Held() || left > kept {
			t.Errorf("held %v, relied on for %v, Redis keeps it for %v", h.Held(), left, kept)
		}
		ok(t, h.Release(bg))
	})
}
