package main

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/silence"
	"github.com/anteroom/anteroom/internal/testredis"
	"github.com/anteroom/anteroom/lab/history"
)

func TestMain(m *testing.M) {
	silence.Logs()
	history.RunWorker()
	goleak.VerifyTestMain(m)
}

// chaosRun runs a run and returns its exit status and its lines.
func chaosRun(t *testing.T, c config) (int, []string) {
	t.Helper()
	if !testredis.Available() {
		testredis.Start(t) // skips, or fails
	}
	var out bytes.Buffer
	status := run(context.Background(), c, &out)
	text := strings.Split(strings.TrimSpace(out.String()), "\n")
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(out.String())
		}
	})
	return status, text
}

var lastLine = regexp.MustCompile(`^acquisitions=(\d+) faults=(\d+) overlaps=(\d+) violations=(\d+) late_losses=(\d+) stuck=(\d+) leaks=(\d+)$`)

// figures reads the last line.
func figures(t *testing.T, text []string) map[string]int {
	t.Helper()
	m := lastLine.FindStringSubmatch(text[len(text)-1])
	if m == nil {
		t.Fatalf("the last line is %q", text[len(text)-1])
	}
	f := map[string]int{}
	for i, name := range []string{"acquisitions", "faults", "overlaps", "violations", "late_losses", "stuck", "leaks"} {
		n := 0
		_, _ = fmt.Sscan(m[i+1], &n)
		f[name] = n
	}
	return f
}

// Each group of faults that mean the same for a holder, and all of them at random. Where none removes a lock, no two
// hold one at once.
func TestChaos_Groups(t *testing.T) {
	long := min(pace.Scale(10*time.Second), 50*time.Second) // a busy machine brings fewer faults about in a time
	small := config{lasts: long, processes: 3, goroutines: 10, keys: 8}
	single := config{lasts: long, singles: 8, singleKeys: 2, keys: 2}
	every := defaults()
	every.lasts, every.goroutines = long, 25
	for i, g := range []struct {
		name    string
		removes bool
		c       config
		only    []string
	}{
		{"replies and connections", false, small, []string{"reply lost", "reply late", "reset", "half-open", "black hole", "latency"}},
		{"the server away", false, small, []string{
			"Redis SIGSTOP", "Redis SIGKILL and restart with AOF", "SCRIPT FLUSH", "pub/sub connections killed", "CLIENT PAUSE",
		}},
		{"refusals", false, small, []string{"out of memory", "READONLY", "ACL change"}},
		{"removals", true, small, []string{"FLUSHALL", "DEL", "overwritten with a string", "ForceRelease", "Redis SIGKILL and restart empty"}},
		{"processes", false, small, []string{"holder SIGSTOP", "process SIGKILL", "starved CPU", "stop the world"}},
		{"the first in line", false, single, []string{
			"first in line: SIGSTOP across a call", "first in line: SIGSTOP", "first in line: SIGKILL", "first in line: half-open", "pub/sub connections killed",
		}},
		{"all at random", true, every, nil},
	} {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			g.c.only, g.c.seed = g.only, uint64(i+1)
			status, text := chaosRun(t, g.c)
			t.Log(text[len(text)-1])
			f := figures(t, text)
			if status != 0 || f["acquisitions"] == 0 || f["faults"] < 4 || f["overlaps"] > 0 && !g.removes {
				t.Fatalf("exit status %d: %v", status, f)
			}
			for _, name := range g.only {
				if !slices.ContainsFunc(kinds, func(k kind) bool { return k.name == name }) {
					t.Errorf("there is no fault %q", name)
				}
			}
		})
	}
}

// Planted faults are found, and the exit status says so: locks that do not exclude other processes, and a register
// that also accepts old tokens.
func TestChaos_FindsWhatIsPlanted(t *testing.T) {
	base := config{lasts: min(pace.Scale(2*time.Second), 20*time.Second), seed: 1, processes: 2, goroutines: 8, keys: 6, only: []string{"SCRIPT FLUSH"}}
	apart := base
	apart.apart = true
	open := apart
	open.admits = func(_, token int64) bool { return true }
	for _, c := range []struct {
		name  string
		c     config
		rules []history.Rule
	}{
		{"a lock that grants twice", apart, []history.Rule{history.DoubleHold}},
		{"a register that accepts old tokens", open, []history.Rule{history.OldToken, history.LostUpdate}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for missing := c.rules; len(missing) > 0; c.c.seed++ { // a busy machine gives few chances in two seconds
				status, text := chaosRun(t, c.c)
				f := figures(t, text)
				if status != 1 || f["violations"] == 0 || c.c.seed > 5 {
					t.Fatalf("exit status %d: %v; not named: %v", status, f, missing)
				}
				t.Logf("violations=%d", f["violations"])
				missing = slices.DeleteFunc(missing, func(r history.Rule) bool {
					return slices.ContainsFunc(text, func(s string) bool { return strings.HasPrefix(s, string(r)+": ") })
				})
			}
		})
	}
}

// The last line and the status are there even if a run cannot be carried through.
func TestChaos_AFailedRunHasItsLastLine(t *testing.T) {
	t.Setenv("PATH", t.TempDir()) // no redis-server
	t.Setenv("CI", "")
	t.Setenv("ANTEROOM_SKIPPED", "")
	var out bytes.Buffer
	status := run(context.Background(), config{lasts: time.Minute, processes: 1, goroutines: 1, keys: 1}, &out)
	text := strings.Split(strings.TrimSpace(out.String()), "\n")
	if f := figures(t, text); status != 1 || f["violations"] == 0 {
		t.Fatalf("exit status %d: %s", status, out.String())
	}
	if !strings.Contains(out.String(), "redis-server") {
		t.Fatalf("it does not say why: %s", out.String())
	}
}
