package queue_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom/queue"
)

// rwGate is a Synchronizer behind the methods of sync.RWMutex, as package sync has it: the moment is read once.
type rwGate struct {
	synchronizer
	zero    time.Time
	waiters sync.Pool
	writer  *queue.Waiter
}

// newRWGate returns one with all units, for ever.
func newRWGate(fair bool) *rwGate {
	l := &rwGate{zero: time.Now()}
	l.waiters.New = func() any { return new(queue.Waiter) }
	l.Init(&queue.Policy{All: all, Fair: fair, Turn: time.Millisecond, Zero: l.zero})
	l.Granted(all, false, 1<<62)
	return l
}

func (l *rwGate) enter(need int32) *queue.Waiter {
	w := l.waiters.Get().(*queue.Waiter)
	w.Stay = new(queue.Stay)
	w.Need, w.Kind = need, queue.NoNotify
	if in, _, _ := l.Acquire(w); !in {
		_, _ = l.Park(context.Background(), w)
	}
	return w
}

func (l *rwGate) put(w *queue.Waiter) {
	w.Reset()
	l.waiters.Put(w)
}

func (l *rwGate) RLock() {
	if !l.AcquireShared(time.Since(l.zero)) {
		l.put(l.enter(1))
	}
}

func (l *rwGate) RUnlock() { l.ReleaseShared(0, 1, 0) }
func (l *rwGate) Lock()    { l.writer = l.enter(all) }

func (l *rwGate) Unlock() {
	w := l.writer
	l.Exit(w)
	l.put(w)
}

type rwLocker interface {
	sync.Locker
	RLock()
	RUnlock()
}

// BenchmarkShared measures readers of an open gate, and readers with a writer among every so many, beside sync.RWMutex.
func BenchmarkShared(b *testing.B) {
	for _, writes := range []int{0, 20} {
		for _, goroutines := range []int{1, 2, 64} {
			for name, make := range map[string]func() rwLocker{
				"fair": func() rwLocker { return newRWGate(true) }, "non-fair": func() rwLocker { return newRWGate(false) },
				"RWMutex": func() rwLocker { return new(sync.RWMutex) },
			} {
				b.Run(fmt.Sprintf("%s/goroutines=%d/writes=%d", name, goroutines, writes), func(b *testing.B) {
					l := make()
					var wg sync.WaitGroup
					for range goroutines {
						wg.Go(func() {
							for i := range b.N / goroutines {
								if writes > 0 && i%writes == writes-1 {
									l.Lock()
									runtime.KeepAlive(l)
									l.Unlock()
								} else {
									l.RLock()
									runtime.KeepAlive(l)
									l.RUnlock()
								}
							}
						})
					}
					wg.Wait()
					b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "M/s")
				})
			}
		}
	}
}
