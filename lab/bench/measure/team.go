package measure

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom/lab/bench/library"
)

// Load is the work of one process.
type Load struct {
	Goroutines int
	// Keys is the number of locks. With one, all goroutines want it. With more, every acquisition is of a random one,
	// by the same sequence for every library, and creates a new handle, as in a program whose keys come from
	// requests.
	Keys int
	// Hold is how long a lock is held, asleep, as when waiting for an answer.
	Hold time.Duration
	// Prefix is the prefix of the keys, so that rounds share none.
	Prefix string
	// Guards has one for each key; nil means new ones for this process alone.
	Guards []Guard
	// First is added to the goroutines' numbers, which must differ between processes.
	First uint32
}

// Window is the time that is counted. Begin and End, if not nil, are called at its ends, before this process takes
// its own readings.
type Window struct {
	Warm, For  time.Duration
	Begin, End func()
}

// comeBack bounds how long goroutines may take to come back after the end.
const comeBack = 20 * time.Second

// The phases of a round.
const (
	warming = iota
	counting
	over
)

// Team is the goroutines of one process, ready to begin.
type Team struct {
	load    Load
	names   []string
	workers []*worker
	phase   atomic.Int32
	start   chan struct{}
	done    sync.WaitGroup
	cancel  context.CancelFunc
}

// Muster starts the goroutines, which wait for Run. Their handles come from c. The goroutines end with ctx, or when
// Run has finished.
func (l Load) Muster(ctx context.Context, c library.Client) *Team {
	ctx, cancel := context.WithCancel(ctx)
	t := &Team{load: l, start: make(chan struct{}), cancel: cancel}
	if l.Guards == nil {
		t.load.Guards = make([]Guard, l.Keys)
	}
	for i := range l.Keys {
		t.names = append(t.names, fmt.Sprintf("%s:%d", l.Prefix, i))
	}
	for i := range l.Goroutines {
		number := l.First + uint32(i) + 1
		w := &worker{team: t, client: c, number: number, random: rand.NewPCG(uint64(number), 1)}
		if l.Keys == 1 {
			w.handle = c.Handle(t.names[0])
		}
		t.workers = append(t.workers, w)
		t.done.Go(func() {
			defer w.back.Store(true)
			defer w.rescue()
			select {
			case <-t.start:
				w.work(ctx)
			case <-ctx.Done():
			}
		})
	}
	return t
}

// Run lets the goroutines work, and returns what they saw in the window. It is called once.
func (t *Team) Run(w Window) Tally {
	defer t.cancel()
	close(t.start)
	time.Sleep(w.Warm)
	begin, began := t.moment(w.Begin, counting)
	time.Sleep(w.For)
	end, ended := t.moment(w.End, over)
	t.cancel()
	t.await()
	tally := t.tally()
	tally.Elapsed = ended.Sub(began)
	tally.CPU = end.cpu - begin.cpu
	tally.Objects, tally.AllocBytes = end.objects-begin.objects, end.bytes-begin.bytes
	return tally
}

// moment takes the readings, in the same order at both ends of the window so that their own cost cancels out, and
// then starts the next phase.
func (t *Team) moment(also func(), next int32) (usage, time.Time) {
	if also != nil {
		also()
	}
	u := readUsage()
	t.phase.Store(next)
	return u, time.Now()
}

// await returns when all are back, or when it is certain that some are stuck.
func (t *Team) await() {
	all := make(chan struct{})
	go func() {
		t.done.Wait()
		close(all)
	}()
	timer := time.NewTimer(comeBack)
	defer timer.Stop()
	select {
	case <-all:
	case <-timer.C:
	}
}

// tally adds up what the goroutines saw that are back.
func (t *Team) tally() Tally {
	sum := Tally{Least: ^uint64(0)}
	for _, w := range t.workers {
		if !w.back.Load() {
			sum.Stuck++
			sum.Least = 0
			continue
		}
		sum.Ops += w.wait.Total
		sum.Least, sum.Most = min(sum.Least, w.wait.Total), max(sum.Most, w.wait.Total)
		sum.Wait.Add(&w.wait)
		sum.Violations += w.violations
		sum.Failures += w.failures
		if sum.Failure == "" && w.failure != nil {
			sum.Failure = w.failure.Error()
		}
	}
	sum.LeastProcess, sum.MostProcess, sum.Processes = sum.Ops, sum.Ops, 1
	return sum
}
