package lock

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkCore_Parties is so many processes of one goroutine on one key: ops/s, in one process.
func BenchmarkCore_Parties(b *testing.B) {
	for _, n := range []int{2, 16, 40} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			_, client := fresh(b)
			parties := make([]*party, n)
			for i := range parties {
				parties[i] = newParty(b, client(), func(s *Settings) {
					s.Lease = Lease{For: 30 * time.Second, Period: 10 * time.Second, Margin: 1500 * time.Millisecond}
					s.Timeout = time.Second
				})
			}
			var left atomic.Int64
			left.Store(int64(b.N))
			var all sync.WaitGroup

			b.ResetTimer()
			begin := time.Now()
			for _, p := range parties {
				all.Go(func() {
					for left.Add(-1) >= 0 {
						o, err := p.acquire(context.Background(), "k", 0)
						if err != nil {
							b.Error(err)
							return
						}
						o.Exit(context.Background())
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64(b.N)/time.Since(begin).Seconds(), "ops/s")
		})
	}
}
