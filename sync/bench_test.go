package anteroom_test

import (
	"testing"

	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
)

// BenchmarkMutexUncontended is one goroutine's lock and unlock: two commands.
func BenchmarkMutexUncontended(b *testing.B) {
	s := testredis.Start(b)
	m, _ := manager(b, s.Client(b), anteroom.Config{})
	mu := m.Mutex("k")
	b.ReportAllocs()
	for b.Loop() {
		pass(mu)
	}
}

// BenchmarkMutexHandoff is 64 goroutines on one key: nearly all hand-offs.
func BenchmarkMutexHandoff(b *testing.B) {
	for name, cfg := range map[string]anteroom.LockConfig{"nonfair": {Key: "n"}, "fair": {Key: "f", Fair: true}} {
		b.Run(name, func(b *testing.B) {
			s := testredis.Start(b)
			m, _ := manager(b, s.Client(b), anteroom.Config{})
			mu := mutex(b, m, cfg)
			b.ReportAllocs()
			together(mu, 64, int64(b.N))
		})
	}
}
