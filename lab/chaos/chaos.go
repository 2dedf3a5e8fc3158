package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
	"github.com/anteroom/anteroom/lab/history"
)

// chaos is one run.
type chaos struct {
	config
	out   *lines
	begun time.Time

	mu      sync.Mutex
	counts  map[string]int // faults by kind; guarded by mu
	outcome *history.Outcome
}

// lines writes whole lines for several goroutines.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lines) say(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintln(l.w, strings.TrimRight(fmt.Sprintf(format, args...), "\n"))
}

// all is the whole run: processes, faults, the end, the verdict.
func (c *chaos) all(ctx context.Context, tb *testredis.Program) {
	c.out.say("seed=%d for=%v processes=%d goroutines=%d keys=%d", c.seed, c.lasts, c.processes+c.singles, c.processes*c.goroutines+c.singles, c.keys)
	lab := history.NewLab(tb, history.Setup{
		Locks: locks(c.keys), Units: units(c.keys), Processes: c.processes, Goroutines: c.goroutines, Singles: c.singles, SingleKeys: c.singleKeys,
		Seed: c.seed, Apart: c.apart, Admits: c.admits,
	})
	ctx, cancel := context.WithTimeout(ctx, c.lasts)
	defer cancel()
	c.begun = time.Now()
	var wg sync.WaitGroup
	for _, server := range []bool{true, false} {
		wg.Go(func() {
			defer tb.Recover()
			c.inject(ctx, lab, plan(c.config, server))
		})
	}
	wg.Wait()
	<-ctx.Done()
	if len(tb.Failures()) > 0 {
		return
	}
	c.out.say("%6.1fs everything has healed", time.Since(c.begun).Seconds())
	o := lab.Finish(pace.Scale(bound))
	c.mu.Lock()
	c.outcome = o
	c.mu.Unlock()
}

// inject injects one fault after the other, until ctx ends. A fault that has begun is carried through.
func (c *chaos) inject(ctx context.Context, lab *history.Lab, steps []step) {
	for _, s := range steps {
		timer := time.NewTimer(s.after)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		c.out.say("%6.1fs %v", time.Since(c.begun).Seconds(), s)
		if err := s.kind.do(lab, s); err != nil {
			c.out.say("%6.1fs   it did not take place: %v", time.Since(c.begun).Seconds(), err)
			continue
		}
		c.mu.Lock()
		c.counts[s.kind.name]++
		c.mu.Unlock()
	}
}
