package anteroom_test

import (
	"container/list"
	"context"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
)

// A maintainer compares these before and after a change:
//
//	go test -run '^$' -bench Mutex -count 10 ./sync > before
//
// with benchstat. The names that begin with "local" are what a lock in memory costs on
// the same machine at the same time: where they move too, it was the machine.

// BenchmarkMutexContended is 64 goroutines on one key that is not fair: nearly all of them
// take a grant that is there, and few are parked.
func BenchmarkMutexContended(b *testing.B) {
	b.Run("anteroom", func(b *testing.B) { contend(b, benchMutex(b, anteroom.LockConfig{Key: "k"})) })
	b.Run("local-mutex", func(b *testing.B) { contend(b, &sync.Mutex{}) })
}

// BenchmarkMutexHandoff is 64 goroutines on one key that is fair: each acquisition is a
// hand-off from one goroutine to a parked one.
func BenchmarkMutexHandoff(b *testing.B) {
	b.Run("anteroom", func(b *testing.B) { contend(b, benchMutex(b, anteroom.LockConfig{Key: "k", Fair: true})) })
	b.Run("local-semaphore", func(b *testing.B) { contend(b, &semaphore{}) })
}

// BenchmarkHoldHandoff is the same by Acquire and Release.
func BenchmarkHoldHandoff(b *testing.B) {
	contend(b, &byHold{Mutex: benchMutex(b, anteroom.LockConfig{Key: "k", Fair: true})})
}

// BenchmarkMutexReentered is a lock that its goroutine has already.
func BenchmarkMutexReentered(b *testing.B) {
	mu := benchMutex(b, anteroom.LockConfig{Key: "k"})
	mu.Lock()
	defer mu.Unlock()
	b.ReportAllocs()
	for b.Loop() {
		pass(mu)
	}
}

func benchMutex(b *testing.B, cfg anteroom.LockConfig, options ...func(*redis.Options)) *anteroom.Mutex {
	b.Helper()
	m, _ := manager(b, testredis.Start(b).Client(b, options...), anteroom.Config{})
	return mutex(b, m, cfg)
}

// contend lets 64 goroutines pass mu until it has been passed b.N times.
func contend(b *testing.B, mu sync.Locker) {
	b.ReportAllocs()
	b.ResetTimer()
	together(mu, 64, int64(b.N))
}

// byHold is a Locker by Acquire and Release.
type byHold struct {
	*anteroom.Mutex
	hold *anteroom.Hold // the owner's
}

func (l *byHold) Lock() {
	h, err := l.Acquire(context.Background())
	if err != nil {
		panic(err)
	}
	l.hold = h
}

func (l *byHold) Unlock() { _ = l.hold.Release(context.Background()) }

// semaphore is x/sync/semaphore for one, in short: a list of channels under a mutex, of
// which the releaser closes the first.
type semaphore struct {
	mu      sync.Mutex
	held    bool
	waiters list.List
}

func (s *semaphore) Lock() {
	s.mu.Lock()
	if !s.held {
		s.held = true
		s.mu.Unlock()
		return
	}
	ready := make(chan struct{})
	s.waiters.PushBack(ready)
	s.mu.Unlock()
	<-ready
}

func (s *semaphore) Unlock() {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.waiters.Front()
	if next == nil {
		s.held = false
		return
	}
	close(s.waiters.Remove(next).(chan struct{}))
}
