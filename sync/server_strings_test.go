package anteroom_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// besideStrings returns the lock of key "k" that shares it with libraries that keep a lock as a string.
func besideStrings(t *testing.T, m *anteroom.Manager) *anteroom.Mutex {
	t.Helper()
	return must[*anteroom.Mutex](t)(m.NewMutex(anteroom.LockConfig{Key: "k", StringHolders: true}))
}

// A string counts as held by another: it is waited for until it is deleted, or its TTL is over.
func TestStringHolders_AStringIsAnothersLock(t *testing.T) {
	for name, end := range map[string]func(s *embedded) time.Duration{
		"deleted": func(s *embedded) time.Duration {
			time.AfterFunc(2500*time.Millisecond, func() { s.Del("k") })
			return 2500 * time.Millisecond
		},
		"expired": func(s *embedded) time.Duration {
			s.SetTTL("k", 1700*time.Millisecond)
			return 1700 * time.Millisecond
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				m, _ := manager(t, s.client(), anteroom.Config{})
				ok(t, s.Set("k", "redsync's value"))
				mu := besideStrings(t, m)
				if _, err := mu.TryAcquire(bg); !errors.Is(err, anteroom.ErrNotAcquired) {
					t.Fatalf("a try says %v, want ErrNotAcquired", err)
				}
				short, cancel := context.WithTimeout(bg, time.Second)
				defer cancel()
				if _, err := mu.Acquire(short); !errors.Is(err, anteroom.ErrNotAcquired) || !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("a bounded wait says %v, want ErrNotAcquired and DeadlineExceeded", err)
				}
				start := time.Now()
				lasts := end(s)
				hold := acquire(t, mu)
				if waited := time.Since(start); waited < lasts || waited > lasts+110*time.Millisecond {
					t.Errorf("waited %v for a string that was there for %v", waited, lasts)
				}
				ok(t, hold.Release(bg))
			})
		})
	}
}

// A string that takes the place of our lock is a loss, and stays as it is.
func TestStringHolders_AStringInPlaceOfTheLockIsALoss(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		hold := acquire(t, besideStrings(t, m))
		s.Del("k")
		ok(t, s.Set("k", "redsync's value"))
		<-hold.Context().Done()
		if err := hold.Release(bg); !errors.Is(err, anteroom.ErrLost) {
			t.Errorf("release says %v, want ErrLost", err)
		}
		if v, _ := s.Get("k"); v != "redsync's value" {
			t.Errorf("the string is %q now", v)
		}
	})
}

// Who polls must find the lock free now and then, however many of ours want it: after each turn it is
// free for as long as a turn lasts.
func TestStringHolders_ATurnLeavesTheLockFree_Lab(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		mu := besideStrings(t, m)
		ctx, cancel := context.WithTimeout(bg, 10*time.Second)
		for range 4 {
			go func() {
				for ctx.Err() == nil {
					_ = mu.Do(ctx, func(context.Context) error { time.Sleep(time.Millisecond); return nil })
				}
			}()
		}
		free, asked := 0, 0
		for ctx.Err() == nil {
			time.Sleep(7 * time.Millisecond)
			if asked++; !s.Exists("k") {
				free++
			}
		}
		cancel()
		if free*4 < asked { // every second turn leaves it free
			t.Errorf("free at %d of %d checks, want a quarter or more", free, asked)
		}
	})
}

// So it is where one goroutine alone takes the lock again and again: another process of ours, which polls, has its turns.
func TestStringHolders_ALoneLooperLetsOthersIn(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		ctx, cancel := context.WithTimeout(bg, 10*time.Second)
		defer cancel()
		var turns [2]int
		done := make(chan struct{})
		for i := range turns {
			m, _ := manager(t, s.client(), anteroom.Config{})
			mu := besideStrings(t, m)
			go func() {
				defer func() { done <- struct{}{} }()
				for ctx.Err() == nil {
					_ = mu.Do(ctx, func(context.Context) error { turns[i]++; time.Sleep(50 * time.Millisecond); return nil })
				}
			}()
		}
		<-done
		<-done
		if turns[0] < 30 || turns[1] < 30 {
			t.Errorf("the turns are %v, want 30 or more of each", turns)
		}
	})
}

