// Package testredis starts real redis-server processes for tests: one server (Start),
// one master with replicas and Sentinels (StartSentinel), a Cluster (StartCluster).
//
//	StartSentinel                      StartCluster(tb, 3, 3)
//
//	sentinel sentinel sentinel         slots 0…5460   …10922   …16383
//	     └───────┼───────┘                  master    master    master
//	   master ──► replica, replica          replica   replica   replica
//
// Each server listens on a free loopback port, keeps nothing on disk unless the test asks for it, and is stopped by
// process id when its test ends. If there is no redis-server the test is skipped; under CI=true it fails: a run that
// silently tested less than it claims is worse than a red one.
package testredis

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/internal/pace"
)

// TB is the part of a test that this package uses: a *testing.T, or a Program outside of tests, such as
// in lab/chaos. Fatal, Fatalf and Skip do not return.
type TB interface {
	Helper()
	Name() string
	TempDir() string
	Cleanup(f func())
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Skip(args ...any)
}

// startTimeout bounds how long a server may take until it accepts connections. It is generous because the race
// detector and small machines are slow.
const startTimeout = pace.Hang

// Server is one redis-server process.
//
// Its methods are for one test goroutine, except Addr and Pid, which any may call.
type Server struct {
	tb   TB
	path string
	port int
	kind kind
	args []string
	dir  string

	mu     sync.Mutex
	cmd    *exec.Cmd
	exited chan struct{} // closed when the process in cmd has been waited for
	paused bool
}

// kind is the difference between a plain server, a node of a Cluster and a Sentinel.
type kind struct {
	host  Host
	port  func(TB) int             // a free port
	args  func(s *Server) []string // the command line, without Server.args
	ready string                   // what the process prints when it is ready
}

// plain is a server that keeps nothing on disk.
var plain = kind{port: freePort, ready: "Ready to accept connections", args: func(s *Server) []string {
	return append(s.hostArgs(), "--save", "", "--appendonly", "no", "--dir", s.dir, "--daemonize", "no")
}}

// Available reports whether a redis-server binary was found.
func Available() bool {
	_, err := exec.LookPath("redis-server")
	return err == nil
}

// Start runs a redis-server with args appended to its command line, for example "--appendonly", "yes". It returns
// when the server accepts connections, and stops it when the test ends. Without a redis-server the test is skipped;
// with CI=true it fails.
func Start(tb TB, args ...string) *Server {
	tb.Helper()
	return start(tb, plain, args)
}

func start(tb TB, k kind, args []string) *Server {
	tb.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		Missing(tb, "redis-server")
	}
	s := &Server{tb: tb, path: path, kind: k, args: args, dir: tb.TempDir()}
	tb.Cleanup(s.stop)
	// A port that was free a moment ago may be taken by another test process before the server binds it, so a failed
	// start is tried on another port.
	for try := 0; ; try++ {
		s.port = k.port(tb)
		if err = s.launch(); err == nil {
			return s
		}
		if lacksTLS(err) {
			tb.Skip("this redis-server was built without TLS")
		}
		if try == 4 {
			tb.Fatalf("redis-server did not start: %v", err)
		}
	}
}

// URL returns the address as a redis:// URL, for programs that take one.
func (s *Server) URL() string { return "redis://" + s.Addr() }

// Pid returns the process id, 0 when the server is not running.
func (s *Server) Pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return 0
	}
	return s.cmd.Process.Pid
}

// Client returns a go-redis client of the server, closed when tb ends. opts may
// change the options before the client is made.
func (s *Server) Client(tb TB, opts ...func(*redis.Options)) *redis.Client {
	tb.Helper()
	o := &redis.Options{}
	s.reach(o)
	for _, f := range opts {
		f(o)
	}
	c := redis.NewClient(o)
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

// Pause stops the process with SIGSTOP: connections stay open and nothing is
// answered. A paused server is resumed before it is stopped.
func (s *Server) Pause() { s.signal(child.SIGSTOP, true) }

// Resume continues a paused process; it then works off what has arrived meanwhile.
func (s *Server) Resume() { s.signal(child.SIGCONT, false) }

func (s *Server) signal(sig os.Signal, paused bool) {
	s.tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		s.tb.Fatal("the redis-server is not running")
	}
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.tb.Fatalf("signal %v: %v", sig, err)
	}
	s.paused = paused
}

