//go:build unix

package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/pace"
)

// running starts a tool whose command, and a child of it, hold a thread.
func running(t *testing.T, url string, flags ...string) (*execTool, *thread) {
	t.Helper()
	return runningScript(t, url, "sleep 1000 & echo ready; wait", flags...)
}

func runningScript(t *testing.T, url, script string, flags ...string) (*execTool, *thread) {
	t.Helper()
	th := newThread(t)
	args := slices.Concat([]string{"exec"}, flags, []string{"k", "--", "sh", "-c", th.script() + script})
	c := startTool(t, url, args...)
	c.ready()
	return c, th
}

// supervisorOf returns the process id of a tool's supervisor, its only child.
func supervisorOf(t *testing.T, c *execTool) int {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	files, _ := filepath.Glob("/proc/" + strconv.Itoa(c.Process.Pid) + "/task/*/children")
	var all []byte
	for _, f := range files {
		b, _ := os.ReadFile(f)
		all = append(all, b...)
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(all)))
	if err != nil {
		t.Fatalf("children: %q", all)
	}
	return pid
}

// A command for which nothing goes wrong ends by itself, and from its start on the lock lasts for a lease.
func TestExec_X1_UntroubledWithTheDefaultLease_Lab(t *testing.T) {
	t.Parallel() // it lasts for longer than what a new hold has
	s, rdb := withRedis(t)
	c, _ := runningScript(t, s.URL(), "echo ready; sleep 4")
	if ttl := rdb.PTTL(t.Context(), "k").Val(); ttl < 25*time.Second {
		t.Errorf("the lock lasts for %v more", ttl)
	}
	c.expect(0, "")
}

// If the key disappears, the whole group is ended, and the reason is reported.
func TestExec_X1_LossEndsTheGroup(t *testing.T) {
	s, rdb := withRedis(t)
	c, th := runningScript(t, s.URL(), `trap 'echo term >&9; exit 0' TERM; sleep 1000 & echo ready; wait`, "--lease", "15s")
	if err := rdb.Del(t.Context(), "k").Err(); err != nil {
		t.Fatal(err)
	}
	c.expect(76, `lock "k" lost, ending the command (TERM, KILL in 1s): `)
	if said := th.gone(); !slices.Equal(said, []string{"term"}) {
		t.Errorf("the command said %q", said)
	}
}

// A command that does not obey is killed after the grace, and immediately without one.
func TestExec_X1_Grace(t *testing.T) {
	s, rdb := withRedis(t)
	for _, grace := range []string{"50ms", "0"} {
		c, th := runningScript(t, s.URL(), `trap '' TERM; sleep 1000 & echo ready; wait`, "--lease", "2s", "--grace", grace)
		if err := rdb.Del(t.Context(), "k").Err(); err != nil {
			t.Fatal(err)
		}
		c.expect(76, "KILL")
		th.gone()
	}
}

// A Redis that is unreachable for longer than the lease causes a loss by the clock.
func TestExec_X1_OutageEndsTheGroup_Lab(t *testing.T) {
	t.Parallel() // it waits for its lease
	s, _ := withRedis(t)
	c, th := running(t, s.URL(), "--lease", "3s")
	s.Pause()
	defer s.Resume()
	th.gone()
	s.Resume()
	c.expect(76, `lock "k" lost`)
}

// If anteroom is cut off from Redis right after the start, a command that ignores TERM is killed, with the default
// grace, before the next one starts.
func TestExec_X1_CutOffEndsBeforeTheNextStarts_Lab(t *testing.T) {
	t.Parallel() // it waits for its lease
	s, _ := withRedis(t)
	url, network := relay(t, s)
	c := startTool(t, url, "exec", "--lease", pace.Scale(6*time.Second).String(), "k", "--", "sh", "-c", "trap '' TERM; echo $$; exec sleep 1000")
	pid := c.line()
	network.BlackHole()
	next := startTool(t, s.URL(), "exec", "k", "--", "sh", "-c", "kill -0 "+pid+" && echo beside || echo alone")
	if l := next.line(); l != "alone" {
		t.Errorf("the next command ran %s", l)
	}
	next.expect(0)
	network.Heal()
	c.expect(76, `lock "k" lost`)
}

// A command that had ended by itself when the loss was found ran without its lock.
func TestExec_X5_LossIsFoundAtTheEnd(t *testing.T) {
	s, rdb := withRedis(t)
	c := startTool(t, s.URL(), "exec", "--lease", "1h", "k", "--", "sh", "-c", "echo ready; read x; exit 0")
	c.ready()
	if err := rdb.Del(t.Context(), "k").Err(); err != nil {
		t.Fatal(err)
	}
	_ = c.in.Close()
	c.expect(76, "lost")
}

// If anteroom is killed, the whole group ends while Redis still has the lock.
func TestExec_X2_KillOfAnteroom(t *testing.T) {
	s, rdb := withRedis(t)
	c, th := running(t, s.URL(), "--lease", "1h")
	c.send(syscall.SIGKILL)
	th.gone()
	if !locked(t, rdb, "k") {
		t.Error("the lock was not there any more")
	}
	c.expect(-9, "keeper was killed")
}

// A command that ignores TERM is then killed at the end of the lease, however long the grace is.
func TestExec_X2_KillOfAnteroomEndsWithTheLease_Lab(t *testing.T) {
	t.Parallel() // it waits for its lease
	s, _ := withRedis(t)
	c, th := runningScript(t, s.URL(), `trap '' TERM; sleep 1000 & echo ready; wait`, "--lease", "3s", "--grace", "1h")
	c.send(syscall.SIGKILL)
	th.gone()
	c.expect(-9)
}

