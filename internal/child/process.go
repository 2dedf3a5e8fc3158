package child

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
)

// Process is a child, seen from its parent. Receive is for one goroutine; everything else is safe for concurrent use.
type Process struct {
	role    string
	cmd     *exec.Cmd
	in      io.WriteCloser
	got     chan message  // closed when the child sends no more messages
	dead    chan struct{} // closed when the process has been waited for
	err     error         // of the role, written before got is closed
	stop    sync.Once
	stopped error // what Stop returns
}

// Forever is no bound.
const Forever = time.Duration(math.MaxInt64)

// Start runs this program again with that role. The child ends by itself after bound, and is ended when ctx is. files
// become its descriptors from 3 on.
func Start(ctx context.Context, role string, plan any, bound time.Duration, files ...*os.File) (*Process, error) {
	return StartIn(ctx, "", role, plan, bound, files...)
}

// StartIn is Start in a network namespace, with a name as `ip netns` has it; "" is our own.
func StartIn(ctx context.Context, namespace, role string, plan any, bound time.Duration, files ...*os.File) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := Command(ctx, namespace, self)
	// A child that starts children of its own is a parent with another role.
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, roleEnv+"=") || strings.HasPrefix(v, boundEnv+"=")
	}), roleEnv+"="+role, boundEnv+"="+bound.String())
	cmd.Stderr = os.Stderr
	cmd.ExtraFiles = files
	cmd.SysProcAttr = EndsWithParent()
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
	p := &Process{role: role, cmd: cmd, in: in, got: make(chan message, 16), dead: make(chan struct{})}
	go p.receive(out)
	if err := p.Send(plan); err != nil {
		return nil, errors.Join(err, p.Stop(0))
	}
	return p, nil
}

// Command is exec.CommandContext in a network namespace. `ip` becomes the program, so it has the process id, the
// descriptors and the signals.
func Command(ctx context.Context, namespace, path string, args ...string) *exec.Cmd {
	if namespace == "" {
		return exec.CommandContext(ctx, path, args...)
	}
	return exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", namespace, path}, args...)...)
}

func (p *Process) receive(out io.Reader) {
	defer close(p.dead)
	// Skip what is printed before the program's own main, for example by a library.
	for r := bufio.NewReader(out); ; {
		line, err := r.ReadBytes('\n')
		if err != nil {
			break
		}
		var m message
		if json.Unmarshal(line, &m) != nil {
			continue
		}
		if m.Ended {
			if m.Error != "" {
				p.err = errors.New(m.Error)
			}
			break
		}
		p.got <- m
	}
	close(p.got)
	_, _ = io.Copy(io.Discard, out)
	_ = p.cmd.Wait()
}

// Pid returns the process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Signal sends a signal, for example SIGSTOP.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Dead returns a channel that is closed when the process has ended.
func (p *Process) Dead() <-chan struct{} { return p.dead }

// Send sends a message to the child.
func (p *Process) Send(v any) error { return writeLine(p.in, v) }

// ErrNoAnswer: the child runs and has not answered in time.
var ErrNoAnswer = errors.New("no answer")

// Receive waits for the child's next message, for at most bound (ErrNoAnswer). It is an error if the child has ended.
func (p *Process) Receive(v any, bound time.Duration) error {
	timer := time.NewTimer(bound)
	defer timer.Stop()
	select {
	case m, ok := <-p.got:
		switch {
		case ok:
			return json.Unmarshal(m.Body, v)
		case p.err != nil:
			return fmt.Errorf("child %s: %w", p.role, p.err)
		}
		return fmt.Errorf("child %s has ended", p.role)
	case <-timer.C:
		return fmt.Errorf("child %s, %v: %w", p.role, bound, ErrNoAnswer)
	}
}

// Kill ends the child immediately, stopped or not, and returns when it has ended.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	_ = p.Stop(Forever)
}

// Stop asks the child to end, kills it after bound, and returns, when it has ended, the error of its role. It may be
// called twice.
func (p *Process) Stop(bound time.Duration) error {
	p.stop.Do(func() { p.stopped = p.end(bound) })
	return p.stopped
}

func (p *Process) end(bound time.Duration) error {
	_ = p.in.Close()
	timer := time.NewTimer(bound)
	defer timer.Stop()
	for got := p.got; ; {
		select {
		case _, ok := <-got:
			if !ok {
				got = nil // nobody waits for its messages any more
			}
		case <-p.dead:
			return p.err
		case <-timer.C:
			_ = p.cmd.Process.Kill()
			<-p.dead
			return errors.Join(p.err, fmt.Errorf("child %s was killed, because it did not end within %v", p.role, bound))
		}
	}
}