// A new instance that is asked whether it is ready says so while an old one has the lock.
func TestStringHolders_Ping(t *testing.T) {
	check := func(t *testing.T, rdb *redis.Client) {
		m, rec := manager(t, rdb, anteroom.Config{Defaults: anteroom.LockConfig{StringHolders: true}})
		strict, _ := manager(t, rdb, anteroom.Config{})
		ok(t, rdb.Set(bg, "k", "redsync's value", time.Minute).Err())
		ok(t, m.Ping(bg, "k"))
		if err := strict.Ping(bg, "k"); !errors.Is(err, anteroom.ErrConfig) {
			t.Errorf("without the option: %v, want ErrConfig", err)
		}
		if got := must[string](t)(rdb.Get(bg, "k").Result()); got != "redsync's value" {
			t.Errorf("the string is %q", got)
		}
		if w := rec.of(observe.EventWarning); len(w) > 0 {
			t.Errorf("%+v", w)
		}
	}
	t.Run("embedded", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *embedded) { check(t, s.client()) })
	})
	t.Run("redis", func(t *testing.T) { check(t, testredis.Start(t).Client(t)) })
}

// An attempt for a waiter with another lease, made without waiting for its time, ends with a late
// answer: the next one is made like any other.
func TestStringHolders_ALateAnswerToAHeadWithAnotherLease(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		net := s.network()
		m, _ := manager(t, s.clientOver(net), anteroom.Config{})
		mu := besideStrings(t, m)
		ok(t, s.Set("k", "theirs"))
		ctx, cancel := context.WithCancel(bg)
		defer cancel()
		first, second := make(chan error, 1), make(chan *anteroom.Hold, 1)
		go func() {
			_, err := mu.Acquire(ctx)
			first <- err
		}()
		s.settle()
		go func() {
			h, _ := mu.Acquire(bg, anteroom.Lease(200*time.Millisecond))
			second <- h
		}()
		s.settle()
		net.Delay(300 * time.Millisecond) // longer than the lease, shorter than CommandTimeout
		s.Del("k")
		cancel()
		<-first
		time.Sleep(350 * time.Millisecond)
		net.Delay(0)
		if h := <-second; h != nil {
			ok(t, h.Release(bg))
		}
		time.Sleep(time.Minute) // the line remembers foreign clients for a while
		s.nothing(t, "k")
	})
}

// Inspect, Ping and ForceRelease take a string for a lock where Acquire does: as the key is in use, else by default.
func TestStringHolders_InspectAndForceReleaseJudgeAsAcquire(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		ok(t, s.Set("k", "theirs"))
		_, err := m.Inspect(bg, "k")
		outcome(t, err, observe.OutcomeFailed, anteroom.ErrConfig)
		_, err = m.ForceRelease(bg, "k")
		outcome(t, err, observe.OutcomeFailed, anteroom.ErrConfig)
		got := make(chan *anteroom.Hold, 1)
		mu := besideStrings(t, m)
		go func() {
			h, _ := mu.Acquire(bg)
			got <- h
		}()
		s.settle()
		if info := must[anteroom.Info](t)(m.Inspect(bg, "k")); !info.Locked || len(info.Holders) != 0 || info.InLine != 1 {
			t.Errorf("%+v", info)
		}
		ok(t, m.Ping(bg, "k"))
		if broken := must[[]string](t)(m.ForceRelease(bg, "k")); len(broken) != 1 || broken[0] != "" {
			t.Errorf("%q", broken)
		}
		ok(t, (<-got).Release(bg))
	})
}
