//go:build unix

package anteroom_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// window is how long each benchmark of this file looks at a state that does not change:
// two renewal times, four periods of the watchdog.
const window = 20 * time.Second

// BenchmarkHeld holds n locks with the default LockConfig and looks at them for a window:
// the client's memory for each (the key not counted), the processor time that renewals and
// watchdog cost together, and how much of the lease was left when the worst renewal landed.
// One iteration takes a minute:
//
//	go test -run '^$' -bench 'Held/.*/n=100000' -benchtime 1x ./sync
func BenchmarkHeld(b *testing.B) {
	for _, way := range []string{"Acquire", "Lock"} {
		for _, n := range []int{100, 1000, 10_000, 100_000} {
			b.Run(fmt.Sprintf("%s/n=%d", way, n), func(b *testing.B) { benchHeld(b, n, way == "Lock") })
		}
	}
}

func benchHeld(b *testing.B, n int, lock bool) {
	s := testredis.Start(b)
	rdb := s.Client(b)
	seen := &renewals{}
	m, rec := manager(b, rdb, anteroom.Config{Observer: hooks(seen)})
	warmUp(m)
	names, mutexes, holds := numbered(n), make([]*anteroom.Mutex, n), make([]*anteroom.Hold, n)
	time.Sleep(time.Second) // the goroutines that linger end
	before, goroutines := heap(), runtime.NumGoroutine()
	free := holdAll(b, m, names, mutexes, holds, lock)
	time.Sleep(25 * time.Second) // every lease was renewed, every hold looked at
	for b.Loop() {
		seen.done.Store(0)
		seen.failed.Store(0)
		seen.worst.Store(0)
		start, client, server, calls := time.Now(), cpu(), redisCPU(b, rdb), scriptCalls(b, rdb)
		time.Sleep(window)
		took := time.Since(start).Seconds()
		b.ReportMetric(100*(cpu()-client)/took, "client-%core")
		b.ReportMetric(100*(redisCPU(b, rdb)-server)/took, "redis-%core")
		b.ReportMetric(float64(seen.done.Load())/took, "renewals/s")
		b.ReportMetric((scriptCalls(b, rdb)-calls)/took, "calls/s")
		b.ReportMetric(float64(seen.failed.Load()), "failed")
		b.ReportMetric(30-float64(seen.worst.Load())/1e9, "s-left")
	}
	b.ReportMetric(float64(settled()-before)/float64(n), "B/lock")
	b.ReportMetric(float64(runtime.NumGoroutine()-goroutines-holders), "goroutines")
	b.ReportMetric(float64(len(rec.of(observe.EventLost))), "lost")
	b.ReportMetric(0, "ns/op")
	free()
}

// BenchmarkCounts is what a scrape costs that meets n held locks.
func BenchmarkCounts(b *testing.B) {
	for _, n := range []int{1000, 100_000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			rdb := testredis.Start(b).Client(b)
			m, _ := manager(b, rdb, anteroom.Config{})
			free := holdAll(b, m, numbered(n), make([]*anteroom.Mutex, n), make([]*anteroom.Hold, n), false)
			for b.Loop() {
				if c := m.Counts()["default"]; c.Held != n || c.OldestHold == 0 {
					b.Fatalf("%+v", c)
				}
			}
			b.StopTimer()
			free()
		})
	}
}

// warmUp makes what exists once for all locks: scripts, the subscription, go-redis'
// connections with 64 KiB of buffers each.
func warmUp(m *anteroom.Manager) {
	var wg sync.WaitGroup
	for i := range holders {
		wg.Go(func() {
			for range 10 {
				pass(m.Mutex("warm:" + strconv.Itoa(i)))
			}
		})
	}
	wg.Wait()
}

// holders is how many goroutines take the locks and live until the end, as a Lock demands.
const holders = 64

// holdAll takes all locks, by Lock or into holds.
func holdAll(b *testing.B, m *anteroom.Manager, names []string, mutexes []*anteroom.Mutex, holds []*anteroom.Hold, lock bool) (free func()) {
	var taken, ended sync.WaitGroup
	quit := make(chan struct{})
	taken.Add(holders)
	for w := range holders {
		ended.Go(func() {
			for i := w; i < len(names); i += holders {
				mutexes[i] = m.Mutex(names[i])
				if lock {
					mutexes[i].Lock()
				} else {
					holds[i] = acquire(b, mutexes[i])
				}
			}
			taken.Done()
			<-quit
			for i := w; i < len(names); i += holders {
				if lock {
					mutexes[i].Unlock()
				} else {
					_ = holds[i].Release(bg)
				}
			}
		})
	}
	taken.Wait()
	return func() { close(quit); ended.Wait() }
}

