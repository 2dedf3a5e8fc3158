//go:build unix

package anteroom_test

import (
	"context"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
)

// BenchmarkMutexUncontended is one goroutine's lock and unlock: two commands. With hooks on the client each has a goroutine of its own.
// Bare scripts are the same two commands through go-redis with nothing around them. Most of the time is that of the system calls and
// of Redis; user-ns is what this process spends in user mode.
func BenchmarkMutexUncontended(b *testing.B) {
	b.Run("Lock", func(b *testing.B) {
		mu := benchMutex(b, anteroom.LockConfig{Key: "k"})
		uncontended(b, func() { pass(mu) })
	})
	b.Run("Acquire", func(b *testing.B) {
		mu := benchMutex(b, anteroom.LockConfig{Key: "k"})
		uncontended(b, func() {
			h, err := mu.Acquire(bg)
			ok(b, err)
			ok(b, h.Release(bg))
		})
	})
	b.Run("hooks", func(b *testing.B) {
		rdb := testredis.Start(b).Client(b, mindful)
		rdb.AddHook(&said{off: true})
		m, _ := manager(b, rdb, anteroom.Config{})
		mu := m.Mutex("k")
		uncontended(b, func() { pass(mu) })
	})
	b.Run("bare-scripts", func(b *testing.B) {
		rdb := testredis.Start(b).Client(b, mindful)
		sent := &said{}
		rdb.AddHook(sent)
		m, _ := manager(b, rdb, anteroom.Config{})
		mu := m.Mutex("k")
		pass(mu) // loads the scripts
		sent.calls = nil
		pass(mu)
		lock, unlock := sent.calls[0], sent.calls[1]
		bare := func(call []any) {
			keys := call[3 : 3+call[2].(int)]
			if err := rdb.EvalSha(bg, call[1].(string), []string{keys[0].(string), keys[1].(string)}, call[3+len(keys):]...).Err(); err != nil {
				b.Fatal(err)
			}
		}
		uncontended(b, func() {
			bare(lock)
			bare(unlock)
		})
	})
}

// uncontended measures pair, the processor time in user mode with it.
func uncontended(b *testing.B, pair func()) {
	pair()
	b.ReportAllocs()
	before := userTime(b)
	for b.Loop() {
		pair()
	}
	b.ReportMetric(float64(userTime(b)-before)/float64(b.N), "user-ns/op")
}

func userTime(b *testing.B) int64 {
	var u syscall.Rusage
	ok(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return u.Utime.Nano()
}

// said is a hook that notes the arguments of the script calls made one by one.
type said struct {
	mu    sync.Mutex
	off   bool
	calls [][]any
}

func (s *said) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *said) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (s *said) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		s.mu.Lock()
		if cmd.Name() == "evalsha" && !s.off {
			s.calls = append(s.calls, slices.Clone(cmd.Args()))
		}
		s.mu.Unlock()
		return next(ctx, cmd)
	}
}
