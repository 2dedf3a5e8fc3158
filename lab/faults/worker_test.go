package faults_test

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"sync"
	"syscall"

	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/internal/pace"
)

// workerRole is the child role of a party with a process of its own.
const workerRole = "faults-party"

// dumpFD is where a worker writes its heap dump: a pipe that the cell reads, or does not.
const dumpFD = 3

// worker is the program of a party with a process of its own.
func worker(_ context.Context, cell *child.Link, plan json.RawMessage) error {
	var s setup
	if err := json.Unmarshal(plan, &s); err != nil {
		return err
	}
	p, err := newParty(s, func(n note) { _ = cell.Send(n) })
	if err != nil {
		return err
	}
	if err := cell.Send(note{}); err != nil {
		return err
	}
	var orders sync.WaitGroup
	for {
		var o order
		if cell.Receive(&o) != nil {
			break
		}
		orders.Go(func() { p.obey(o) })
	}
	orders.Wait()
	// The cell has closed the party before standard input.
	return goleak.Find()
}

// process is a running worker.
type process struct {
	child *child.Process
	dump  *os.File // the reading end of its heap dump
}

// startProcess starts a worker and gives its notes to a.
func startProcess(a *agent, s setup) *process {
	dump, write, err := os.Pipe()
	check(err)
	c, err := child.Start(context.Background(), workerRole, s, child.Forever, write)
	check(err)
	check(write.Close())
	check(c.Receive(new(note), pace.Hang))

	var mu sync.Mutex
	orders := map[int]order{}
	go func() {
		for {
			var n note
			if c.Receive(&n, child.Forever) != nil {
				return
			}
			mu.Lock()
			o := orders[n.ID]
			mu.Unlock()
			a.deliver(o, n)
		}
	}()
	a.send = func(o order) {
		mu.Lock()
		orders[o.ID] = o
		mu.Unlock()
		_ = c.Send(o)
	}
	return &process{child: c, dump: dump}
}

func (p *process) signal(s syscall.Signal) { check(p.child.Signal(s)) }

// stop stops the process, and waits until it has stopped: a thread woken by the server's answer may be faster than
// the signal.
func (p *process) stop() {
	p.signal(child.SIGSTOP)
	check(child.AwaitStop(p.child.Pid()))
}

// thaw ends a freeze, during which the world was stopped because the dump was not read.
func (p *process) thaw() {
	go func() { _, _ = io.Copy(io.Discard, p.dump) }()
}

// end closes the worker's input and returns its report about leaks.
func (p *process) end() error {
	defer p.dump.Close()
	return p.child.Stop(pace.Hang)
}
