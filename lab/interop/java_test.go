package interop

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/internal/pace"
)

// answerTime bounds the wait for an answer where a test names no other.
const answerTime = pace.Hang

// java is a Java program that speaks the line protocol. Its methods are safe for concurrent use, with one command
// under way per thread.
type java struct {
	t    *testing.T
	cmd  *exec.Cmd
	in   io.Writer
	done chan struct{} // closed when it has ended

	mu      sync.Mutex
	answers map[string]chan answer // by thread
}

// answer is what a command has brought.
type answer struct {
	at     time.Time // when it was done, by the clock that all processes of this machine share
	failed bool
	text   string
}

// startJava starts the jar of a peer on the servers at url, and waits until it is connected. The test's end kills it.
func startJava(t *testing.T, p peer, url string, options ...string) *java {
	t.Helper()
	jar := os.Getenv(p.env)
	if jar == "" {
		t.Skip(p.env + " names no jar: make interop")
	}
	args := slices.Concat(p.jvm, []string{"-jar", jar, url}, options)
	j := &java{t: t, cmd: exec.Command("java", args...), done: make(chan struct{}), answers: map[string]chan answer{}}
	j.cmd.SysProcAttr = child.EndsWithParent()
	in, err := j.cmd.StdinPipe()
	must(t, err)
	out, err := j.cmd.StdoutPipe()
	must(t, err)
	must(t, j.cmd.Start())
	j.in = in
	ready := make(chan struct{})
	go j.read(out, ready)
	t.Cleanup(j.kill)
	select {
	case <-ready:
	case <-j.done:
		t.Fatal("the Java program has ended")
	case <-time.After(answerTime):
		t.Fatal("the Java program is not ready")
	}
	return j
}

// read hands the answers out.
func (j *java) read(out io.Reader, ready chan<- struct{}) {
	defer close(j.done)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		words := strings.SplitN(lines.Text(), " ", 4)
		if words[0] == "ready" {
			close(ready)
			continue
		}
		if len(words) < 3 {
			continue
		}
		us, _ := strconv.ParseInt(words[1], 10, 64)
		a := answer{at: time.UnixMicro(us), failed: words[2] != "ok"}
		if len(words) == 4 {
			a.text = words[3]
		}
		j.thread(words[0]) <- a
	}
	_ = j.cmd.Wait()
}

func (j *java) thread(name string) chan answer {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.answers[name] == nil {
		j.answers[name] = make(chan answer, 16)
	}
	return j.answers[name]
}

// begin makes a thread carry a command out. The answer arrives on the channel.
func (j *java) begin(thread, command string, args ...any) <-chan answer {
	for _, a := range args {
		command += fmt.Sprint(" ", a)
	}
	if _, err := fmt.Fprintf(j.in, "%s %s\n", thread, command); err != nil {
		j.t.Error(err)
	}
	return j.thread(thread)
}

// do is begin, and waits for the answer, which must be no error.
func (j *java) do(thread, command string, args ...any) answer {
	j.t.Helper()
	return j.wait(j.begin(thread, command, args...), answerTime)
}

// wait waits for an answer, which must be no error.
func (j *java) wait(got <-chan answer, within time.Duration) answer {
	j.t.Helper()
	select {
	case a := <-got:
		if a.failed {
			j.t.Fatalf("Java: %s", a.text)
		}
		return a
	case <-j.done:
		j.t.Fatal("the Java program has ended")
	case <-time.After(within):
		j.t.Fatalf("Java has not answered within %v", within)
	}
	return answer{}
}

// kill ends it as kill -9 does.
func (j *java) kill() {
	_ = j.cmd.Process.Kill()
	<-j.done
}
