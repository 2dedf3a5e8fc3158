package growth

import (
	"context"
	"fmt"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/lab/bench/library"
	"github.com/anteroom/anteroom/lab/bench/measure"
)

// The figures of parked goroutines.
const (
	// BareHeap is the heap of a goroutine that is parked on a channel, without its stack. HeapPerItem includes it.
	BareHeap measure.Figure = "bare_goroutine_heap_bytes"
	// HandoffsPerS is the rate of hand-offs with N goroutines parked.
	HandoffsPerS measure.Figure = "handoffs_per_s_with_all_parked"
	// OtherCommands is the number of commands sent while the owner held the lock, other than renewals and the probes
	// of the watchdog and the subscription.
	OtherCommands measure.Figure = "other_commands_in_window"
)

// waiters makes N goroutines wait behind one owner, and then hand the lock around.
func waiters(_ context.Context, l *child.Link, plan Plan) error {
	mu, m, err := locker(plan)
	if err != nil {
		return err
	}
	before := weigh()
	// Go keeps the descriptors of ended goroutines, so these come first.
	bare, err := parkBare(before, plan.N)
	if err != nil {
		return err
	}
	p := newParked(mu)
	mu.Lock()
	for range plan.N {
		p.wg.Go(p.wait)
	}
	if err := awaitParked(before.goroutines + plan.N); err != nil {
		return err
	}
	f := weigh().per(before, plan.N).Add(measure.Figures{BareHeap: bare})
	r := report{Figures: f}
	if m.Manager != nil {
		r.Sends = sends()
		m.reset()
	}
	if err := ready(l, r); err != nil {
		return err
	}
	watched := report{Figures: measure.Figures{}}
	if m.Manager != nil { // only a Manager does anything meanwhile
		watched.Figures = look(plan.For)
		m.tell(&watched)
	}
	if err := l.Send(watched); err != nil {
		return err
	}
	last := report{Figures: p.pass(min(plan.For, 3*time.Second))}
	if err := l.Send(last); err != nil {
		return err
	}
	if m.Manager != nil {
		return m.close()
	}
	return nil
}

// tell reports the commands of the window, by name.
func (m manager) tell(r *report) {
	m.observer.mu.Lock()
	defer m.observer.mu.Unlock()
	others := 0
	var names []string
	for name, n := range m.commands {
		if !slices.Contains([]string{"renew", "status", "ping", "probe"}, name) {
			others += n
		}
		names = append(names, fmt.Sprintf("%s %d", name, n))
	}
	slices.Sort(names)
	r.Figures[OtherCommands] = float64(others)
	r.Note = "commands in the window: " + strings.Join(names, ", ")
}

// locker returns the lock, and Anteroom's Manager if the lock is Anteroom's.
func locker(plan Plan) (sync.Locker, manager, error) {
	switch plan.Library {
	case library.Mutex:
		return new(sync.Mutex), manager{}, nil
	case library.Semaphore:
		return weighted{semaphore.NewWeighted(1)}, manager{}, nil
	}
	m, err := newManager(plan.Addr, plan.Library == library.AnteroomFair)
	if err != nil {
		return nil, m, err
	}
	return m.Mutex(key(plan.Prefix, "waiters", 0)), m, m.warm(plan.Prefix)
}

// weighted is a semaphore of weight 1 as a sync.Locker.
type weighted struct{ s *semaphore.Weighted }

func (w weighted) Lock() { _ = w.s.Acquire(context.Background(), 1) } // fails with its context only

func (w weighted) Unlock() { w.s.Release(1) }

// parked are the waiting goroutines.
type parked struct {
	mu    sync.Locker
	guard measure.Guard
	wg    sync.WaitGroup
	ops   atomic.Int64
	twice atomic.Int64 // two were inside
	stop  atomic.Bool
}

func newParked(mu sync.Locker) *parked { return &parked{mu: mu} }

// wait waits for the lock, again and again, until it is over.
func (p *parked) wait() {
	for {
		p.mu.Lock()
		over := p.stop.Load()
		alone := p.guard.Enter(1)
		p.ops.Add(1)
		if !p.guard.Leave(1) || !alone {
			p.twice.Add(1)
		}
		p.mu.Unlock()
		if over {
			return
		}
	}
}

// pass lets the lock be handed around for d, and returns when all goroutines have ended.
func (p *parked) pass(d time.Duration) measure.Figures {
	p.mu.Unlock()
	time.Sleep(d / 10) // the first are woken, and bargers barge in
	before, began := p.ops.Load(), time.Now()
	time.Sleep(d)
	rate := float64(p.ops.Load()-before) / time.Since(began).Seconds()
	p.stop.Store(true)
	p.wg.Wait()
	return measure.Figures{HandoffsPerS: rate, measure.Violations: float64(p.twice.Load())}
}

// awaitParked returns when n goroutines wait, and no other is about to (I1).
func awaitParked(n int) error {
	samples := []metrics.Sample{
		{Name: "/sched/goroutines/waiting:goroutines"}, {Name: "/sched/goroutines/runnable:goroutines"},
	}
	for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		metrics.Read(samples)
		// Some of those that existed before sleep in the kernel, and are not counted.
		if waiting := int(samples[0].Value.Uint64()); waiting >= n-20 && samples[1].Value.Uint64() == 0 {
			return nil
		}
	}
	return fmt.Errorf("%d goroutines do not park within %v", n, within)
}

// parkBare measures n goroutines that are parked on a channel.
func parkBare(before weight, n int) (heap float64, err error) {
	gate := make(chan struct{})
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() { <-gate })
	}
	err = awaitParked(before.goroutines + n)
	heap = (weigh().heap - before.heap) / float64(n)
	close(gate)
	wg.Wait()
	return heap, err
}
