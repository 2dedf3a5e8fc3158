//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
)

// Every signal that can be passed on is, and the exit status says which one ended the command.
func TestExec_SignalsReachTheCommand(t *testing.T) {
	s, rdb := withRedis(t)
	c := startTool(t, s.URL(), "exec", "k", "--", os.Args[0], signalsCommand)
	c.ready()
	for _, n := range append(slices.Clone(endingSignals), passingSignals[1:]...) {
		n := n.(syscall.Signal)
		if n > 35 && n < 63 {
			continue // these are equal
		}
		c.send(n)
		if got := c.line(); got != fmt.Sprint(int(n)) {
			t.Errorf("%v (%d) came as %s", n, n, got)
		}
	}
	_ = c.in.Close()
	c.expect(0)

	th := newThread(t)
	c = startTool(t, s.URL(), "exec", "k", "--", "sh", "-c", th.script()+"sleep 100 & echo ready; wait")
	c.ready()
	c.send(syscall.SIGTERM)
	c.expect(128 + 15)
	th.gone()
	if locked(t, rdb, "k") {
		t.Error("the lock is still there")
	}
}

// Without a terminal a stop is passed on like any other signal, and the lock stays held.
func TestExec_StopWithoutATerminal(t *testing.T) {
	s, rdb := withRedis(t)
	cmd := exec.Command(os.Args[0], "exec", "k", "--", "sh", "-c", "echo $$; read x; exit 5")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // without a terminal
	c := startCommand(t, cmd, s.URL())
	pid := c.line()
	c.send(syscall.SIGTSTP)
	awaitState(t, pid, "T")
	if !locked(t, rdb, "k") {
		t.Error("the lock is gone")
	}
	c.send(syscall.SIGCONT)
	awaitState(t, pid, "S")
	fmt.Fprintln(c.in)
	c.expect(5)
}

// A signal ends the wait for a lock, and is not a conflict.
func TestExec_SignalWhileWaiting(t *testing.T) {
	s, rdb := withRedis(t)
	take(t, rdb, "k")
	for _, n := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1} {
		c := startTool(t, s.URL(), "exec", "--verbose", "k", "--", "echo", "ran")
		c.until("waiting")
		c.send(n)
		if n == syscall.SIGINT { // see endBy
			c.expect(-int(n))
		} else {
			c.expect(128 + int(n))
		}
		if l, ok := <-c.lines; ok {
			t.Errorf("%v: the command ran: %q", n, l)
		}
	}
	if f, err := rdb.HKeys(t.Context(), "k").Result(); err != nil || len(f) != 1 {
		t.Errorf("%v, %v", f, err)
	}
}

// A signal ignored from the start, as under nohup, stays ignored, by anteroom and by the command.
func TestExec_X4_IgnoredSignals(t *testing.T) {
	s, _ := withRedis(t)
	cmd := exec.Command("sh", "-c", `trap "" HUP; exec "$0" "$@"`, os.Args[0],
		"exec", "k", "--", "sh", "-c", "echo ready; read x; kill -HUP $$; exit 5")
	c := startCommand(t, cmd, s.URL())
	c.ready()
	c.send(syscall.SIGHUP)
	fmt.Fprintln(c.in)
	c.expect(5)
}
