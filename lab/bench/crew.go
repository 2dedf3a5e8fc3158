package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/lab/bench/library"
)

// crewPlan is the work of one of several processes.
type crewPlan struct {
	Library string
	Kind    library.Kind
	Addr    string
	Guard   string // the file that all of them map
	Load    load
}

// Bounds on a crew. Starting is generous because 64 processes start on few cores; at the end goroutines have comeBack.
const (
	startWithin = time.Minute
	endWithin   = time.Minute
)

// together measures processes that do the same, with one key. They begin together, and all have ended when it returns.
func together(ctx context.Context, r round) (f figures, err error) {
	dir, err := os.MkdirTemp("", "anteroom-crew-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	p, err := newProbe(ctx, r.addr)
	if err != nil {
		return nil, err
	}
	defer p.close()
	var processes []*child.Process
	defer func() {
		for _, p := range processes {
			err = errors.Join(err, p.Stop(endWithin))
		}
	}()
	for i := range r.processes {
		plan := crewPlan{r.lib.Name, r.kind, r.addr, filepath.Join(dir, "guard"), r.load}
		plan.Load.First = uint32(i * r.load.Goroutines)
		process, err := child.Start(ctx, "crew", plan, startWithin+r.load.Warm+r.load.For+endWithin)
		if err != nil {
			return nil, err
		}
		processes = append(processes, process)
	}
	for i, process := range processes {
		var ready string
		if err := process.Receive(&ready, startWithin); err != nil {
			return nil, fmt.Errorf("process %d: %w", i, err)
		}
	}
	for _, process := range processes {
		if err := process.Send("go"); err != nil {
			return nil, err
		}
	}
	time.Sleep(r.load.Warm)
	begin, err := p.read(ctx)
	if err != nil {
		return nil, err
	}
	time.Sleep(r.load.For)
	end, err := p.read(ctx)
	if err != nil {
		return nil, err
	}
	var sum tally
	for _, process := range processes {
		var t tally
		if err := process.Receive(&t, endWithin); err != nil {
			return nil, err
		}
		if t.Failure != "" {
			r.note(t.Failure)
		}
		sum.add(&t)
	}
	return sum.figures(r.load.Goroutines).add(end.perOp(begin, sum.Ops, r.lib.Sends)), nil
}

// crewRole is one process of a crew.
func crewRole(ctx context.Context, l *child.Link, raw json.RawMessage) error {
	var plan crewPlan
	if err := json.Unmarshal(raw, &plan); err != nil {
		return err
	}
	// It is never unmapped: a goroutine that is stuck in a library may come back, and the process ends soon.
	guards, err := mapGuard(plan.Guard)
	if err != nil {
		return err
	}
	lib, err := library.For(plan.Library, plan.Kind)
	if err != nil {
		return err
	}
	c, err := lib.Open(plan.Addr)
	if err != nil {
		return err
	}
	if err := l.Send("ready"); err != nil {
		return err
	}
	var word string
	if err := l.Receive(&word); err != nil {
		return err
	}
	plan.Load.guards = guards
	t := plan.Load.run(ctx, c, nil, nil)
	if err := l.Send(t); err != nil {
		return err
	}
	<-ctx.Done() // the connections stay until the parent has counted them
	if t.Stuck > 0 {
		return nil // Close would wait for stuck goroutines
	}
	return c.Close()
}

// alone measures one process, this one.
func alone(ctx context.Context, r round) (figures, error) {
	p, err := newProbe(ctx, r.addr)
	if err != nil {
		return nil, err
	}
	defer p.close()
	c, err := r.lib.Open(r.addr)
	if err != nil {
		return nil, err
	}
	var begin, end reading
	var failed [2]error
	t := r.load.run(ctx, c, func() { begin, failed[0] = p.read(ctx) }, func() { end, failed[1] = p.read(ctx) })
	if err := errors.Join(failed[:]...); err != nil {
		return nil, err
	}
	closed := make(chan error, 1) // a client with stuck goroutines may hang
	go func() { closed <- c.Close() }()
	select {
	case err := <-closed:
		if err != nil && t.Failure == "" {
			t.Failure = err.Error()
		}
	case <-time.After(comeBack):
		t.Failure = "Close did not return"
	}
	if t.Failure != "" {
		r.note(t.Failure)
	}
	return t.figures(r.load.Goroutines).add(end.perOp(begin, t.Ops, r.lib.Sends)), nil
}
