//go:build unix

package main

import (
	"encoding/gob"
	"errors"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// supervisorCommands returns the hidden command. Its arguments are the numbers of two descriptors.
func supervisorCommands() []*cobra.Command {
	return []*cobra.Command{{
		Use:    supervisorCommand,
		Short:  "Internal: started by exec as the parent of its command",
		Hidden: true,
		Args:   cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			var pipes [2]*os.File
			for i, text := range args {
				fd, err := strconv.Atoi(text)
				if err != nil || fd < 3 {
					return errors.New(supervisorCommand + " is internal: only exec starts it")
				}
				unix.CloseOnExec(fd) // so that the command does not inherit it
				pipes[i] = os.NewFile(uintptr(fd), "pipe")
			}
			errs := newVoice(cmd.ErrOrStderr())
			defer errs.close()
			return supervise(pipes[0], pipes[1], errs)
		},
	}}
}

// supervisor is the parent of the command. It outlives the keeper of the lock: if the keeper is gone, or has not
// confirmed for too long that the lock is held, it ends the command. One goroutine does everything, on one thread:
// the kernel kills the command when the thread that started it ends (Go issue 27505), so not even the supervisor's
// own death leaves the command running.
type supervisor struct {
	launch
	enc    *gob.Encoder
	errs   *voice
	group  int         // the command's group, and its process id
	valid  *time.Timer // fires when the lock is no longer known to be held
	until  time.Time   // when that is
	kill   <-chan time.Time
	ending bool
	ended  bool // the command has ended; others of its group may remain
	status int
	by     syscall.Signal // the signal that ended it, 0 for none
}

// supervise runs one command, from the first order until nothing of its group remains.
func supervise(in io.Reader, out io.Writer, errs *voice) error {
	runtime.LockOSThread() // for good: see supervisor
	showName()
	adopt()
	// Caught and dropped: the keeper decides which signals the command gets, and a signal to all processes of this
	// name must not end its parent first. The command would inherit it if they were ignored.
	signal.Notify(make(chan os.Signal, 1), append(notIgnored(append(endingSignals, passingSignals...)), syscall.SIGPIPE)...)
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	dec := gob.NewDecoder(in)
	var first superOrder
	if err := dec.Decode(&first); err != nil || first.Kind != orderStart || first.Start == nil {
		return nil // the keeper ended before it sent an order
	}
	s := &supervisor{launch: *first.Start, enc: gob.NewEncoder(out), errs: errs}
	if first.Valid <= 0 { // the keeper was stopped for long after the grant
		errs.say("the lock's lease has expired; the command is not started")
		s.report(superReport{Kind: reportEnded, Lost: true})
		return nil
	}
	s.valid = time.NewTimer(0)
	s.extend(first.Valid)
	if err := s.start(); err != nil {
		errno, _ := errors.AsType[syscall.Errno](err)
		s.report(superReport{Kind: reportFailed, Errno: int(errno)})
		return nil
	}
	orders := make(chan superOrder)
	go receive(dec, orders)
	s.attend(orders, children)
	s.report(superReport{Kind: reportEnded, Status: s.status, Signal: int(s.by), Lost: s.ending})
	return nil
}

// receive forwards orders until the keeper is gone.
func receive(dec *gob.Decoder, orders chan<- superOrder) {
	defer close(orders)
	for {
		var o superOrder
		if dec.Decode(&o) != nil {
			return
		}
		orders <- o
	}
}

// start starts the command with the standard descriptors and all others that were inherited.
func (s *supervisor) start() (err error) {
	s.group, err = syscall.ForkExec(s.Path, s.Argv, &syscall.ProcAttr{
		Env: s.Env, Files: []uintptr{0, 1, 2}, Sys: commandAttr(),
	})
	if err != nil {
		return err
	}
	// Only now, because ignored signals are inherited.
	signal.Ignore(syscall.SIGTTOU)
	if s.Foreground {
		t := openTerminal()
		t.give(s.group)
		t.close()
	}
	s.report(superReport{Kind: reportStarted, Group: s.group})
	return nil
}

