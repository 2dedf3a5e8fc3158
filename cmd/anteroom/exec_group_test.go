//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// The lock is held until the last process of the command's group has ended.
func TestExec_X3_TheRestOfTheGroupIsWaitedFor(t *testing.T) {
	s, rdb := withRedis(t)
	c := startTool(t, s.URL(), "exec", "k", "--", "sh", "-c", `exec 3<&0; cat <&3 >/dev/null & echo $$; exit 3`)
	awaitState(t, c.line(), "")
	c.until("held until all of its process group")
	if !locked(t, rdb, "k") {
		t.Error("the lock was released before")
	}
	_ = c.in.Close()
	c.expect(3)
	if locked(t, rdb, "k") {
		t.Error("the lock is still there")
	}
}

// A process that leaves the group is not waited for.
func TestExec_X3_ADaemonIsNotWaitedFor(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("needs setsid")
	}
	s, rdb := withRedis(t)
	th := newThread(t)
	c := startTool(t, s.URL(), "exec", "k", "--", "sh", "-c",
		`setsid sh -c "`+th.script()+`echo \$\$ >&9; exec sleep 1000" </dev/null >/dev/null 2>&1 & exit 4`)
	c.expect(4)
	if locked(t, rdb, "k") {
		t.Error("the lock is still there")
	}
	pid, err := strconv.Atoi(<-th.lines)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("the daemon: %v", err)
	}
	th.gone()
}

// awaitState waits until a process has a state in the notation of /proc, "" for gone.
func awaitState(t *testing.T, pid, state string) {
	t.Helper()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("needs /proc")
	}
	for end := time.Now().Add(execPatience); ; time.Sleep(5 * time.Millisecond) {
		now := ""
		if stat, err := os.ReadFile("/proc/" + pid + "/stat"); err == nil {
			_, rest, _ := bytes.Cut(stat, []byte(") "))
			now = string(rest[:1])
		}
		if now == state {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("process %s has state %q, want %q", pid, now, state)
		}
	}
}
