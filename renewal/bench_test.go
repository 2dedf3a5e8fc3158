package renewal_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anteroom/anteroom/renewal"
)

type instant struct{ n atomic.Int64 }

func (s *instant) RenewBatch(_ context.Context, _ string, items []renewal.Item, _ time.Time) []renewal.Result {
	s.n.Add(int64(len(items)))
	return renewed(items)
}

// BenchmarkAddEnd is what the path of a lock and its release pays, beside
// 100,000 other leases.
func BenchmarkAddEnd(b *testing.B) {
	m := renewal.New(renewal.Config{Sender: &instant{}})
	m.Start()
	defer m.Stop()
	sp := renewal.Spec{Lease: time.Hour, Owner: silent, Period: 20 * time.Minute, SentAt: time.Now()}
	for range 100_000 {
		m.Add(sp)
	}
	b.ReportAllocs()
	for b.Loop() {
		m.Add(sp).End()
	}
}

// BenchmarkRound renews 100,000 leases once for each iteration: the whole way
// from the heap to the Sender and back.
func BenchmarkRound100k(b *testing.B) {
	const n = 100_000
	s := &instant{}
	m := renewal.New(renewal.Config{Sender: s})
	leases := make([]*renewal.Lease, n)
	sp := renewal.Spec{Lease: time.Hour, Owner: silent, Period: 20 * time.Minute, SentAt: time.Now()}
	for i := range leases {
		leases[i] = m.Add(sp)
	}
	for b.Loop() {
		for _, l := range leases {
			l.Hurry()
		}
		want := s.n.Load() + n
		m.Start()
		for s.n.Load() < want {
			time.Sleep(100 * time.Microsecond)
		}
		m.Stop()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/lease")
}

func BenchmarkValid(b *testing.B) {
	m := renewal.New(renewal.Config{Sender: &instant{}})
	l := m.Add(renewal.Spec{Lease: time.Hour, Owner: silent, SentAt: time.Now()})
	for b.Loop() {
		if !l.Valid(m.Now()) {
			b.Fatal("not valid")
		}
	}
}
