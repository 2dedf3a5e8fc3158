package promise

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/anteroom/anteroom/internal/faultnet"
)

// childEnv holds the order of a process that Paused started.
const childEnv = "ANTEROOM_PROMISE_HOLDER"

// order says what a holder's process shall hold.
type order struct {
	Library string
	Addr    string
	Names   []string
}

// Main is called first by every program that calls Paused, with the libraries that it
// measures. In a holder's process it does not return.
func Main(libraries ...Library) {
	text := os.Getenv(childEnv)
	if text == "" {
		return
	}
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		fail(err)
	}
	i := slices.IndexFunc(libraries, func(l Library) bool { return l.Name == o.Library })
	if i < 0 {
		fail(fmt.Errorf("no library %q", o.Library))
	}
	if err := serve(libraries[i], o, bufio.NewScanner(os.Stdin)); err != nil {
		fail(err)
	}
	os.Exit(0)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "holder:", err)
	os.Exit(1)
}

// serve is a holder's process: it acquires, watches when it is told to, and reports
// what it saw. It ends without a release, as its parent kills it.
func serve(lib Library, o order, in *bufio.Scanner) error {
	ctx, cancel := context.WithTimeout(context.Background(), 4*lib.Lease+2*patience)
	defer cancel()
	c, err := lib.Connect(o.Addr, faultnet.New(nil).Dial)
	if err != nil {
		return err
	}
	holds, err := acquire(ctx, lib, c, o.Names)
	if err != nil {
		return err
	}
	fmt.Println("holding")
	if !in.Scan() {
		return io.ErrUnexpectedEOF
	}
	w := watch(holds, len(lib.Questions), 0)
	fmt.Println("watching")
	if !in.Scan() {
		return io.ErrUnexpectedEOF
	}
	wait, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	w.told(wait)
	return json.NewEncoder(os.Stdout).Encode(w.finish())
}

// holder is a holder's process, seen by its parent.
type holder struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// spawn starts this program again as a holder, and waits until it holds. It is killed
// when ctx ends.
func spawn(ctx context.Context, o order) (*holder, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	p := &holder{cmd: exec.CommandContext(ctx, self)}
	p.cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	p.cmd.Stderr = os.Stderr
	p.cmd.SysProcAttr = sysProcAttr()
	p.cmd.WaitDelay = time.Second
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	if err := p.expect("holding"); err != nil {
		p.kill()
		return nil, err
	}
	return p, nil
}

// say sends a line and waits for the answer.
func (p *holder) say(line, answer string) error {
	if _, err := fmt.Fprintln(p.in, line); err != nil {
		return err
	}
	return p.expect(answer)
}

func (p *holder) expect(want string) error {
	got, err := p.out.ReadString('\n')
	if err != nil {
		return fmt.Errorf("the holder's process has ended: %w", err)
	}
	if got = strings.TrimSpace(got); got != want {
		return fmt.Errorf("the holder's process says %q, want %q", got, want)
	}
	return nil
}

// report asks for what was seen.
func (p *holder) report() ([]sighting, error) {
	if _, err := fmt.Fprintln(p.in, "report"); err != nil {
		return nil, err
	}
	var seen []sighting
	return seen, json.NewDecoder(p.out).Decode(&seen)
}

func (p *holder) signal(s syscall.Signal) error { return p.cmd.Process.Signal(s) }

// kill ends the process, stopped or not, and waits for it.
func (p *holder) kill() {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return
	}
	_ = p.cmd.Wait()
}
