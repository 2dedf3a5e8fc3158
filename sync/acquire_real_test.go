package anteroom_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
)

// eventually waits, in real time, until f is true.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	deadline := time.Now().Add(pace.Hang)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !f() {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		<-tick.C
	}
}

// hammer lets goroutines lock and unlock mu; all of them keep an unprotected counter.
func hammer(t *testing.T, mu sync.Locker, counter *int, goroutines, rounds int) {
	t.Helper()
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for i := range rounds {
				if tl, can := mu.(interface{ TryLock() bool }); can && i%7 == 3 {
					for !tl.TryLock() {
						runtime.Gosched()
					}
				} else {
					mu.Lock()
				}
				*counter++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}

// In the manner of Go's own mutex tests: all modes, through sync.Locker, with the
// race detector watching an unprotected counter.
func TestHammer_Lab(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	for _, fair := range []bool{false, true} {
		for _, r := range []bool{true, false} {
			for _, handoffs := range []int{0, 3, -1} {
				name := fmt.Sprintf("fair=%v,reentrant=%v,handoffs=%d", fair, r, handoffs)
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					rdb := s.Client(t)
					cfg := anteroom.LockConfig{Key: name, Fair: fair, Reentrant: r, MaxHandoffs: handoffs, Fencing: fair}
					counter := 0
					// One Manager, its own processes' goroutines only; then two that compete.
					m, _ := manager(t, rdb, anteroom.Config{})
					hammer(t, mutex(t, m, cfg), &counter, 16, 50)
					if counter != 800 {
						t.Fatalf("counter %d, want 800", counter)
					}
					m2, _ := manager(t, rdb, anteroom.Config{})
					var inside atomic.Int32
					var wg sync.WaitGroup
					for _, mu := range []*anteroom.Mutex{mutex(t, m, cfg), mutex(t, m2, cfg)} {
						for range 8 {
							wg.Go(func() {
								for range 20 {
									mu.Lock()
									if n := inside.Add(1); n != 1 {
										t.Errorf("%d inside", n)
									}
									inside.Add(-1)
									mu.Unlock()
								}
							})
						}
					}
					wg.Wait()
				})
			}
		}
	}
}

// 64 goroutines on one key: the lock passes from hand to hand, and Redis is asked
// for less than one in a hundred acquisitions.
func TestHandOffAsksRedisRarely(t *testing.T) {
	s := testredis.Start(t)
	for _, fair := range []bool{false, true} {
		t.Run(fmt.Sprintf("fair=%v", fair), func(t *testing.T) {
			m, _ := manager(t, s.Client(t), anteroom.Config{})
			mu := mutex(t, m, anteroom.LockConfig{Key: fmt.Sprint("k", fair), Fair: fair})
			before := total(s.Stats(t))
			const want = 30_000
			got := together(mu, 64, want)
			commands := total(s.Stats(t)) - before
			t.Logf("%d acquisitions, %d commands", got, commands)
			if commands*100 > got {
				t.Fatalf("%d commands for %d acquisitions, want at most one in a hundred", commands, got)
			}
		})
	}
}

// together lets goroutines lock and unlock mu until they have done so at least n
// times in all, so that none of them is left alone in the end.
func together(mu sync.Locker, goroutines int, n int64) (done int64) {
	var wg sync.WaitGroup
	var enough atomic.Bool
	for range goroutines {
		wg.Go(func() {
			for !enough.Load() {
				mu.Lock()
				done++
				if done >= n {
					enough.Store(true)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return done
}

// total counts what clients sent: scripts are one command each, their inner calls
// are not counted.
func total(stats map[string]int64) int64 {
	var n int64
	for _, name := range []string{"evalsha", "eval", "script|load", "subscribe", "unsubscribe", "publish", "ping"} {
		n += stats[name]
	}
	return n
}

// Redis under SIGSTOP: far below the client's read timeout the caller is free, and
// when it runs again nothing stays behind.
func TestCancelledAcquireWhileRedisIsStopped(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	rdb := s.Client(t, func(o *redis.Options) { o.ReadTimeout = 3 * pace.Hang })
	m, _ := manager(t, rdb, anteroom.Config{CommandTimeout: time.Minute})
	mu := m.Mutex("k")
	ok(t, acquire(t, mu).Release(bg))
	s.Pause()
	ctx, cancel := context.WithTimeout(bg, 200*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := mu.Acquire(ctx)
	took := time.Since(start)
	s.Resume()
	if !errors.Is(err, context.DeadlineExceeded) || took > 30*time.Second {
		t.Fatalf("after %v: %v", took, err)
	}
	check := s.Client(t)
	eventually(t, "no lock is left and nothing is being cleaned up", func() bool {
		n, err := check.Exists(bg, "k").Result()
		return err == nil && n == 0 && len(m.Snapshot()) == 0
	})
}

func TestFencingTokensGrowAcrossFlush(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	rdb := s.Client(t)
	var last int64
	for i := range 20 {
		m, _ := manager(t, s.Client(t), anteroom.Config{})
		mu := mutex(t, m, anteroom.LockConfig{Key: "k", Fencing: true, Fair: true})
		for range 10 {
			h := acquire(t, mu)
			if tokenOf(h) <= last {
				t.Fatalf("token %d after %d", tokenOf(h), last)
			}
			last = tokenOf(h)
			ok(t, h.Release(bg))
		}
		if i%3 == 0 {
			ok(t, rdb.FlushAll(bg).Err())
		}
	}
}

// Many keys, one after another, leave nothing behind. ANTEROOM_KEYS sets how many.
func TestSync_I8_KeysUsedOnceLeaveNothing(t *testing.T) {
	s := testredis.Start(t)
	rdb := s.Client(t)
	m, _ := manager(t, rdb, anteroom.Config{})
	warm := func() { ok(t, acquire(t, m.Mutex("warm")).Release(bg)) }
	warm()
	eventually(t, "the subscription is there", func() bool {
		n, err := rdb.PubSubChannels(bg, "anteroom:*").Result()
		return err == nil && len(n) == 1
	})
	goroutines := runtime.NumGoroutine()
	clients := connections(t, rdb)
	for i := range keys(t) {
		mu := m.Mutex(fmt.Sprintf("key:%d", i))
		if i%2 == 0 {
			pass(mu)
		} else {
			ok(t, acquire(t, mu).Release(bg))
		}
	}
	warm()
	var state string
	defer func() { t.Log(state) }()
	eventually(t, "goroutines, connections and keys as before", func() bool {
		n, err := rdb.DBSize(bg).Result()
		state = fmt.Sprintf("keys %d (%v), entries %d, goroutines %d after %d, connections %d after %d",
			n, err, len(m.Snapshot()), runtime.NumGoroutine(), goroutines, connections(t, rdb), clients)
		// The client's pool may have grown by what ran in parallel, but not with the keys.
		return err == nil && n == 0 && len(m.Snapshot()) == 0 && runtime.NumGoroutine() <= goroutines+2 && connections(t, rdb) <= clients+4
	})
	channels, err := rdb.PubSubChannels(bg, "*").Result()
	if err != nil || len(channels) != 1 {
		t.Fatalf("channels %v, %v", channels, err)
	}
}

func connections(t *testing.T, rdb *redis.Client) int {
	list, err := rdb.ClientList(bg).Result()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, c := range list {
		if c == '\n' {
			n++
		}
	}
	return n
}
