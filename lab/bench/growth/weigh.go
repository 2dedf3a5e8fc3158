package growth

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/anteroom/anteroom/lab/bench/measure"
)

// The figures of the child.
const (
	HeapPerItem  measure.Figure = "heap_bytes_per_item"  // without stacks
	StackPerItem measure.Figure = "stack_bytes_per_item" // of goroutines
	HeapGrowth   measure.Figure = "heap_growth_bytes"    // in total, when all items are gone
	Goroutines   measure.Figure = "goroutines_most"      // maximum seen in the window
	MoreRoutines measure.Figure = "goroutines_more"      // than before
	CPU          measure.Figure = "client_cpu_percent_of_core"
)

// weight is the memory of a process at one moment, after a collection.
type weight struct {
	heap, stacks float64
	goroutines   int
}

func weigh() weight {
	settle()
	// The first collection may leave objects with finalizers, or in pools.
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return weight{float64(m.HeapAlloc), float64(m.StackInuse), runtime.NumGoroutine()}
}

// calm is how long the number of goroutines must stay the same: those that linger for more work end sooner.
const calm = 200 * time.Millisecond

// settle returns when the number of goroutines is stable, or after a while.
func settle() {
	n, since := runtime.NumGoroutine(), time.Now()
	for end := since.Add(10 * calm); time.Since(since) < calm && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if now := runtime.NumGoroutine(); now != n {
			n, since = now, time.Now()
		}
	}
}

// per returns the figures for each of n items.
func (w weight) per(before weight, n int) measure.Figures {
	return measure.Figures{
		HeapPerItem:  (w.heap - before.heap) / float64(n),
		StackPerItem: (w.stacks - before.stacks) / float64(n),
		MoreRoutines: float64(w.goroutines - before.goroutines),
	}
}

// cpuTime is the processor time of the process so far.
func cpuTime() time.Duration {
	var r unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// lookEvery is how often the goroutines are counted: rarely, since counting wakes the process that is to be
// undisturbed.
const lookEvery = 250 * time.Millisecond

// look leaves the process undisturbed for d, and returns its cost.
func look(d time.Duration) measure.Figures {
	most := 0
	began, cpu := time.Now(), cpuTime()
	for end := began.Add(d); time.Now().Before(end); time.Sleep(lookEvery) {
		most = max(most, runtime.NumGoroutine())
	}
	return measure.Figures{
		CPU:        100 * (cpuTime() - cpu).Seconds() / time.Since(began).Seconds(),
		Goroutines: float64(most),
	}
}

// atOnce is the number of goroutines that create, release or use the items.
const atOnce = 64

// each calls f for every number below n, in several goroutines, and returns the first error.
func each(n int, f func(i int) error) error {
	var next atomic.Int64
	var wg sync.WaitGroup
	var first error
	var once sync.Once
	for range atOnce {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := f(i); err != nil {
					once.Do(func() { first = err })
					return
				}
			}
		})
	}
	wg.Wait()
	return first
}
