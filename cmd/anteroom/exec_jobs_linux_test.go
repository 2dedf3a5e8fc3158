package main

import (
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// terminalScreen is the controlling terminal of a shell.
type terminalScreen struct {
	t      *testing.T
	master *os.File
	cmd    *exec.Cmd

	mu   sync.Mutex
	text string // what is on the screen, guarded by mu
}

// newScreen runs a script with sh as the leader of a session.
func newScreen(t *testing.T, url, script string) *terminalScreen {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no pseudo-terminals:", err)
	}
	raw, err := master.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var n int
	_ = raw.Control(func(fd uintptr) {
		if err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err == nil {
			n, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	c := &terminalScreen{t: t, master: master, cmd: exec.Command("sh", "-c", script, os.Args[0])}
	c.cmd.Env = environWithout(asCommand+"=1", "GORACE=atexit_sleep_ms=0", redisVariable+"="+url)
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = tty, tty, tty
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		b := make([]byte, 4096)
		for {
			n, err := master.Read(b)
			c.mu.Lock()
			c.text += string(b[:n])
			c.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill() // the leader: its terminal hangs up for the others
		_ = c.cmd.Wait()
		_ = master.Close()
		<-read
	})
	return c
}

// screen returns what has been shown.
func (c *terminalScreen) screen() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text
}

// until waits for words on the screen.
func (c *terminalScreen) until(words string) {
	c.t.Helper()
	for end := time.Now().Add(execPatience); !strings.Contains(c.screen(), words); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			c.t.Fatalf("the screen does not show %q: %q", words, c.screen())
		}
	}
}

// press types keys.
func (c *terminalScreen) press(keys string) {
	c.t.Helper()
	if _, err := io.WriteString(c.master, keys); err != nil {
		c.t.Fatal(err)
	}
}

// The command has the keyboard, Ctrl-C reaches it, and afterwards the terminal is the shell's again. At the key the
// command is in a builtin: dash loses an INT that arrives while it starts a process. The expected words are computed,
// because the terminal echoes.
func TestExec_X4_Terminal(t *testing.T) {
	s, rdb := withRedis(t)
	c := newScreen(t, s.URL(), `trap : INT; "$0" exec k -- sh -c 'echo r$((1+1))dy; read x; echo "<$x>"; read z'; echo "status-$?"; read y; echo "[$y]"`)
	c.until("r2dy")
	c.press("hello\n")
	c.until("<hello>")
	c.press("\x03")
	c.until("status-130")
	c.press("more\n")
	c.until("[more]")
	if locked(t, rdb, "k") {
		t.Error("the lock is still there")
	}
}

// In a pipeline the shell's job has the terminal, and the command gets it when it asks.
func TestExec_X4_TerminalInAPipeline(t *testing.T) {
	s, _ := withRedis(t)
	c := newScreen(t, s.URL(), `trap : INT; set -m; "$0" exec k -- sh -c 'read x </dev/tty; echo "<$x>"; read z </dev/tty' | cat; echo r$((1+1))dy; read y; echo "[$y]"`)
	c.press("hello\n")
	c.until("<hello>")
	c.press("\x03")
	c.until("r2dy")
	c.press("more\n")
	c.until("[more]")
}

// Ctrl-Z stops the job, and fg continues it.
func TestExec_X4_StopAtTheTerminal(t *testing.T) {
	s, rdb := withRedis(t)
	c := newScreen(t, s.URL(), `set -m; "$0" exec k -- sh -c 'read w; echo r$((1+1))dy; read x; echo "<$x>"'; echo b$((1+1))ck; read y; fg; echo "status-$?"`)
	c.press("\n") // once this has been read, the command certainly has the terminal
	c.until("r2dy")
	c.press("\x1a")
	c.until("b2ck")
	if !locked(t, rdb, "k") {
		t.Error("the lock is gone")
	}
	c.press("\n")
	c.until("exec k")
	c.press("hello\n")
	c.until("<hello>")
	c.until("status-0")
}

// A job that is stopped for longer than its lease is ended, and says so when it continues.
func TestExec_X2_StopForTooLong_Lab(t *testing.T) {
	t.Parallel() // it waits for its lease
	s, _ := withRedis(t)
	th := newThread(t)
	c := newScreen(t, s.URL(), `set -m; "$0" exec --lease 3s k -- sh -c '`+strings.ReplaceAll(th.script(), "'", "")+
		`read w; echo r$((1+1))dy; read x'; echo b$((1+1))ck; read y; fg; echo "status-$?"`)
	c.press("\n") // once this has been read, the command certainly has the terminal
	c.until("r2dy")
	c.press("\x1a")
	c.until("b2ck")
	th.gone()
	c.press("\n")
	c.until("status-76")
}
