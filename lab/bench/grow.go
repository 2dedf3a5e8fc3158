package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/lab/bench/library"
	anteroom "github.com/anteroom/anteroom/sync"
)

// growPlan is the work of a child: many held locks. Each number has a process of its own, so that nothing of an
// earlier one is measured with it.
//
//	parent, beside redis-server                 child, the only thing in its process
//	                                            before: heap, goroutines
//	                                            N locks
//	  ◄──────────────── ready ───────────────   after: heap, goroutines
//	INFO ── go ─────────────────────────────►   window: CPU
//	INFO   ◄──────────────── seen ───────────   end
type growPlan struct {
	Library, Addr, Prefix string
	N                     int
	For                   time.Duration
}

// growWithin bounds how long N items may take to be created and to be removed.
const growWithin = 5 * time.Minute

// holdMany measures one number of held locks.
func holdMany(ctx context.Context, r round) (f figures, err error) {
	p, err := newProbe(ctx, r.addr)
	if err != nil {
		return nil, err
	}
	defer p.close()
	empty, err := p.read(ctx)
	if err != nil {
		return nil, err
	}
	plan := growPlan{r.lib.Name, r.addr, r.load.Prefix, r.load.Keys, r.load.For}
	c, err := child.Start(ctx, "grow", plan, 2*growWithin+plan.For)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Stop(growWithin)) }()
	var ready, seen, last figures
	if err := c.Receive(&ready, growWithin); err != nil {
		return nil, err
	}
	begin, err := p.read(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.Send("go"); err != nil {
		return nil, err
	}
	if err := c.Receive(&seen, growWithin+plan.For); err != nil {
		return nil, err
	}
	end, err := p.read(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.Receive(&last, growWithin); err != nil {
		return nil, err
	}
	ready.add(seen, last, figures{
		redisPerItem:  (end.memory - empty.memory) / float64(plan.N),
		redisPercent:  100 * (end.cpu - begin.cpu) / end.at.Sub(begin.at).Seconds(),
		commandsInAll: end.sent(begin, r.lib.Sends),
	})
	return ready, nil
}

// growRole is the child's side.
func growRole(ctx context.Context, l *child.Link, raw json.RawMessage) error {
	var plan growPlan
	if err := json.Unmarshal(raw, &plan); err != nil {
		return err
	}
	c, err := openAlone(plan.Library, plan.Addr)
	if err != nil {
		return err
	}
	// Connections, scripts and pools exist before anything is measured.
	err = each(2000, func(i int) error {
		h := c.Handle(fmt.Sprintf("%s:warm:%d", plan.Prefix, i%500))
		if err := h.Lock(ctx); err != nil {
			return err
		}
		return h.Unlock()
	})
	if err != nil {
		return err
	}
	return errors.Join(holdAll(ctx, l, c, plan), c.Close())
}

// settled is the time after the last acquisition by which every lock has been renewed and checked, and the garbage of
// acquiring is gone. A window shorter than that sees no renewals in any case.
const settled = 15 * time.Second

// holdAll holds N locks for a while.
func holdAll(ctx context.Context, l *child.Link, c library.Client, plan growPlan) error {
	handles := make([]library.Handle, plan.N)
	before, began := weigh(), time.Now()
	err := each(plan.N, func(i int) error {
		handles[i] = c.Handle(fmt.Sprintf("%s:held:%d", plan.Prefix, i))
		return handles[i].Lock(ctx)
	})
	if err != nil {
		return err
	}
	taken := float64(plan.N) / time.Since(began).Seconds()
	after := weigh()
	f := figures{
		takenPerS: taken, heapPerItem: (after.heap - before.heap) / float64(plan.N), moreRoutines: float64(after.goroutines - before.goroutines),
	}
	time.Sleep(min(settled, 2*plan.For))
	runtime.GC()
	if err := watched(l, f, plan.For); err != nil {
		return err
	}
	began = time.Now()
	var lost atomic.Int64
	_ = each(plan.N, func(i int) error {
		err := handles[i].Unlock()
		if err != nil && !errors.Is(err, anteroom.ErrUnavailable) { // a slow answer is no loss
			lost.Add(1)
		}
		return nil
	})
	return l.Send(figures{freedPerS: float64(plan.N) / time.Since(began).Seconds(), locksLost: float64(lost.Load())})
}

// openAlone opens a library that has its keys to itself.
func openAlone(name, addr string) (library.Client, error) {
	lib, err := library.For(name, library.Alone)
	if err != nil {
		return nil, err
	}
	return lib.Open(addr)
}

// watched tells the parent that all items are there, leaves the process undisturbed for d, and tells its cost.
func watched(l *child.Link, f figures, d time.Duration) error {
	if err := l.Send(f); err != nil {
		return err
	}
	var word string
	if err := l.Receive(&word); err != nil {
		return err
	}
	cpu, began := cpuTime(), time.Now()
	time.Sleep(d)
	return l.Send(figures{cpuPercent: 100 * (cpuTime() - cpu).Seconds() / time.Since(began).Seconds()})
}

// weight is the memory of a process at one moment, after a collection.
type weight struct {
	heap       float64
	goroutines int
}

func weigh() weight {
	// Goroutines that linger for more work end.
	n, since := runtime.NumGoroutine(), time.Now()
	for end := since.Add(2 * time.Second); time.Since(since) < 200*time.Millisecond && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if now := runtime.NumGoroutine(); now != n {
			n, since = now, time.Now()
		}
	}
	// The first collection may leave objects with finalizers, or in pools.
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return weight{float64(m.HeapAlloc), runtime.NumGoroutine()}
}

// each calls f for every number below n, in 64 goroutines, and returns the first error.
func each(n int, f func(i int) error) (first error) {
	var next atomic.Int64
	var wg sync.WaitGroup
	var once sync.Once
	for range 64 {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
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
