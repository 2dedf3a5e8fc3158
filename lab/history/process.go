package history

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/internal/pace"
)

// startTime bounds how long a worker may take until it works. It is generous because the
// race detector and small machines are slow.
const startTime = pace.Hang

// Process is a worker process, seen from its parent. Its methods are safe for concurrent use.
type Process struct {
	Plan  Plan
	child *child.Process
	over  chan struct{} // closed when every answer was delivered

	mu      sync.Mutex
	last    uint64                  // guarded by mu
	waiting map[uint64]chan message // guarded by mu
	killed  bool                    // guarded by mu
}

// Start runs this program again as a worker, and returns when that works. The program must call RunWorker first of
// all.
func Start(plan Plan) (*Process, error) {
	c, err := child.StartIn(context.Background(), plan.Namespace, workerRole, plan, child.Forever)
	if err != nil {
		return nil, err
	}
	if err := c.Receive(new(message), startTime); err != nil {
		c.Kill()
		return nil, fmt.Errorf("worker %d did not begin: %w", plan.Proc, err)
	}
	p := &Process{Plan: plan, child: c, over: make(chan struct{}), waiting: map[uint64]chan message{}}
	go p.receive()
	return p, nil
}

// receive delivers answers, until the process ends.
func (p *Process) receive() {
	defer close(p.over)
	for {
		var m message
		if p.child.Receive(&m, child.Forever) != nil {
			return
		}
		p.mu.Lock()
		if ch := p.waiting[m.ID]; ch != nil {
			ch <- m
			delete(p.waiting, m.ID)
		}
		p.mu.Unlock()
	}
}

var errEnded = errors.New("the worker has ended")

// ask sends an order and waits for its answer.
func (p *Process) ask(order message, bound time.Duration) (message, error) {
	ch := make(chan message, 1)
	p.mu.Lock()
	p.last++
	order.ID = p.last
	p.waiting[order.ID] = ch
	p.mu.Unlock()
	if err := p.child.Send(order); err != nil {
		return message{}, err
	}
	timer := time.NewTimer(bound)
	defer timer.Stop()
	select {
	case m := <-ch:
		return m, nil
	case <-p.over:
		select {
		case m := <-ch: // its final report
			return m, nil
		default:
			return message{}, errEnded
		}
	case <-timer.C:
		return message{}, fmt.Errorf("worker %d did not answer within %v", p.Plan.Proc, bound)
	}
}

// Suffer makes the worker inject a fault into itself, and returns when it is over.
func (p *Process) Suffer(kind FaultKind, d time.Duration) error {
	m, err := p.ask(message{Fault: kind, For: d}, d+startTime)
	if err == nil && m.Error != "" {
		err = errors.New(m.Error)
	}
	return err
}

// Signal sends a signal, for example SIGSTOP.
func (p *Process) Signal(sig syscall.Signal) error { return p.child.Signal(sig) }

// Kill kills the process at once, and returns when it has ended.
func (p *Process) Kill() {
	p.expectEnd()
	p.child.Kill()
}

// expectEnd records that the end of the process is intended.
func (p *Process) expectEnd() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.killed = true
}

// Ended reports whether the process has ended although it was neither killed nor stopped.
func (p *Process) Ended() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.child.Dead():
		return !p.killed
	default:
		return false
	}
}

// Stop ends the work. Callers that do not return within bound are stuck. The process has ended when Stop returns; one
// that does not answer is killed.
func (p *Process) Stop(bound time.Duration) (Report, error) {
	m, err := p.ask(message{Stop: true, For: bound}, 3*bound+startTime)
	p.expectEnd()
	if err != nil {
		p.child.Kill()
		return Report{}, err
	}
	return *m.Report, p.child.Stop(startTime)
}

// LogPath returns where the worker with that number records, below dir.
func LogPath(dir string, proc uint32) string {
	return filepath.Join(dir, fmt.Sprintf("worker-%d", proc))
}
