package queue_test

import (
	"context"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/anteroom/anteroom/queue"
)

// instant carries out orders immediately, as if Redis granted everything in no time, so that only the queue is measured.
func instant(s *synchronizer, grants *atomic.Uint64, order queue.Order) {
	switch order {
	case queue.GiveBack:
		s.Shrink(0)
		s.Grant(grants.Add(1)) // for those who came meanwhile
	case queue.Restate:
		s.Grant(grants.Add(1))
	}
}

// contend runs b.N operations spread over goroutines, each of which makes its own operation.
func contend(b *testing.B, goroutines int, operation func() func()) {
	b.ReportAllocs()
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for operate := operation(); left.Add(-1) >= 0; {
				operate()
			}
		})
	}
	wg.Wait()
}

// benchmarkSynchronizer uses waiters again and reads no clock, as package sync does.
func benchmarkSynchronizer(b *testing.B, fair bool) {
	for _, goroutines := range []int{1, 64} {
		b.Run(strconv.Itoa(goroutines), func(b *testing.B) {
			s := newMutex(fair)
			var grants, ids atomic.Uint64
			ctx := context.Background()
			contend(b, goroutines, func() func() {
				w := &queue.Waiter{Stay: &queue.Stay{Goroutine: ids.Add(1), Kind: queue.NoNotify, Need: 1}, Began: 1}
				return func() {
					in, order, _ := s.Acquire(w)
					instant(s, &grants, order)
					if !in {
						order, err := s.Park(ctx, w)
						if err != nil {
							b.Error(err)
						}
						instant(s, &grants, order)
					}
					exit, order := s.Release(w.Stay, queue.HandOff)
					if exit == queue.Stale {
						b.Error("the owner's exit is stale")
					}
					instant(s, &grants, order)
					stay := w.Stay
					w.Reset()
					w.Stay, w.Began = stay, 1
				}
			})
		})
	}
}

func BenchmarkSynchronizerFair(b *testing.B)    { benchmarkSynchronizer(b, true) }
func BenchmarkSynchronizerNonFair(b *testing.B) { benchmarkSynchronizer(b, false) }

// BenchmarkMutex is what the non-fair mode is measured against.
func BenchmarkMutex(b *testing.B) {
	for _, goroutines := range []int{1, 64} {
		b.Run(strconv.Itoa(goroutines), func(b *testing.B) {
			var mu sync.Mutex
			n := 0
			contend(b, goroutines, func() func() {
				return func() {
					mu.Lock()
					n++
					mu.Unlock()
				}
			})
		})
	}
}

// BenchmarkChannelSemaphore is the rejected alternative: a buffered channel as the queue. It admits in order of
// arrival too, but knows nothing of its waiters: no kinds, no refusal, no list to show.
func BenchmarkChannelSemaphore(b *testing.B) {
	for _, goroutines := range []int{1, 64} {
		b.Run(strconv.Itoa(goroutines), func(b *testing.B) {
			sem := make(chan struct{}, 1)
			ctx := context.Background()
			contend(b, goroutines, func() func() {
				return func() {
					select {
					case sem <- struct{}{}:
					case <-ctx.Done():
					}
					<-sem
				}
			})
		})
	}
}

// BenchmarkListSemaphore is the shape of x/sync's semaphore, in short: a list of channels under a mutex, where the
// releaser makes the waiter the owner. The fair mode is measured against it.
func BenchmarkListSemaphore(b *testing.B) {
	for _, goroutines := range []int{1, 64} {
		b.Run(strconv.Itoa(goroutines), func(b *testing.B) {
			var sem listSemaphore
			contend(b, goroutines, func() func() {
				return func() {
					sem.acquire()
					sem.release()
				}
			})
		})
	}
}

type listSemaphore struct {
	mu      sync.Mutex
	held    bool
	waiters []chan struct{}
}

func (l *listSemaphore) acquire() {
	l.mu.Lock()
	if !l.held {
		l.held = true
		l.mu.Unlock()
		return
	}
	ready := make(chan struct{})
	l.waiters = append(l.waiters, ready)
	l.mu.Unlock()
	<-ready
}

func (l *listSemaphore) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiters) == 0 {
		l.held = false
		return
	}
	close(l.waiters[0])
	l.waiters = l.waiters[1:]
}

// BenchmarkSize reports the memory of one Synchronizer.
func BenchmarkSize(b *testing.B) {
	b.ReportMetric(float64(unsafe.Sizeof(queue.Synchronizer{})), "B/synchronizer")
	b.ReportMetric(float64(unsafe.Sizeof(queue.Waiter{})), "B/waiter")
}

// BenchmarkParked reports the memory of one parked waiter, its goroutine's stack included.
func BenchmarkParked(b *testing.B) {
	s := newMutex(true)
	ctx, cancel := context.WithCancel(context.Background())
	s.Acquire(&queue.Waiter{Stay: &queue.Stay{Need: 1}})
	s.Grant(1)
	var wg sync.WaitGroup
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range b.N {
		w := &queue.Waiter{Stay: &queue.Stay{Need: 1}}
		s.Acquire(w)
		wg.Go(func() { s.Park(ctx, w) })
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(b.N), "heap-B/waiter")
	cancel()
	wg.Wait()
}