// Kill ends the process with SIGKILL and waits until it has ended. Connections are reset, memory is lost. The test
// fails if the process had ended by itself.
func (s *Server) Kill() {
	s.tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return
	}
	ended := false
	select {
	case <-s.exited:
		ended = true
	default:
		_ = s.cmd.Process.Kill()
		<-s.exited
	}
	if state := s.cmd.ProcessState; ended || state.Exited() {
		s.tb.Errorf("the redis-server on %s had ended by itself: %v", s.Addr(), state)
	}
	s.cmd, s.paused = nil, false
}

// Restart starts a killed server again on the same port with the same arguments.
func (s *Server) Restart() {
	s.tb.Helper()
	s.Kill()
	if err := s.launch(); err != nil {
		s.tb.Fatalf("redis-server did not restart: %v", err)
	}
}

// Stats returns the number of calls of each command since the server started or
// since CONFIG RESETSTAT, by lower-case name, from INFO commandstats.
func (s *Server) Stats(tb TB) map[string]int64 {
	tb.Helper()
	c := redis.NewClient(&redis.Options{Addr: s.Addr()})
	defer c.Close()
	text, err := c.Info(context.Background(), "commandstats").Result()
	if err != nil {
		tb.Fatalf("INFO commandstats: %v", err)
	}
	calls := map[string]int64{}
	for line := range strings.Lines(text) {
		name, tail, ok := strings.Cut(strings.TrimSpace(line), ":calls=")
		if !ok {
			continue
		}
		n, _, _ := strings.Cut(tail, ",")
		calls[strings.TrimPrefix(name, "cmdstat_")], _ = strconv.ParseInt(n, 10, 64)
	}
	return calls
}

// ScriptTime returns how long the server has worked for EVALSHA since it started.
func (s *Server) ScriptTime(tb TB) time.Duration {
	tb.Helper()
	c := redis.NewClient(&redis.Options{Addr: s.Addr()})
	defer c.Close()
	_, rest, _ := strings.Cut(c.Info(context.Background(), "commandstats").Val(), "cmdstat_evalsha:")
	_, rest, _ = strings.Cut(rest, "usec=")
	text, _, _ := strings.Cut(rest, ",")
	us, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		tb.Fatalf("INFO commandstats: %v", err)
	}
	return time.Duration(us) * time.Microsecond
}

// Missing skips a test that needs a program of that name, which is also the name of its Debian package, and counts
// the skip; with CI=true the test fails instead.
func Missing(tb TB, program string) {
	tb.Helper()
	how := fmt.Sprintf("no %s in PATH: install it with `apt-get install %[1]s` or your system's equivalent", program)
	if os.Getenv("CI") == "true" {
		tb.Fatal(how)
	}
	CountSkip(tb)
	tb.Skip(how)
}

// CountSkip records a skipped test in the file named by ANTEROOM_SKIPPED, so that make test and make lab can report
// how much was not tested.
func CountSkip(tb TB) {
	name := os.Getenv("ANTEROOM_SKIPPED")
	if name == "" {
		return
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	fmt.Fprintln(f, tb.Name())
}

func (s *Server) stop() { s.Kill() }

// launch starts the process on s.port and waits until it answers.
func (s *Server) launch() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	cmd := child.Command(context.Background(), s.kind.host.Namespace, s.path, append(s.kind.args(s), s.args...)...)
	// The server dies with the test binary even if no clean-up runs, for example when the test is killed at its time
	// limit.
	cmd.SysProcAttr = child.EndsWithParent()
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		return err
	}
	exited := make(chan struct{})
	ready := make(chan struct{})
	var tail strings.Builder
	go func() {
		defer close(exited)
		once := sync.OnceFunc(func() { close(ready) })
		for sc := bufio.NewScanner(out); sc.Scan(); {
			if strings.Contains(sc.Text(), s.kind.ready) {
				once()
			} else if tail.Len() < 4096 {
				fmt.Fprintln(&tail, sc.Text())
			}
		}
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
	}()
	timer := time.NewTimer(startTimeout)
	defer timer.Stop()
	select {
	case <-ready:
		s.cmd, s.exited = cmd, exited
		return nil
	case <-exited:
		return fmt.Errorf("it ended immediately: %s", tail.String())
	case <-timer.C:
		_ = cmd.Process.Kill()
		<-exited
		return fmt.Errorf("not ready after %v: %s", startTimeout, tail.String())
	}
}

func freePort(tb TB) int {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
