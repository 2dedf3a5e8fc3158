package lock

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Readers come and go by an open gate.
func BenchmarkShared_Read(b *testing.B) {
	_, client := fresh(b)
	p := newShares(b, client(), 0, nil)
	k := p.Key("k", p.set)
	defer k.Done()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			_ = k.Enter(context.Background(), 0, 1, 0)
			k.Leave(1, 0)
		}
	})
}

// 4 processes of 4 goroutines, of whose sections 5 % write and last for 1 ms, as all do.
func BenchmarkShared_FourProcesses(b *testing.B) {
	s, client := fresh(b)
	var left atomic.Int64
	left.Store(int64(b.N))
	var mu sync.Mutex
	var waits []time.Duration
	var all sync.WaitGroup
	before := s.Stats(b)["evalsha"]
	b.ResetTimer()
	for range 4 {
		p := newShares(b, client(), 0, nil)
		k := p.Key("k", p.set)
		defer k.Done()
		for g := range 4 {
			all.Go(func() {
				for i := g * 5; left.Add(-1) >= 0; i++ {
					begin := time.Now()
					if i%20 == 0 {
						w := p.mustTake(b, writes)
						mu.Lock()
						waits = append(waits, time.Since(begin))
						mu.Unlock()
						time.Sleep(time.Millisecond)
						mustGive(b, w)
						continue
					}
					_ = k.Enter(context.Background(), 0, 1, 0)
					time.Sleep(time.Millisecond)
					k.Leave(1, 0)
				}
			})
		}
	}
	all.Wait()
	b.StopTimer()
	slices.Sort(waits)
	b.ReportMetric(float64(s.Stats(b)["evalsha"]-before)/float64(b.N), "commands/op")
	if n := len(waits); n > 0 {
		b.ReportMetric(float64(waits[n*99/100].Microseconds())/1000, "ms-write-p99")
	}
}