// BenchmarkParked parks n goroutines behind an owner in the same process and looks at them
// for a window: what each costs beside its stack, and what Redis is asked meanwhile.
func BenchmarkParked(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) { benchParked(b, n) })
	}
}

func benchParked(b *testing.B, n int) {
	s := testredis.Start(b)
	rdb := s.Client(b)
	m, _ := manager(b, rdb, anteroom.Config{})
	warmUp(m)
	mu := m.Mutex("k")
	owner := acquire(b, mu)
	time.Sleep(time.Second)
	before := heap()
	var stacks runtime.MemStats
	runtime.ReadMemStats(&stacks)
	var in sync.WaitGroup
	for range n {
		in.Go(func() { pass(mu) }) // to be in is all
	}
	for m.Counts()["default"].Waiting < n {
		time.Sleep(time.Millisecond)
	}
	for b.Loop() {
		start, client, calls := time.Now(), cpu(), commands(b, rdb)
		time.Sleep(window)
		took := time.Since(start).Seconds()
		b.ReportMetric(100*(cpu()-client)/took, "client-%core")
		for name, count := range commands(b, rdb) {
			if count > calls[name] && name != "info" {
				b.ReportMetric(float64(count-calls[name]), name)
			}
		}
	}
	b.ReportMetric(float64(heap()-before)/float64(n), "B/waiter")
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	b.ReportMetric(float64(now.StackInuse-stacks.StackInuse)/float64(n), "stack-B/waiter")
	b.ReportMetric(0, "ns/op")
	ok(b, owner.Release(bg))
	in.Wait()
}

// renewals counts the renewals that the Observer reports.
type renewals struct {
	done, failed atomic.Int64
	worst        atomic.Int64 // the most that a lease had aged when its renewal landed, in ns
}

func (r *renewals) Renewed(_ string, o observe.Outcome, left time.Duration) {
	if o != observe.OutcomeRenewed {
		r.failed.Add(1)
		return
	}
	r.done.Add(1)
	// The deadline is the margin before the end of 30 s.
	for age := int64(30*time.Second - left); ; {
		worst := r.worst.Load()
		if age <= worst || r.worst.CompareAndSwap(worst, age) {
			return
		}
	}
}

func numbered(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = "order:" + strconv.Itoa(1_000_000+i)
	}
	return names
}

// heap returns the bytes of what is reachable.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

// settled returns the median of five readings of heap: questions under way and their
// answers come and go.
func settled() int64 {
	var sizes []int64
	for range 5 {
		sizes = append(sizes, heap())
		time.Sleep(150 * time.Millisecond)
	}
	slices.Sort(sizes)
	return sizes[len(sizes)/2]
}

// cpu returns the processor time of this process in seconds, the collector's included.
func cpu() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// info returns the figures of one section of INFO.
func info(b *testing.B, rdb *redis.Client, section string) map[string]string {
	b.Helper()
	text, err := rdb.Info(context.Background(), section).Result()
	ok(b, err)
	figures := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), ":"); found {
			figures[name] = value
		}
	}
	return figures
}

// redisCPU returns the server's processor time in seconds.
func redisCPU(b *testing.B, rdb *redis.Client) (sum float64) {
	figures := info(b, rdb, "cpu")
	for _, name := range []string{"used_cpu_sys", "used_cpu_user"} {
		seconds, err := strconv.ParseFloat(figures[name], 64)
		ok(b, err)
		sum += seconds
	}
	return sum
}

// commands returns how often each command was called, those in scripts included.
func commands(b *testing.B, rdb *redis.Client) map[string]int64 {
	counts := map[string]int64{}
	for name, text := range info(b, rdb, "commandstats") {
		calls, _, _ := strings.Cut(strings.TrimPrefix(text, "calls="), ",")
		n, err := strconv.ParseInt(calls, 10, 64)
		ok(b, err)
		counts[strings.TrimPrefix(name, "cmdstat_")] = n
	}
	return counts
}

func scriptCalls(b *testing.B, rdb *redis.Client) float64 {
	return float64(commands(b, rdb)["evalsha"])
}
