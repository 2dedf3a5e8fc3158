package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// startTime bounds how long a worker may take until it works. It is generous because the
// race detector and small machines are slow.
const startTime = 30 * time.Second

// Process is a worker process, seen from who has started it. Its methods are safe for
// concurrent use.
type Process struct {
	Plan Plan
	cmd  *exec.Cmd
	in   io.WriteCloser
	dead chan struct{} // closed when the process has been waited for

	mu      sync.Mutex
	last    uint64                  // guarded by mu
	waiting map[uint64]chan message // guarded by mu
	killed  bool                    // guarded by mu
	enc     *json.Encoder           // guarded by mu
}

// Start runs this program again as a worker, and returns when that works. The program
// has to call RunWorker first of all.
func Start(plan Plan) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), workerEnv+"=1")
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = sysProcAttr()
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &Process{Plan: plan, cmd: cmd, in: in, dead: make(chan struct{}), waiting: map[uint64]chan message{}, enc: json.NewEncoder(in)}
	ready := make(chan message, 1)
	p.waiting[0] = ready
	go p.receive(out)
	if err := p.enc.Encode(plan); err != nil {
		p.Kill()
		return nil, err
	}
	select {
	case <-ready:
		return p, nil
	case <-p.dead:
		return nil, fmt.Errorf("worker %d ended before it began", plan.Proc)
	case <-time.After(startTime):
		p.Kill()
		return nil, fmt.Errorf("worker %d did not begin within %v", plan.Proc, startTime)
	}
}

// receive hands answers to who waits for them, until the process ends.
func (p *Process) receive(out io.Reader) {
	defer close(p.dead)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var m message
		if json.Unmarshal(lines.Bytes(), &m) != nil {
			continue
		}
		p.mu.Lock()
		if ch := p.waiting[m.ID]; ch != nil {
			ch <- m
			delete(p.waiting, m.ID)
		}
		p.mu.Unlock()
	}
	_ = p.cmd.Wait()
}

var errEnded = errors.New("the worker has ended")

// ask sends an order and waits for its answer.
func (p *Process) ask(order message, bound time.Duration) (message, error) {
	ch := make(chan message, 1)
	p.mu.Lock()
	p.last++
	order.ID = p.last
	p.waiting[order.ID] = ch
	err := p.enc.Encode(order)
	p.mu.Unlock()
	if err != nil {
		return message{}, err
	}
	timer := time.NewTimer(bound)
	defer timer.Stop()
	select {
	case m := <-ch:
		return m, nil
	case <-p.dead:
		return message{}, errEnded
	case <-timer.C:
		return message{}, fmt.Errorf("worker %d did not answer within %v", p.Plan.Proc, bound)
	}
}

// Suffer lets the worker bring a fault about in itself, and returns when it is over.
func (p *Process) Suffer(kind FaultKind, d time.Duration) error {
	m, err := p.ask(message{Fault: kind, For: d}, d+startTime)
	if err == nil && m.Error != "" {
		err = errors.New(m.Error)
	}
	return err
}

// Signal sends a signal, for example SIGSTOP.
func (p *Process) Signal(sig syscall.Signal) error { return p.cmd.Process.Signal(sig) }

// Kill ends the process at once, and returns when it is gone.
func (p *Process) Kill() {
	p.mu.Lock()
	p.killed = true
	p.mu.Unlock()
	_ = p.cmd.Process.Kill()
	<-p.dead
}

// Ended tells whether the process is gone though nobody has killed or stopped it.
func (p *Process) Ended() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.dead:
		return !p.killed
	default:
		return false
	}
}

// Stop ends the work. Callers that are not through within bound are stuck. The process
// is gone when it returns; one that does not answer is killed.
func (p *Process) Stop(bound time.Duration) (Report, error) {
	m, err := p.ask(message{Stop: true, For: bound}, 3*bound+startTime)
	p.mu.Lock()
	p.killed = true
	p.mu.Unlock()
	_ = p.in.Close()
	if err != nil {
		p.Kill()
		return Report{}, err
	}
	<-p.dead
	return *m.Report, nil
}

// LogPath returns where the worker with that number records, below dir.
func LogPath(dir string, proc uint32) string {
	return filepath.Join(dir, fmt.Sprintf("worker-%d", proc))
}