// report reports to the keeper. Errors are ignored: a keeper that is gone needs no report.
func (s *supervisor) report(r superReport) { _ = s.enc.Encode(r) }

// leftAfter is for how long members of a group may outlive its command before that is reported. Until then the group
// is checked every leftEvery, and after that every leftAfter: there is no notification of the end of a process that
// is not our child.
const (
	leftAfter = time.Second
	leftEvery = 50 * time.Millisecond
)

// attend is the supervisor's loop. It returns when nothing of the group remains.
func (s *supervisor) attend(orders <-chan superOrder, children <-chan os.Signal) {
	var ticker *time.Ticker
	var ticks <-chan time.Time
	var since time.Time
	said := false
	for {
		select {
		case o, ok := <-orders:
			if !ok {
				orders = nil
				s.forsaken()
				break
			}
			s.obey(o)
		case <-s.valid.C:
			if !s.ending {
				s.errs.say("the lock's lease has expired and its keeper is silent (stopped?); ending the command (%s)", graceText(s.Grace))
				s.end(s.Grace)
			}
		case <-s.kill:
			s.signal(syscall.SIGKILL)
		case <-children:
		case <-ticks:
		}
		s.reap()
		if !s.ended {
			continue
		}
		if groupGone(s.group) {
			return
		}
		if ticker == nil {
			ticker = time.NewTicker(leftEvery)
			defer ticker.Stop()
			ticks, since = ticker.C, time.Now()
		}
		if !said && time.Since(since) > leftAfter {
			said = true
			ticker.Reset(leftAfter)
			s.report(superReport{Kind: reportLeft})
		}
	}
}

// obey carries out one order.
func (s *supervisor) obey(o superOrder) {
	switch o.Kind {
	case orderValid:
		s.extend(o.Valid)
	case orderLost:
		s.end(s.Grace)
	case orderSignal:
		s.signal(syscall.Signal(o.Signal))
	}
}

// extend sets for how long the lock is held. The slack lets a running keeper be the one that acts and says why; it is
// part of the margin before the lease expires in Redis.
func (s *supervisor) extend(d time.Duration) {
	s.until = time.Now().Add(d)
	s.valid.Reset(d + s.Slack)
}

// forsaken ends the command because the keeper was killed. Redis keeps the lock until the end of the lease: the
// command may take no longer than that to end.
func (s *supervisor) forsaken() {
	if s.ending {
		return
	}
	s.errs.say("the lock's keeper was killed; ending the command")
	s.end(min(s.Grace, time.Until(s.until)))
}

// end asks the whole group to end, and kills it after the grace. A stopped process gets the request when it is
// continued.
func (s *supervisor) end(grace time.Duration) {
	if s.ending {
		return
	}
	s.ending = true
	if grace <= 0 {
		s.signal(syscall.SIGKILL)
		return
	}
	s.signal(syscall.SIGTERM)
	s.signal(syscall.SIGCONT)
	s.kill = time.After(grace)
}

// signal sends n to the group. It may lack the permission if the group runs as another user.
func (s *supervisor) signal(n syscall.Signal) {
	if err := syscall.Kill(-s.group, n); err != nil && err != syscall.ESRCH && s.ending {
		s.errs.say("cannot send signal %v to the command: %v", n, err)
	}
}

// reap handles state changes of the command, and reaps orphans that became our children.
func (s *supervisor) reap() {
	for {
		var w syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &w, syscall.WNOHANG|syscall.WUNTRACED, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		switch {
		case pid != s.group:
		case w.Stopped():
			s.report(superReport{Kind: reportStopped, Signal: int(w.StopSignal())})
		case w.Signaled():
			s.ended, s.status, s.by = true, exitSignalBase+int(w.Signal()), w.Signal()
		case w.Exited():
			s.ended, s.status = true, w.ExitStatus()
		}
	}
}
