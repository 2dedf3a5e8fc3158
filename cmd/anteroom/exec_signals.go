//go:build unix

package main

import (
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// endingSignals end a process that does not catch them. While we wait for the lock they
// end the waiting; after that they are the command's.
var endingSignals = append([]os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM,
	syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGABRT,
}, systemSignals()...)

// passingSignals are caught only when there is a command to pass them on to. Not passed on
// are KILL and STOP, which nobody can catch; those that tell of a fault in this process
// itself; CHLD, PIPE, URG and the timers', which concern it alone; TTIN and TTOU.
var passingSignals = []os.Signal{syscall.SIGTSTP, syscall.SIGCONT, syscall.SIGWINCH}

// endBy is the end by a signal that has ended the command, or the waiting for the lock. Of
// those that keys send we die ourselves, because a shell ends its script for a command that
// did, and not for an exit status. With group our process group gets it as well.
func endBy(n syscall.Signal, group bool) *exitError {
	e := &exitError{status: exitSignalBase + int(n)}
	if n == syscall.SIGINT || n == syscall.SIGQUIT {
		e.die = func() { die(n, group) }
	}
	return e
}

// die becomes a shell that sends the signal. This program cannot die of QUIT: the runtime
// has its own way. Where there is no shell, there is no script to end.
func die(n syscall.Signal, group bool) {
	whom := "$$"
	if group {
		whom = "0"
	}
	name := strings.TrimPrefix(unix.SignalName(n), "SIG")
	script := fmt.Sprintf("ulimit -c 0; kill -s %s %s; exit %d", name, whom, exitSignalBase+int(n))
	_ = syscall.Exec("/bin/sh", []string{"sh", "-c", script}, nil)
}

// notIgnored drops the signals that whoever started us has told us to ignore, as nohup
// does: the command inherits that.
func notIgnored(all []os.Signal) []os.Signal {
	var some []os.Signal
	for _, s := range all {
		if !signal.Ignored(s) {
			some = append(some, s)
		}
	}
	return some
}
