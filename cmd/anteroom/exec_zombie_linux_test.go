package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// A zombie does no work. It remains because its parent, a daemon that has left the group, does not reap it.
func TestExec_X3_AZombieIsNotWaitedFor(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("needs setsid")
	}
	s, rdb := withRedis(t)
	th := newThread(t)
	end := th.path + ".end"
	must(t, syscall.Mkfifo(end, 0o600))
	c := startTool(t, s.URL(), "exec", "k", "--", "sh", "-c", th.script()+
		`(sh -c 'read x <"$0"' "$0" 9>&- & exec setsid sh -c 'echo $$ >&9; exec sleep 1000') </dev/null >/dev/null 2>&1 & exit 4`, end)
	pid, err := strconv.Atoi(th.line())
	must(t, err)
	t.Cleanup(func() {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Errorf("the daemon: %v", err)
		}
		th.gone()
	})
	c.until("held until all of its process group")
	must(t, os.WriteFile(end, []byte("\n"), 0o600))
	c.expect(4)
	if locked(t, rdb, "k") {
		t.Error("the lock is still there")
	}
}

// A process whose first thread has ended looks like a zombie but works.
func TestExec_X3_AZombieWithThreadsRuns(t *testing.T) {
	s, rdb := withRedis(t)
	th := newThread(t)
	c := startTool(t, s.URL(), "exec", "k", "--", "sh", "-c",
		th.script()+`exec 3<&0; "$0" `+headlessCommand+` <&3 >&9 & exit 4`, os.Args[0])
	if l := th.line(); l != "headless" {
		t.Fatal(l)
	}
	c.until("held until all of its process group")
	if !locked(t, rdb, "k") {
		t.Error("the lock was released before")
	}
	_ = c.in.Close()
	c.expect(4)
	th.gone()
}

// headlessCommand makes this test program a process without its first thread.
const headlessCommand = "test-headless"

func init() {
	helpers[headlessCommand] = headless
	if len(os.Args) > 1 && os.Args[1] == headlessCommand {
		runtime.LockOSThread() // during initialisation, so main has the first thread
	}
}

// headless ends the first thread. Another one reports that, and ends the process with standard input.
func headless() {
	go func() {
		for {
			stat, _ := os.ReadFile("/proc/self/stat")
			if bytes.Contains(stat, []byte(") Z ")) {
				break
			}
			time.Sleep(time.Millisecond)
		}
		fmt.Println("headless")
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	_, _, _ = syscall.Syscall(syscall.SYS_EXIT, 0, 0, 0)
}
