//go:build unix

package examples

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/silence"
	"github.com/anteroom/anteroom/internal/testredis"
)

var built string

func TestMain(m *testing.M) {
	silence.Logs()
	goleak.VerifyTestMain(m, goleak.Cleanup(func(status int) { os.RemoveAll(built); os.Exit(status) }))
}

// build compiles all programs, once.
var build = sync.OnceValue(func() error {
	var err error
	if built, err = os.MkdirTemp("", "examples"); err != nil {
		return err
	}
	out, err := exec.Command("go", "build", "-o", built, "./...").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
})

// program is a running one.
type program struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines chan string // what it prints
	ended chan struct{}
}

// start runs a program. It is killed when the test ends.
func start(t *testing.T, s *testredis.Server, name string, args ...string) *program {
	t.Helper()
	if err := build(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(built, name), append([]string{"-redis", "redis://" + s.Addr()}, args...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &program{t, cmd, make(chan string, 10000), make(chan struct{})}
	go func() {
		defer close(p.ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.lines <- lines.Text()
		}
		close(p.lines)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-p.ended
	})
	return p
}

// prints waits for a line that begins so, and returns what comes after.
func (p *program) prints(begin string) string {
	p.t.Helper()
	limit := time.After(pace.Hang)
	var seen []string
	for {
		select {
		case line, more := <-p.lines:
			if tail, is := strings.CutPrefix(line, begin); is {
				return tail
			}
			if seen = append(seen, line); !more {
				p.t.Fatalf("it ended without printing %q:\n%s", begin, strings.Join(seen, "\n"))
			}
		case <-limit:
			p.t.Fatalf("it did not print %q:\n%s", begin, strings.Join(seen, "\n"))
		}
	}
}

// exits waits for the end, and returns the exit status and what was printed until then.
func (p *program) exits() (status int, text string) {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(pace.Hang):
		p.t.Fatal("it does not end")
	}
	for line := range p.lines {
		text += line + "\n"
	}
	return p.cmd.ProcessState.ExitCode(), text
}

func (p *program) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}
