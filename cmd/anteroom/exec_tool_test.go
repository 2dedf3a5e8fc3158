//go:build unix

package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
)

// execPatience bounds what must happen and takes no noticeable time.
const execPatience = pace.Hang

// execTool is one process of anteroom, of the test program itself.
type execTool struct {
	*exec.Cmd
	t     *testing.T
	in    io.WriteCloser
	lines chan string // of standard output
	errs  *screenTail
	ended chan struct{}
	once  sync.Once
}

// screenTail is the output on standard error so far.
type screenTail struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *screenTail) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *screenTail) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// startTool starts `anteroom ARGS`. The end of the test ends it in any case, and with it, as it promises, its
// command.
func startTool(t *testing.T, url string, args ...string) *execTool {
	t.Helper()
	return startCommand(t, exec.Command(os.Args[0], args...), url)
}

// answerTime is for how long the tool waits for an answer of Redis. A second, its default, is little for a loaded machine.
func answerTime() time.Duration { return min(pace.Scale(time.Second), 5*time.Second) }

func startCommand(t *testing.T, cmd *exec.Cmd, url string) *execTool {
	t.Helper()
	c := &execTool{Cmd: cmd, t: t, lines: make(chan string, 256), errs: &screenTail{}, ended: make(chan struct{})}
	// With the race detector the program would sleep for a second before it ends.
	c.Env = append(environWithout(asCommand+"=1", "GORACE=atexit_sleep_ms=0", answerLimit+"="+answerTime().String(), redisVariable+"="+url), c.Env...)
	c.Stderr = c.errs
	var err error
	if c.in, err = c.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stdout = w
	// A command left running would keep standard error open for ever.
	c.WaitDelay = execPatience
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			c.lines <- s.Text()
		}
		close(c.lines)
		_ = out.Close()
	}()
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Process.Signal(syscall.SIGCONT)
		_ = c.in.Close()
		c.wait()
		c.drain()
	})
	return c
}

// drain reads standard output to its end. A descendant of a command that a failed test left running has it open.
func (c *execTool) drain() {
	end := time.After(execPatience)
	for {
		select {
		case _, ok := <-c.lines:
			if !ok {
				return
			}
		case <-end:
			c.t.Error("the command, or a descendant, has standard output open")
			return
		}
	}
}

// wait returns the exit status once the tool has ended and its streams are closed; -n if signal n killed it.
func (c *execTool) wait() int {
	c.t.Helper()
	c.once.Do(func() {
		go func() {
			defer close(c.ended)
			_ = c.Wait()
		}()
	})
	select {
	case <-c.ended:
	case <-time.After(execPatience):
		c.t.Fatalf("the tool has not ended; it said %q", c.errs)
	}
	if w := c.ProcessState.Sys().(syscall.WaitStatus); w.Signaled() {
		return -int(w.Signal())
	}
	return c.ProcessState.ExitCode()
}

// expect waits for the end and checks the status and the words on standard error.
func (c *execTool) expect(status int, words ...string) {
	c.t.Helper()
	if got := c.wait(); got != status {
		c.t.Errorf("exit status %d, want %d; it said %q", got, status, c.errs)
	}
	for _, w := range words {
		if !strings.Contains(c.errs.String(), w) {
			c.t.Errorf("it does not say %q: %q", w, c.errs)
		}
	}
}

// line returns the next line of standard output.
func (c *execTool) line() string {
	c.t.Helper()
	select {
	case l, ok := <-c.lines:
		if !ok {
			c.t.Fatalf("standard output has ended; it said %q", c.errs)
		}
		return l
	case <-time.After(execPatience):
		c.t.Fatalf("no line; it said %q", c.errs)
	}
	return ""
}

// until waits for words on standard error.
func (c *execTool) until(words string) {
	c.t.Helper()
	for end := time.Now().Add(execPatience); !strings.Contains(c.errs.String(), words); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			c.t.Fatalf("it does not say %q: %q", words, c.errs)
		}
	}
}

// ready waits for the command's line "ready".
func (c *execTool) ready() {
	c.t.Helper()
	if l := c.line(); l != "ready" {
		c.t.Fatalf("%q", l)
	}
}

// send sends a signal to anteroom itself.
func (c *execTool) send(s syscall.Signal) {
	c.t.Helper()
	if err := c.Process.Signal(s); err != nil {
		c.t.Fatal(err)
	}
}

// thread is a FIFO that a test's command and all of its descendants have open: it ends when the last of them has
// ended.
type thread struct {
	t     *testing.T
	path  string
	lines chan string
}

// newThread makes a FIFO. The script of a test opens it as descriptor 9.
func newThread(t *testing.T) *thread {
	t.Helper()
	th := &thread{t: t, path: filepath.Join(t.TempDir(), "thread"), lines: make(chan string, 16)}
	if err := syscall.Mkfifo(th.path, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(th.lines)
		f, err := os.Open(th.path) // blocks until a writer opens it
		if err != nil {
			return
		}
		defer f.Close()
		for s := bufio.NewScanner(f); s.Scan(); {
			th.lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		if f, err := os.OpenFile(th.path, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
			_ = f.Close()
		}
		th.gone()
	})
	return th
}

// script is the beginning of a script that holds the thread open.
func (th *thread) script() string { return "exec 9>'" + th.path + "'; " }

// line returns the next line that a process has written to the thread.
func (th *thread) line() string {
	th.t.Helper()
	select {
	case l := <-th.lines:
		return l
	case <-time.After(execPatience):
		th.t.Fatal("the command has written nothing")
	}
	return ""
}

// gone waits until no process has the thread open.
func (th *thread) gone() (said []string) {
	th.t.Helper()
	end := time.After(execPatience)
	for {
		select {
		case l, ok := <-th.lines:
			if !ok {
				return said
			}
			said = append(said, l)
		case <-end:
			th.t.Fatal("the command, or a descendant, still runs")
		}
	}
}

// withRedis starts a server and returns it with a client.
func withRedis(t *testing.T) (*testredis.Server, *redis.Client) {
	t.Helper()
	s := testredis.Start(t)
	return s, s.Client(t)
}

// locked reports whether a key exists.
func locked(t *testing.T, rdb *redis.Client, key string) bool {
	t.Helper()
	n, err := rdb.Exists(t.Context(), key).Result()
	if err != nil {
		t.Fatal(err)
	}
	return n == 1
}

// take replaces the holder of a key.
func take(t *testing.T, rdb *redis.Client, key string) {
	t.Helper()
	err := errors.Join(rdb.HSet(t.Context(), key, "other:1", 1).Err(), rdb.PExpire(t.Context(), key, time.Hour).Err())
	if err != nil {
		t.Fatal(err)
	}
}
