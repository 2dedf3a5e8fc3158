package anteroom_test

import (
	"runtime"
	"testing"

	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
)

// BenchmarkRWMutex measures readers of one process, and one writer among 20.
func BenchmarkRWMutex(b *testing.B) {
	m, _ := manager(b, testredis.Start(b).Client(b), anteroom.Config{})
	for name, every := range map[string]int{"read": 0, "write-5": 20} {
		b.Run(name, func(b *testing.B) {
			rw := m.RWMutex("k")
			b.SetParallelism(32)
			b.ReportAllocs()
			b.RunParallel(func(p *testing.PB) {
				for i := 1; p.Next(); i++ {
					if every > 0 && i%every == 0 {
						rw.Lock()
						runtime.KeepAlive(rw)
						rw.Unlock()
					} else {
						rw.RLock()
						runtime.KeepAlive(rw)
						rw.RUnlock()
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "M/s")
		})
	}
	b.Run("RAcquire", func(b *testing.B) {
		rw := m.RWMutex("k")
		keep, err := rw.RAcquire(bg)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for range b.N {
			h, err := rw.RAcquire(bg)
			if err != nil {
				b.Fatal(err)
			}
			_ = h.Release(bg)
		}
		_ = keep.Release(bg)
	})
}
