//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
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
