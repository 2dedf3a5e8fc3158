//go:build unix

package main

import (
	"encoding/gob"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// supervisorProcess is the keeper's view of the supervisor.
type supervisorProcess struct {
	pid     int
	before  []int    // the children that this process had before, from the program that called exec
	orders  *os.File // nil once broken
	enc     *gob.Encoder
	in      *os.File
	reports chan superReport // closed when the supervisor has ended
}

// orderTime bounds the sending of each order after the first. The pipe holds thousands of them, so one that finds no
// room means that the supervisor has been stopped for long.
const orderTime = time.Second

// startSupervisor starts this program again as a supervisor that waits for its first order. It inherits our
// descriptors under their numbers, because they are for the command; its two pipes get free numbers.
func startSupervisor() (*supervisorProcess, error) {
	adopt()
	program, err := ownProgram()
	if err != nil {
		return nil, err
	}
	theirIn, orders, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirIn.Close()
	in, theirOut, err := os.Pipe()
	if err != nil {
		_ = orders.Close()
		return nil, err
	}
	defer theirOut.Close()
	argv := []string{os.Args[0], supervisorCommand}
	for _, f := range []*os.File{theirIn, theirOut} {
		fd := f.Fd()
		if _, err = unix.FcntlInt(fd, unix.F_SETFD, 0); err != nil {
			break
		}
		argv = append(argv, strconv.Itoa(int(fd)))
	}
	s := &supervisorProcess{orders: orders, enc: gob.NewEncoder(orders), in: in, reports: make(chan superReport), before: children("self")}
	if err == nil {
		// A group of its own, so that signals to ours or to the command's spare it.
		s.pid, err = syscall.ForkExec(program, argv, &syscall.ProcAttr{
			Env: without(os.Environ(), redisVariable), Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setpgid: true},
		})
	}
	if err != nil {
		_, _ = orders.Close(), in.Close()
		return nil, err
	}
	go s.listen()
	return s, nil
}

// listen forwards reports until the supervisor's end of the pipe is closed.
func (s *supervisorProcess) listen() {
	defer close(s.reports)
	dec := gob.NewDecoder(s.in)
	for {
		var r superReport
		if dec.Decode(&r) != nil {
			return
		}
		s.reports <- r
	}
}

// order sends an order. If that fails, the supervisor has ended, which its reports show, or is stopped. It then gets
// no further orders, so that it finds the stream ended when it continues.
func (s *supervisorProcess) order(o superOrder) {
	if s.orders == nil {
		return
	}
	limit := orderTime
	if o.Kind == orderStart {
		// The arguments may be longer than the pipe's buffer, and then the supervisor has to be up.
		limit = max(limit, o.Valid)
	}
	_ = s.orders.SetWriteDeadline(time.Now().Add(limit))
	if s.enc.Encode(o) != nil {
		_ = s.orders.Close()
		s.orders = nil
	}
}

// takeOver kills the group in place of a supervisor that does not, and continues the supervisor. Before the group is
// known it kills the supervisor; the command, if there is one, dies with it.
func (s *supervisorProcess) takeOver(group int) {
	if group == 0 {
		_ = syscall.Kill(s.pid, syscall.SIGKILL)
		return
	}
	_ = syscall.Kill(-group, syscall.SIGKILL)
	_ = syscall.Kill(s.pid, syscall.SIGCONT)
}

// wait returns when the supervisor has ended, which it does after its last report.
func (s *supervisorProcess) wait() {
	for range s.reports {
	}
	if s.orders != nil {
		_ = s.orders.Close()
	}
	_ = s.in.Close()
	s.reap()
}

// reap waits for the end of the process.
func (s *supervisorProcess) reap() {
	for {
		if _, err := syscall.Wait4(s.pid, nil, 0, nil); err != syscall.EINTR {
			return
		}
	}
}

// leftGroups returns the process groups, other than ours, of children that became ours by the supervisor's death.
func (s *supervisorProcess) leftGroups() []int {
	var groups []int
	for _, pid := range children("self") {
		group, err := unix.Getpgid(pid)
		if err == nil && group != unix.Getpgrp() && !slices.Contains(s.before, pid) && !slices.Contains(groups, group) {
			groups = append(groups, group)
		}
	}
	return groups
}

// groupGone reports whether no running process remains in a group. A process that may not be signalled remains.
func groupGone(group int) bool {
	return syscall.Kill(-group, 0) == syscall.ESRCH || onlyZombies(group)
}

// reapAny reaps one child that has ended, if there is one.
func reapAny() { _, _ = syscall.Wait4(-1, nil, syscall.WNOHANG, nil) }
