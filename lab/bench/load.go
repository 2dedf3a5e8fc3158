package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/anteroom/anteroom/lab/bench/library"
)

// load is the work of one process. Every library is measured by the same loop: two readings of the clock, around
// Lock; one guard, inside; no allocation.
//
//	            begin                          end
//	── warm-up ───┼──────── counted ────────────┼─ context ends, all come back
//	each goroutine: Lock, [hold], Unlock        │
type load struct {
	Goroutines int
	// Keys is the number of locks. With one, all goroutines want it. With more, every acquisition is of a random one,
	// by the same sequence for every library, and creates a new handle, as in a program whose keys come from
	// requests.
	Keys int
	// Reads is how many of 100 acquisitions read; the others write. 0: the lock is none of readers and writers.
	Reads uint64
	// Together is how many may have the lock together that do not read; 0: one.
	Together int64
	// Hold is how long a lock is held, asleep, as when waiting for an answer.
	Hold time.Duration
	// Prefix is the prefix of the keys, so that rounds share none.
	Prefix    string
	Warm, For time.Duration
	// First is added to the goroutines' numbers, from which their random choices begin.
	First  uint32
	guards []guard // one for each key; nil: new ones for this process alone
}

// guard proves that a protected section is protected: it counts the shares of those inside, and the last one who comes
// sees if there are too many.
type guard struct {
	inside atomic.Int64
	_      [56]byte // a cache line of its own
}

// everything is the share of one who must be alone.
const everything = 1 << 20

func (g *guard) enter(share int64) (ok bool) { return g.inside.Add(share) <= everything }

func (g *guard) leave(share int64) { g.inside.Add(-share) }

// mapGuard returns a guard shared by all processes that map the same file.
func mapGuard(path string) ([]guard, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	const size = int(unsafe.Sizeof(guard{}))
	if err := f.Truncate(int64(size)); err != nil {
		return nil, err
	}
	data, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*guard)(unsafe.Pointer(&data[0])), 1), nil
}

// comeBack bounds how long goroutines may take to come back after the end.
const comeBack = 20 * time.Second

// The phases of a round.
const (
	warming = iota
	counting
	over
)

// team is the goroutines of one process at work.
type team struct {
	load
	client library.Client
	names  []string
	phase  atomic.Int32
}

// run does the work, and returns what the goroutines saw. begin and end, if not nil, are called at the ends of the
// window, before this process takes its own readings.
func (l load) run(ctx context.Context, c library.Client, begin, end func()) tally {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t := &team{load: l, client: c}
	if l.guards == nil {
		t.guards = make([]guard, l.Keys)
	}
	for i := range l.Keys {
		t.names = append(t.names, fmt.Sprintf("%s:%d", l.Prefix, i))
	}
	workers := make([]*worker, l.Goroutines)
	var done sync.WaitGroup
	for i := range workers {
		w := &worker{team: t, random: rand.NewPCG(uint64(l.First)+uint64(i)+1, 1)}
		if l.Keys == 1 {
			w.handle = c.Handle(t.names[0])
		}
		workers[i] = w
		done.Go(func() {
			defer w.back.Store(true)
			defer w.rescue()
			w.work(ctx)
		})
	}
	time.Sleep(l.Warm)
	before, began := t.moment(begin, counting)
	time.Sleep(l.For)
	after, ended := t.moment(end, over)
	cancel()
	all := make(chan struct{})
	go func() { done.Wait(); close(all) }()
	select {
	case <-all:
	case <-time.After(comeBack):
	}
	sum := tally{
		Least: ^uint64(0), Processes: 1, Elapsed: ended.Sub(began), CPU: after.cpu - before.cpu,
		Objects: after.objects - before.objects, Heap: after.heap - before.heap,
	}
	for _, w := range workers {
		sum.take(w)
	}
	sum.LeastProcess, sum.MostProcess = sum.Ops, sum.Ops
	return sum
}

// usage is what this process had used at one moment.
type usage struct {
	cpu           time.Duration
	objects, heap uint64
}

// moment takes the readings, in the same order at both ends of the window so that their own cost cancels out, and
// then starts the next phase.
func (t *team) moment(also func(), next int32) (usage, time.Time) {
	if also != nil {
		also()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u := usage{cpuTime(), m.Mallocs, m.TotalAlloc}
	t.phase.Store(next)
	return u, time.Now()
}

// cpuTime returns the processor time of the process, in user and in system mode.
func cpuTime() time.Duration {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r) // fails only for another address
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// afterFailure is the pause after an error, so that a library that fails immediately does not keep the processor from the
// others.
const afterFailure = time.Millisecond

// worker is one goroutine. Only it writes the fields; they are read when it is back.
type worker struct {
	*team
	handle library.Handle // of the only key; nil where there are several
	random *rand.PCG

	wait       histogram
	writes     histogram // of the waits those of writers, if there are readers
	violations uint64
	failures   uint64
	failure    error // the first
	back       atomic.Bool
}

// work is the loop by which every library is measured, until the round is over. After the end, acquisitions only let
// the others proceed, and an error only means that the context has ended; the wait up to then counts all the same.
func (w *worker) work(ctx context.Context) {
	for w.phase.Load() != over {
		h, g := w.next()
		acquire, release, share := h.Lock, h.Unlock, everything/max(w.Together, 1)
		reads := w.Reads > 0 && w.random.Uint64()%100 < w.Reads
		if reads {
			acquire, release, share = h.(library.Sharer).RLock, h.(library.Sharer).RUnlock, 1
		}
		before := time.Now()
		err := acquire(ctx)
		waited := time.Since(before)
		phase := w.phase.Load()
		if err != nil {
			if phase != over {
				w.failed(err)
			} else {
				w.wait.Max = max(w.wait.Max, waited)
			}
			continue
		}
		if !g.enter(share) && phase != over { // locks of rueidislock end with the context with which they were acquired
			w.violations++
		}
		if w.Hold > 0 && phase != over {
			time.Sleep(w.Hold)
		}
		g.leave(share)
		if err := release(); err != nil {
			w.failed(err)
		}
		switch phase {
		case counting:
			w.wait.record(waited)
			if w.Reads > 0 && !reads {
				w.writes.record(waited)
			}
		case over:
			w.wait.Max = max(w.wait.Max, waited)
		}
	}
}

// next returns the next lock.
func (w *worker) next() (library.Handle, *guard) {
	if w.handle != nil {
		return w.handle, &w.guards[0]
	}
	i := w.random.Uint64() % uint64(len(w.names))
	return w.client.Handle(w.names[i]), &w.guards[i]
}

func (w *worker) failed(err error) {
	if w.failure == nil {
		w.failure = err
	}
	w.failures++
	time.Sleep(afterFailure)
}

// rescue turns a panic of the library into one more failure: the other libraries are still to be measured.
func (w *worker) rescue() {
	if cause := recover(); cause != nil {
		w.failed(fmt.Errorf("panic: %v", cause))
	}
}