// A stopped anteroom cannot renew, so the supervisor ends the group with the lease.
func TestExec_X2_StopOfAnteroom_Lab(t *testing.T) {
	t.Parallel() // it waits for its lease
	s, _ := withRedis(t)
	c, th := running(t, s.URL(), "--lease", "3s")
	c.send(syscall.SIGSTOP)
	th.gone()
	c.until("its keeper is silent")
	c.send(syscall.SIGCONT)
	c.expect(76, `lock "k" lost, `)
}

// If the supervisor is killed, the kernel kills the command even where anteroom cannot; anteroom ends the others of the
// group, and the lock is released.
func TestExec_X2_KillOfTheSupervisor(t *testing.T) {
	s, rdb := withRedis(t)
	th := newThread(t)
	c := startTool(t, s.URL(), "exec", "k", "--", "sh", "-c",
		"sleep 1000 & "+th.script()+"echo ready; read x")
	c.ready()
	super := supervisorOf(t, c)
	c.send(syscall.SIGSTOP)
	if err := syscall.Kill(super, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	th.gone() // by the death signal: only the command has the thread here
	c.send(syscall.SIGCONT)
	c.expect(128+9, "supervisor was killed")
	if locked(t, rdb, "k") {
		t.Error("the lock is still there")
	}
}

func TestExec_X2_KillOfTheSupervisorEndsTheGroup(t *testing.T) {
	s, _ := withRedis(t)
	c, th := running(t, s.URL())
	if err := syscall.Kill(supervisorOf(t, c), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	th.gone()
	c.expect(128+9, "supervisor was killed")
}

// A stopped supervisor does not keep alive a command that has lost its lock.
func TestExec_X2_StopOfTheSupervisor(t *testing.T) {
	s, rdb := withRedis(t)
	c, th := running(t, s.URL(), "--lease", "2s", "--grace", "10ms")
	super := supervisorOf(t, c)
	if err := syscall.Kill(super, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(super, syscall.SIGCONT)
	if err := rdb.Del(t.Context(), "k").Err(); err != nil {
		t.Fatal(err)
	}
	c.expect(76)
	th.gone()
}

// The lock is released if another process kills the command.
func TestExec_X3_KillOfTheCommand(t *testing.T) {
	s, rdb := withRedis(t)
	c := startTool(t, s.URL(), "exec", "k", "--", "sh", "-c", "echo $$; read x")
	pid, err := strconv.Atoi(c.line())
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	c.expect(128 + 9)
	if locked(t, rdb, "k") {
		t.Error("the lock is still there")
	}
}

// A release that Redis does not confirm is reported, and the status stays the command's.
func TestExec_X3_ReleaseWithoutRedis(t *testing.T) {
	s, _ := withRedis(t)
	c := startTool(t, s.URL(), "exec", "--lease", "1h", "k", "--", "sh", "-c", "echo ready; read x; exit 5")
	c.ready()
	s.Kill()
	_ = c.in.Close()
	c.expect(5, "release not confirmed")
}

// A standard error without a reader ends nothing.
func TestExec_X1_ABrokenStandardError(t *testing.T) {
	s, rdb := withRedis(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	defer w.Close()
	cmd := exec.Command(os.Args[0], "exec", "--verbose", "k", "--", "sh", "-c", "read x; exit 6")
	cmd.Env = environWithout(asCommand+"=1", "GORACE=atexit_sleep_ms=0", redisVariable+"="+s.URL())
	cmd.Stdin, cmd.Stderr = strings.NewReader("x\n"), w
	_ = cmd.Run()
	if got := cmd.ProcessState.ExitCode(); got != 6 {
		t.Errorf("%v", cmd.ProcessState)
	}
	if locked(t, rdb, "k") {
		t.Error("the lock is still there")
	}
}

// fullPipe returns a pipe that takes nothing more.
func fullPipe(t *testing.T) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	_ = w.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	for err == nil {
		_, err = w.Write(make([]byte, 4096))
	}
	return w
}

// Nor does it keep a process that has nothing to do but say why it ends.
func TestExec_TheLastWordIsBoundedToo_Lab(t *testing.T) {
	t.Parallel() // it waits until a voice gives up
	ctx, cancel := context.WithTimeout(t.Context(), execPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "exec", "k", "--", "true")
	cmd.Env = environWithout(asCommand+"=1", "GORACE=atexit_sleep_ms=0", redisVariable+"=redis://127.0.0.1:1")
	cmd.Stderr = fullPipe(t)
	if _ = cmd.Run(); cmd.ProcessState.ExitCode() != exitUnavailable {
		t.Errorf("%v", cmd.ProcessState)
	}
}

// Standard error is a full pipe whose reader does not read. The loss, which the keeper reports, and the keeper's
// death, which the supervisor reports, still end the group.
func TestExec_X1_AFullStandardError(t *testing.T) {
	t.Parallel() // it waits until two voices give up
	s, rdb := withRedis(t)
	w := fullPipe(t)
	for _, lose := range []func(*exec.Cmd) error{
		func(*exec.Cmd) error { return rdb.Del(t.Context(), "k").Err() },
		func(c *exec.Cmd) error { return c.Process.Kill() },
	} {
		th := newThread(t)
		cmd := exec.Command(os.Args[0], "exec", "--lease", "2s", "k", "--", "sh", "-c", th.script()+"echo ready >&9; sleep 1000 & wait")
		cmd.Env = environWithout(asCommand+"=1", "GORACE=atexit_sleep_ms=0", redisVariable+"="+s.URL())
		cmd.Stderr = w
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		<-th.lines
		err := lose(cmd)
		th.gone()
		_ = cmd.Wait()
		if got := cmd.ProcessState.ExitCode(); err != nil || got != 76 && got != -1 {
			t.Errorf("%v, %v", cmd.ProcessState, err)
		}
	}
}
