//go:build unix

package child

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/internal/pace"
)

const bound = pace.Hang

func TestMain(m *testing.M) {
	_ = os.Setenv("GORACE", "atexit_sleep_ms=1") // of the children, which end often
	Run(map[string]Role{"echo": echo, "fail": fail, "hang": hang, "parent": parent})
	goleak.VerifyTestMain(m)
}

// echo answers each message with the plan and the message until no more arrive.
func echo(ctx context.Context, l *Link, plan json.RawMessage) error {
	for {
		var text string
		if err := l.Receive(&text); err != nil {
			<-ctx.Done()
			return nil
		}
		if err := l.Send(string(plan) + text); err != nil {
			return err
		}
	}
}

func fail(context.Context, *Link, json.RawMessage) error { return errors.New("on purpose") }

// hang ignores its context.
func hang(_ context.Context, l *Link, _ json.RawMessage) error {
	if err := l.Send(os.Getpid()); err != nil {
		return err
	}
	select {}
}

// parent starts a child of its own, reports its process id, and is then killed.
func parent(ctx context.Context, l *Link, _ json.RawMessage) error {
	c, err := Start(ctx, "hang", nil, bound)
	if err != nil {
		return err
	}
	if err := l.Send(c.Pid()); err != nil {
		return err
	}
	select {}
}

func start(t *testing.T, role string, plan any, bound time.Duration) *Process {
	t.Helper()
	p, err := Start(t.Context(), role, plan, bound)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Stop(0) })
	return p
}

func TestChild_SendsAndReceives(t *testing.T) {
	p := start(t, "echo", 7, bound)
	for _, text := range []string{"a", "b\nc"} {
		var got string
		if err := errors.Join(p.Send(text), p.Receive(&got, bound)); err != nil || got != "7"+text {
			t.Fatalf("the child answered %q, %v", got, err)
		}
	}
	if err := p.Stop(bound); err != nil {
		t.Error(err)
	}
}

// gone waits until no process has that id, or only one that has ended and was not waited for.
func gone(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(bound); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return
		}
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && strings.Contains(string(stat), ") Z ") {
			return
		}
	}
	t.Errorf("process %d still runs", pid)
}

func TestChild_I1_EndsWithItsParent(t *testing.T) {
	p := start(t, "parent", nil, bound)
	var pid int
	if err := p.Receive(&pid, bound); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	gone(t, pid)
}

func TestChild_I2_EndsByItself(t *testing.T) {
	p := start(t, "hang", nil, time.Second)
	gone(t, p.Pid())
	if err := p.Stop(bound); err == nil || !strings.Contains(err.Error(), "bound, 1s") {
		t.Errorf("Stop does not report that the child has ended itself: %v", err)
	}
	p = start(t, "hang", nil, bound)
	var pid int
	if err := p.Receive(&pid, bound); err != nil || pid != p.Pid() {
		t.Fatalf("the child is %d, %v", pid, err)
	}
	if err := p.Stop(time.Millisecond); err == nil {
		t.Error("Stop did not report that the child had to be killed")
	}
	gone(t, pid)
}

func TestChild_I3_ItsErrorIsReported(t *testing.T) {
	for role, want := range map[string]string{"fail": "on purpose", "unknown": `no role "unknown"`} {
		p := start(t, role, nil, bound)
		if err := p.Receive(new(int), bound); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Receive from %s: %v", role, err)
		}
		if err := p.Stop(bound); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Stop of %s: %v", role, err)
		}
	}
}
