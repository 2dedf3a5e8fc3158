package debug_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/testredis"
	"github.com/anteroom/anteroom/metrics/debug"
	anteroom "github.com/anteroom/anteroom/sync"
)

// BenchmarkPage makes an answer about n held locks, or n waiters for one, after the watchdog has checked them.
// docs/observability.md has the results of
//
//	go test -run '^$' -bench Page -benchtime 20x ./metrics/debug
func BenchmarkPage(b *testing.B) {
	for _, n := range []int{100, 100_000} {
		b.Run(fmt.Sprintf("held=%d", n), func(b *testing.B) { benchPage(b, n, 1) })
		b.Run(fmt.Sprintf("waiting=%d", n), func(b *testing.B) { benchPage(b, 1, n) })
	}
}

func benchPage(b *testing.B, held, waiting int) {
	p := newPage(b, debug.Config{})
	m, err := anteroom.NewManager(testredis.Start(b).Client(b), anteroom.Config{
		Logger: slog.New(slog.DiscardHandler), OnEvent: p.OnEvent,
		Defaults: anteroom.LockConfig{LeaseTime: 10 * time.Minute, RenewalTime: 4 * time.Minute},
	})
	if err != nil {
		b.Fatal(err)
	}
	p.Attach(m)
	defer m.Close(bg)
	holds := make([]*anteroom.Hold, held)
	var wg sync.WaitGroup
	for w := range 64 {
		wg.Go(func() {
			for i := w; i < held; i += 64 {
				holds[i] = acquire(b, m.Mutex(fmt.Sprint("order:", i)))
			}
		})
	}
	wg.Wait()
	for range waiting {
		wg.Go(func() {
			if h, err := m.Mutex("order:0").Acquire(bg); err == nil {
				_ = h.Release(bg)
			}
		})
	}
	eventually(b, "they wait", func() bool { return m.Counts()["default"].Waiting == waiting })
	time.Sleep(6 * time.Second) // the watchdog's period plus a tenth
	for _, format := range []string{"html", "json"} {
		b.Run(format, func(b *testing.B) {
			b.ReportAllocs()
			size := 0
			for b.Loop() {
				rec := httptest.NewRecorder()
				p.ServeHTTP(rec, request(http.MethodGet, "/?format="+format))
				size = rec.Body.Len()
			}
			b.ReportMetric(float64(size), "bytes")
		})
	}
	b.Run("Snapshot", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			runtime.KeepAlive(m.Snapshot())
		}
	})
	b.Run("Counts", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			m.Counts()
		}
	})
	for w := range 64 {
		wg.Go(func() {
			for i := w; i < held; i += 64 {
				_ = holds[i].Release(bg)
			}
		})
	}
	wg.Wait()
}
