package faults_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// workerEnv makes the test binary a party that obeys orders on standard input.
const workerEnv = "ANTEROOM_FAULT_PARTY"

// dumpFD is where a worker writes its heap dump: a pipe that the cell reads, or does not.
const dumpFD = 3

// worker is the program of a party with a process of its own.
func worker(config string) error {
	var s setup
	if err := json.Unmarshal([]byte(config), &s); err != nil {
		return err
	}
	var mu sync.Mutex
	out := json.NewEncoder(os.Stdout)
	tell := func(n note) {
		mu.Lock()
		defer mu.Unlock()
		_ = out.Encode(n)
	}
	p, err := newParty(s, tell)
	if err != nil {
		return err
	}
	tell(note{})
	var orders sync.WaitGroup
	in := json.NewDecoder(bufio.NewReader(os.Stdin))
	for {
		var o order
		if err := in.Decode(&o); err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		orders.Go(func() { p.obey(o) })
	}
	orders.Wait()
	// The cell has closed the party before standard input.
	return goleak.Find()
}

// process is a running worker.
type process struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	dump *os.File // the reading end of its heap dump
	done chan error
}

// startProcess starts a worker and gives its notes to a.
func startProcess(a *agent, s setup) *process {
	config, err := json.Marshal(s)
	check(err)
	self, err := os.Executable()
	check(err)
	dump, write, err := os.Pipe()
	check(err)
	p := &process{cmd: exec.Command(self), dump: dump, done: make(chan error, 1)}
	p.cmd.Env = append(os.Environ(), workerEnv+"="+string(config))
	p.cmd.Stderr = os.Stderr
	p.cmd.ExtraFiles = []*os.File{write}
	p.in, err = p.cmd.StdinPipe()
	check(err)
	stdout, err := p.cmd.StdoutPipe()
	check(err)
	check(p.cmd.Start())
	check(write.Close())

	var mu sync.Mutex
	orders := map[int]order{}
	ready := make(chan struct{})
	go func() {
		first := true
		for in := json.NewDecoder(bufio.NewReader(stdout)); ; first = false {
			var n note
			if in.Decode(&n) != nil {
				p.done <- p.cmd.Wait()
				return
			}
			if first {
				close(ready)
				continue
			}
			mu.Lock()
			o := orders[n.ID]
			mu.Unlock()
			a.deliver(o, n)
		}
	}()
	select {
	case <-ready:
	case err := <-p.done:
		fail("the worker ended at once: %v", err)
	}
	out := json.NewEncoder(p.in)
	a.send = func(o order) {
		mu.Lock()
		defer mu.Unlock()
		orders[o.ID] = o
		_ = out.Encode(o)
	}
	return p
}

func (p *process) signal(s syscall.Signal) { check(p.cmd.Process.Signal(s)) }

// stop stops the process, and waits until it has: a thread that the server's answer wakes
// may be faster than the signal.
func (p *process) stop() {
	p.signal(syscall.SIGSTOP)
	var status unix.WaitStatus
	for {
		_, err := unix.Wait4(p.cmd.Process.Pid, &status, unix.WUNTRACED, nil)
		if err != unix.EINTR {
			check(err)
			return
		}
	}
}

// thaw ends a freeze: the world stood still because nobody read.
func (p *process) thaw() {
	go func() { _, _ = io.Copy(io.Discard, p.dump) }()
}

// end closes the worker's input and returns what it says about leaks.
func (p *process) end() error {
	_ = p.in.Close()
	timer := time.NewTimer(busy + patience)
	defer timer.Stop()
	defer p.dump.Close()
	select {
	case err := <-p.done:
		return err
	case <-timer.C:
		_ = p.cmd.Process.Kill()
		<-p.done
		return fmt.Errorf("the worker did not end")
	}
}
