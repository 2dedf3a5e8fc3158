//go:build unix

package main

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// The command has a process group of its own, because all of it must be ended after a loss, and nothing else: neither
// this process nor the other side of a pipe, which the shell has put into our group. At a terminal that makes it a
// background job, so:
//
//   - If standard input and output are the terminal, the command's group becomes its foreground group at the start.
//     Keys such as Ctrl-C then reach the command directly.
//   - Otherwise, in a pipeline, the terminal stays with our group, which passes the keys' signals on. A command that
//     reads from the terminal or changes it is stopped by the system (TTIN, TTOU); it then gets the terminal and
//     continues.
//   - If Ctrl-C or Ctrl-\ ends a command that has the terminal, our group gets the signal too, at the very end, and
//     this process dies of it: a script has to end as if it had got the key itself.
//   - If Ctrl-Z stops the command, our group stops too, and the shell has the terminal. After that, CONT (fg, bg)
//     continues the command if the lock is still held. The supervisor is not stopped: it ends the command with the
//     lease.

// controlling is the controlling terminal. The methods of a nil one do nothing.
type controlling struct{ file *os.File }

// openTerminal returns the controlling terminal, or nil.
func openTerminal() *controlling {
	f, err := os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil
	}
	return &controlling{f}
}

func (t *controlling) close() {
	if t != nil {
		_ = t.file.Close()
	}
}

// foreground returns the process group that has the terminal, 0 if unknown.
func (t *controlling) foreground() int {
	if t == nil {
		return 0
	}
	group, _ := foregroundOf(int(t.file.Fd()))
	return group
}

// foregroundOf returns the foreground group of the terminal behind fd. It fails unless that is our controlling
// terminal.
func foregroundOf(fd int) (int, error) { return unix.IoctlGetInt(fd, unix.TIOCGPGRP) }

// ours reports whether our group has the terminal.
func (t *controlling) ours() bool { return t != nil && t.foreground() == unix.Getpgrp() }

// interactive reports whether the command should have the terminal from the start.
func (t *controlling) interactive() bool {
	if !t.ours() {
		return false
	}
	_, in := foregroundOf(0)
	_, out := foregroundOf(1)
	return in == nil && out == nil
}

// give makes group the terminal's foreground group. The caller ignores TTOU.
func (t *controlling) give(group int) {
	if t != nil && group != 0 {
		_ = unix.IoctlSetPointerInt(int(t.file.Fd()), unix.TIOCSPGRP, group)
	}
}

// hasTerminal reports whether the command has the terminal, or had it when it ended.
func (k *keeper) hasTerminal() bool { return k.group != 0 && k.tty.foreground() == k.group }

// takeBack gets the terminal back from the command, and from no other process.
func (k *keeper) takeBack() {
	if k.hasTerminal() {
		k.tty.give(unix.Getpgrp())
	}
}

// stopped handles a signal that has stopped the command. Without a terminal, its sender is in charge: the lock
// stays held.
func (k *keeper) stopped(s syscall.Signal) {
	had := k.hasTerminal()
	switch {
	case k.tty == nil, s == syscall.SIGSTOP && !had:
	case (s == syscall.SIGTTIN || s == syscall.SIGTTOU) && (had || k.tty.ours()):
		k.tty.give(k.group)
		k.super.order(superOrder{Kind: orderSignal, Signal: int(syscall.SIGCONT)})
	case !jobControl():
		k.resume()
	default:
		k.takeBack()
		// The whole of our group, as if the key had been for us: the script that started us has to stop, or the shell
		// does not see that the job has stopped. STOP, because the runtime keeps its handler for TSTP once that was
		// caught. CONT ends it.
		_ = syscall.Kill(0, syscall.SIGSTOP)
	}
}

// jobControl reports whether there may be a shell that continues our group after a stop. There is none if the session
// leader is in our group, as in a container.
func jobControl() bool {
	session, err := unix.Getsid(0)
	return err == nil && session != unix.Getpgrp()
}

// resume continues the command after a stop, if the lock is still held. If not, the loss will end the command.
func (k *keeper) resume() {
	if k.hold.Err() != nil {
		return
	}
	k.assure()
	if k.tty.interactive() {
		k.tty.give(k.group)
	}
	k.super.order(superOrder{Kind: orderSignal, Signal: int(syscall.SIGCONT)})
}
