//go:build unix

package examples

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
)

// This file runs the programs that hold locks for other packages: a scheduler, a queue, migrations, Terraform.

// printed merges what programs print. They are ended, and must end well, when the test does.
func printed(t *testing.T, all ...*program) <-chan string {
	lines := make(chan string, 10000)
	for _, p := range all {
		go func() {
			for line := range p.lines {
				lines <- line
			}
		}()
		t.Cleanup(func() {
			p.signal(syscall.SIGTERM)
			if status, _ := p.exits(); status != 0 {
				t.Errorf("status %d after SIGTERM", status)
			}
		})
	}
	return lines
}

func next(t *testing.T, lines <-chan string) string {
	t.Helper()
	select {
	case line := <-lines:
		return line
	case <-time.After(pace.Hang):
		t.Fatal("nothing more is printed")
		return ""
	}
}

// Three processes have the same ticks, by clocks that differ, and the job is short.
func TestRobfig(t *testing.T) {
	s := testredis.Start(t)
	var all []*program
	for _, late := range []string{"0s", "70ms", "140ms"} {
		all = append(all, start(t, s, "robfig", "-spec", "* * * * * *", "-late", late))
	}
	lines, seen := printed(t, all...), map[time.Time]bool{}
	for len(seen) < 4 {
		line := next(t, lines)
		at, err := time.Parse(time.RFC3339Nano, strings.TrimPrefix(line, "reporting at "))
		if err != nil {
			t.Fatalf("it printed %q", line)
		}
		tick := at.Truncate(time.Second)
		if at.Sub(tick) > 500*time.Millisecond {
			continue // on a loaded machine: it may be of the tick before
		}
		if seen[tick] {
			t.Errorf("the tick of %v ran twice", tick)
		}
		seen[tick] = true
	}
}

// Two processes with four workers each have tasks of one account only.
func TestAsynq(t *testing.T) {
	s, dir := testredis.Start(t), t.TempDir()
	lines := printed(t, start(t, s, "asynq", "-dir", dir, "-enqueue", "10"), start(t, s, "asynq", "-dir", dir, "-enqueue", "10"))
	for range 20 {
		if line := next(t, lines); line != "billed alice" {
			t.Fatalf("it printed %q", line)
		}
	}
}

func TestMigrate(t *testing.T) {
	s, file := testredis.Start(t), filepath.Join(t.TempDir(), "app.db")
	var all []*program
	for range 4 {
		all = append(all, start(t, s, "migrate", "-db", file))
	}
	var text string
	for _, p := range all {
		status, printed := p.exits()
		if text += printed; status != 0 {
			t.Errorf("status %d: %s", status, printed)
		}
	}
	if strings.Count(text, "migrated to version 2\n") != 1 || strings.Count(text, "up to date\n") != 3 {
		t.Errorf("they printed:\n%s", text)
	}
}

// A lock of Terraform is taken by one process, used by another, and taken over when its time is over.
func TestTerraform(t *testing.T) {
	s, dir := testredis.Start(t), t.TempDir()
	var servers []string
	for range 2 {
		p := start(t, s, "terraform", "-listen", "127.0.0.1:0", "-dir", dir)
		servers = append(servers, "http://"+p.prints("serving on "))
	}
	brief := "http://" + start(t, s, "terraform", "-listen", "127.0.0.1:0", "-dir", dir, "-keep", "1s").prints("serving on ")
	const ann, bob = `{"ID":"1","Who":"ann"}`, `{"ID":"2","Who":"bob"}`
	for i, step := range []struct {
		method, url, body string
		status            int
		answer            string // how it begins
	}{
		{"GET", servers[0] + "/prod", "", 404, ""},
		{"LOCK", servers[0] + "/prod", ann, 200, ""},
		{"LOCK", servers[1] + "/prod", bob, 423, ann},
		{"LOCK", servers[1] + "/test", bob, 200, ""},
		{"POST", servers[1] + "/prod", "theirs", 423, ann},
		{"POST", servers[1] + "/prod?ID=2", "theirs", 409, ""},
		{"POST", servers[1] + "/prod?ID=1", "ours", 200, ""},
		{"POST", servers[0] + "/prod?ID=1", "ours, again", 200, ""},
		{"GET", servers[1] + "/prod", "", 200, "ours, again"},
		{"UNLOCK", servers[0] + "/prod", bob, 409, ""},
		{"UNLOCK", servers[1] + "/prod", ann, 200, ""},
		{"UNLOCK", servers[1] + "/prod", ann, 409, ""},
		{"POST", servers[0] + "/prod?ID=1", "too late", 409, ""},
		{"POST", servers[0] + "/prod", "unlocked", 200, ""},
		{"LOCK", servers[1] + "/prod", "no JSON", 400, ""},
		{"LOCK", brief + "/prod", bob, 200, ""}, // and bob's terraform is killed
	} {
		if status, answer := request(t, step.method, step.url, step.body); status != step.status || !strings.HasPrefix(answer, step.answer) {
			t.Fatalf("step %d, %s %s: %d %s, want %d %s", i, step.method, step.url, status, answer, step.status, step.answer)
		}
	}
	for limit := time.Now().Add(pace.Hang); ; time.Sleep(50 * time.Millisecond) {
		if status, _ := request(t, "LOCK", servers[0]+"/prod", ann); status == 200 {
			break
		}
		if time.Now().After(limit) {
			t.Fatal("a lock whose time is over is not taken over")
		}
	}
	if status, _ := request(t, "POST", servers[0]+"/prod?ID=2", "bob's"); status != 409 {
		t.Errorf("a run whose time is over writes: %d", status)
	}
}

func request(t *testing.T, method, url, body string) (status int, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Timeout: pace.Hang, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(data)
}
