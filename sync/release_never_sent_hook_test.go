package anteroom_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	anteroom "github.com/anteroom/anteroom/sync"
)

// breaker is a hook that refuses every command while it is open, as a circuit breaker does.
type breaker struct{ open atomic.Bool }

var errOpen = errors.New("circuit breaker is open")

func (b *breaker) DialHook(next redis.DialHook) redis.DialHook { return next }

func (b *breaker) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if b.open.Load() {
			return errOpen
		}
		return next(ctx, cmd)
	}
}

func (b *breaker) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if b.open.Load() {
			return errOpen
		}
		return next(ctx, cmds)
	}
}

// A command that a hook has refused was never sent: there is nothing to be unsure of, nothing
// to clean up, and nothing for Close to wait for.
func TestACommandThatAHookRefusedIsNoUnknownOne(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		hook := &breaker{}
		rdb := s.client()
		rdb.AddHook(hook)
		m, _ := manager(t, rdb, anteroom.Config{})
		mu := m.Mutex("k")
		ok(t, acquire(t, mu).Release(bg)) // a connection is made
		hook.open.Store(true)
		_, err := mu.TryAcquire(bg)
		if !errors.Is(err, anteroom.ErrUnavailable) || errors.Is(err, anteroom.ErrUnknown) || !errors.Is(err, errOpen) {
			t.Errorf("TryAcquire: %v", err)
		}
		ctx, cancel := context.WithTimeout(bg, time.Minute)
		defer cancel()
		began := time.Now()
		if err := m.Close(ctx); err != nil || time.Since(began) > time.Second {
			t.Errorf("Close after %v: %v", time.Since(began), err)
		}
	})
}
