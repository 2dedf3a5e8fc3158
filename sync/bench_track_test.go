package anteroom_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
)

// BenchmarkTrack_Removal is the time from DEL, when it is sent, until the holder's context ends, of 10,000 that hold. Their
// renewals are under way beside.
func BenchmarkTrack_Removal(b *testing.B) {
	const n = 10_000
	s := testredis.Start(b)
	rdb := s.Client(b)
	m, _ := manager(b, s.Client(b), anteroom.Config{})
	hold := func(i int) *anteroom.Hold { return acquire(b, m.Mutex(fmt.Sprint("k", i))) }
	holds := make([]*anteroom.Hold, n)
	for i := range holds {
		holds[i] = hold(i)
	}
	time.Sleep(time.Second)
	var took []time.Duration
	for i := 0; b.Loop(); i = (i + 7919) % n {
		h := holds[i]
		began := time.Now()
		ok(b, rdb.Del(bg, fmt.Sprint("k", i)).Err())
		<-h.Context().Done()
		took = append(took, time.Since(began))
		_ = h.Release(bg)
		holds[i] = hold(i)
		time.Sleep(30 * time.Millisecond) // it is tracked again
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
	began := time.Now()
	ok(b, rdb.FlushAll(bg).Err())
	for _, h := range holds {
		<-h.Context().Done()
	}
	b.ReportMetric(float64(time.Since(began).Milliseconds()), "all-after-FLUSHALL-ms")
}
