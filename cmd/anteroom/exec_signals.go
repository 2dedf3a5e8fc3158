//go:build unix

package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// endingSignals end a process that does not catch them. During the wait for the lock they end it; after that they are
// passed on to the command.
var endingSignals = append([]os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM,
	syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGABRT,
}, systemSignals()...)

// passingSignals are caught only once there is a command to pass them on to. Not passed on are KILL and STOP, which
// cannot be caught; those caused by a fault in this process; CHLD, PIPE, URG and the timers' signals, which concern
// it alone; TTIN and TTOU.
var passingSignals = []os.Signal{syscall.SIGTSTP, syscall.SIGCONT, syscall.SIGWINCH}

// endBy is the result of a signal that ended the command or the wait for the lock. If keys send that signal, this
// process dies of it too, because a shell ends its script for a command that died of it, and not for an exit status.
// With group, our process group gets it as well.
func endBy(n syscall.Signal, group bool) *exitError {
	e := &exitError{status: exitSignalBase + int(n)}
	if n == syscall.SIGINT || n == syscall.SIGQUIT {
		e.die = func() { die(n, group) }
	}
	return e
}

// die becomes a shell that sends the signal: this program cannot die of QUIT, which the runtime handles. Without a
// shell there is no script to end.
func die(n syscall.Signal, group bool) {
	whom := "$$"
	if group {
		whom = "0"
	}
	name := strings.TrimPrefix(unix.SignalName(n), "SIG")
	script := fmt.Sprintf("ulimit -c 0; kill -s %s %s; exit %d", name, whom, exitSignalBase+int(n))
	_ = syscall.Exec("/bin/sh", []string{"sh", "-c", script}, nil)
}
