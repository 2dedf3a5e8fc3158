package anteroom_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
)

// clientsInLine returns the client ids in line for key, in no order.
func clientsInLine(rdb *redis.Client, key string) (clients []string) {
	for _, f := range rdb.HKeys(bg, lineOf(key)).Val() {
		if c, is := strings.CutPrefix(f, "c"); is {
			clients = append(clients, c)
		}
	}
	return clients
}

// stop stops a process, and returns when each of its threads has stopped: one of them has to run to
// handle the signal, and until then the others continue.
func stop(t *testing.T, p *process) {
	t.Helper()
	ok(t, p.Process.Signal(child.SIGSTOP))
	if runtime.GOOS != "linux" {
		return
	}
	eventually(t, "it has stopped", func() bool {
		stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.Process.Pid))
		for _, file := range stats {
			stat, err := os.ReadFile(file)
			if err != nil || !strings.Contains(string(stat), ") T ") {
				return false
			}
		}
		return err == nil && len(stats) > 0
	})
}

// afterStop is what a called process that is stopped costs the others: the call's lease of 2 s, or
// its own if that is shorter, and a confirmation of the next one, with time for a busy machine.
const afterStop = 2*time.Second + time.Second + 2*time.Second

// The first in line is stopped, is called, and sleeps through its lease. The next one is in within
// the bound. When the first one runs again it finds the old call, does not believe it, and waits
// anew.
func TestLine_AStoppedProcessThatIsCalled_Lab(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	rdb := s.Client(t)
	a, _ := manager(t, s.Client(t), anteroom.Config{})
	b, _ := manager(t, s.Client(t), anteroom.Config{})
	lease := pace.Scale(3 * time.Second)
	cfg := anteroom.LockConfig{Key: "k", LeaseTime: lease}
	h := acquire(t, mutex(t, a, cfg))
	p := start(t, "hold", s.Addr(), "k", lease.String())
	eventually(t, "the process waits in line, and listens", func() bool {
		ids := clientsInLine(rdb, "k")
		return len(ids) == 1 && rdb.PubSubNumSub(bg, "anteroom:client:"+ids[0]).Val()["anteroom:client:"+ids[0]] == 1
	})
	id := clientsInLine(rdb, "k")[0]
	got := make(chan *anteroom.Hold, 1)
	go func() { got <- acquire(t, mutex(t, b, cfg)) }()
	eventually(t, "the next one waits in line", func() bool { return len(clientsInLine(rdb, "k")) == 2 })
	stop(t, p)
	ok(t, h.Release(bg))
	stopped := time.Now()
	if fields := rdb.HKeys(bg, "k").Val(); len(fields) != 1 || !strings.HasPrefix(fields[0], id+":") {
		t.Fatalf("not called: %v, %v is in line", fields, id)
	}
	h = <-got
	if took := time.Since(stopped); !pace.Within(took, afterStop) {
		t.Errorf("the next one is in after %v", took)
	}
	timer := time.NewTimer(time.Until(stopped.Add(lease + lease/6))) // beyond the lease
	<-timer.C
	in := make(chan string, 1)
	go func() { line, _ := p.out.ReadString('\n'); in <- strings.TrimSpace(line) }()
	ok(t, p.Process.Signal(child.SIGCONT))
	t.Cleanup(func() {
		if t.Failed() { // what it does shows in its goroutines
			t.Logf("%v holds: %v; in Redis %v, line %v", h, h.Held(), rdb.HGetAll(bg, "k").Val(), rdb.HGetAll(bg, lineOf("k")).Val())
			_ = p.Process.Signal(syscall.SIGQUIT)
			_ = p.Wait()
		}
	})
	eventually(t, "it waits in line anew", func() bool { return len(clientsInLine(rdb, "k")) == 1 })
	timer.Reset(300 * time.Millisecond)
	select {
	case line := <-in:
		t.Fatalf("two are in: %q", line)
	case <-timer.C:
	}
	if fields := rdb.HKeys(bg, "k").Val(); !h.Held() || len(fields) != 1 || fields[0] != h.Holder() {
		t.Errorf("%v holds: %v; in Redis %v", h, h.Held(), fields)
	}
	ok(t, h.Release(bg))
	if line := <-in; line != "holding" {
		t.Fatal(line)
	}
	if fields := rdb.HKeys(bg, "k").Val(); len(fields) != 1 || !strings.HasPrefix(fields[0], id+":") || p.ask(t, "?") != "true false" {
		t.Errorf("not held by the process: %v", fields)
	}
}

// A process that was called has just entered, and is stopped until its lease is over. The next one
// is in within the bound; the stopped one is notified as soon as it runs and asks.
func TestLine_ACalledProcessThatIsStopped(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	rdb := s.Client(t)
	a, _ := manager(t, s.Client(t), anteroom.Config{})
	b, _ := manager(t, s.Client(t), anteroom.Config{})
	lease := pace.Scale(2 * time.Second)
	cfg := anteroom.LockConfig{Key: "k", LeaseTime: lease}
	h := acquire(t, mutex(t, a, cfg))
	p := start(t, "hold", s.Addr(), "k", lease.String())
	eventually(t, "the process waits in line", func() bool { return len(clientsInLine(rdb, "k")) == 1 })
	got := make(chan *anteroom.Hold, 1)
	go func() { got <- acquire(t, mutex(t, b, cfg)) }()
	eventually(t, "the next one waits in line", func() bool { return len(clientsInLine(rdb, "k")) == 2 })
	ok(t, h.Release(bg))
	if line := p.ask(t, ""); line != "holding" {
		t.Fatal(line)
	}
	stop(t, p)
	stopped := time.Now()
	h = <-got
	if took := time.Since(stopped); !pace.Within(took, lease+afterStop-2*time.Second) {
		t.Errorf("the next one is in after %v", took)
	}
	_, err := fmt.Fprintln(p.in, "?")
	ok(t, err)
	ok(t, p.Process.Signal(child.SIGCONT))
	if answer := p.ask(t, ""); answer != "false true" {
		t.Errorf("the first answer after SIGCONT (Held, Context ended): %s", answer)
	}
	if fields := rdb.HKeys(bg, "k").Val(); !h.Held() || len(fields) != 1 || fields[0] != h.Holder() {
		t.Errorf("%v holds: %v; in Redis %v", h, h.Held(), fields)
	}
	ok(t, h.Release(bg))
}
