//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
)

func TestExec_X5_Statuses(t *testing.T) {
	s, rdb := withRedis(t)
	take(t, rdb, "taken")
	must(t, rdb.HSet(t.Context(), "taken", "other:1", "1 note: night \x1b shift").Err())
	m, _ := client(t, s, anteroom.Config{})
	rw, err := m.NewRWMutex(anteroom.LockConfig{Key: "units"})
	must(t, err)
	h, err := rw.Acquire(t.Context())
	must(t, err)
	defer func() { must(t, h.Release(t.Context())) }()
	if err := rdb.Set(t.Context(), "other", "a string", 0).Err(); err != nil {
		t.Fatal(err)
	}
	garbage := filepath.Join(t.TempDir(), "garbage")
	if err := os.WriteFile(garbage, []byte{0, 1, 2}, 0o700); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		args   []string
		status int
		words  string
	}{
		{[]string{"k", "--", "true"}, 0, ""},
		{[]string{"k", "--", "sh", "-c", "exit 7"}, 7, ""},
		{[]string{"-c", "k", "--", "exit 255"}, 255, ""},
		{[]string{"k", "--", "sh", "-c", "kill -TERM $$"}, 128 + 15, ""},
		{[]string{"k", "--", "sh", "-c", "kill -KILL $$"}, 128 + 9, ""},
		{[]string{"k", "--", "/no/such/command"}, 127, "/no/such/command"},
		{[]string{"k", "--", "no-such-command-at-all"}, 127, "no-such-command-at-all"},
		{[]string{"k", "--", "/dev/null"}, 126, "permission denied"},
		{[]string{"k", "--", garbage}, 126, "exec format error"},
		{[]string{"-n", "taken", "--", "true"}, 75, "lock \"taken\" is held by other:1 (\"night \\x1b shift\")\n"},
		{[]string{"-w", "0", "taken", "--", "true"}, 75, "is held by other:1"},
		{[]string{"-w", "1s", "taken", "--", "true"}, 75, "lock \"taken\" is still held after "},
		{[]string{"-n", "-s", "units", "--", "true"}, 75, "lock \"units\" is held (anteroom status shows by whom)\n"},
		{[]string{"--wait", "0.5", "-E", "0", "taken", "--", "false"}, 0, ""},
		{[]string{"-n", "--conflict-exit-code", "42", "taken", "--", "true"}, 42, "is held by other:1"},
		{[]string{"-n", "-E", "0", "--verbose", "taken", "--", "false"}, 0, "is held by other:1"},
		{[]string{"other", "--", "true"}, 77, "other holds a value of type string, not a lock; it was left alone (a lock of redsync, redislock or rueidislock? See docs/migrating.md)"},
		{[]string{"--", "-dash", "--", "sh", "-c", "test $ANTEROOM_KEY = -dash"}, 0, ""},
		{[]string{"-n", "kk", "--", "test", "--", "=", "--"}, 0, ""},
	}
	tools := make([]*execTool, len(cases))
	for i, c := range cases {
		// Each has a key of its own, so that they can run in parallel.
		if k := slices.Index(c.args, "k"); k >= 0 {
			c.args[k] = fmt.Sprint("k", i)
		}
		tools[i] = startTool(t, s.URL(), append([]string{"exec"}, c.args...)...)
	}
	for i, c := range cases {
		tools[i].expect(c.status, c.words)
		if c.words == "" && tools[i].errs.String() != "" {
			t.Errorf("%v: it said %q", c.args, tools[i].errs)
		}
		if locked(t, rdb, fmt.Sprint("k", i)) {
			t.Errorf("%v: the lock is still there", c.args)
		}
	}
	startTool(t, "redis://127.0.0.1:1", "exec", "k", "--", "true").expect(69, "refused")
}

// Errors in the command line are reported before Redis is asked anything.
func TestExec_X5_Usage(t *testing.T) {
	t.Setenv(redisVariable, "redis://127.0.0.1:1")
	for _, c := range []struct {
		args  []string
		words string
	}{
		{nil, "KEY"},
		{[]string{"k"}, "KEY"},
		{[]string{"k", "true"}, "KEY"},
		{[]string{"k", "--"}, "KEY"},
		{[]string{"--", "k", "true"}, "KEY"},
		{[]string{"--", "k", "--"}, "KEY"},
		{[]string{"k", "l", "--", "true"}, "KEY"},
		{[]string{"--nonsense", "k", "--", "true"}, "nonsense"},
		{[]string{"-n", "-w", "1s", "k", "--", "true"}, "nonblock"},
		{[]string{"-w", "-1s", "k", "--", "true"}, "must be a duration"},
		{[]string{"-w", "-1", "k", "--", "true"}, "seconds"},
		{[]string{"-w", "soon", "k", "--", "true"}, "must be a duration"},
		{[]string{"-E", "256", "k", "--", "true"}, "from 0 to 255"},
		{[]string{"-E", "-1", "k", "--", "true"}, "from 0 to 255"},
		{[]string{"--lease", "1ms", "k", "--", "true"}, "LeaseTime"},
		{[]string{"--lease", "0", "k", "--", "true"}, "--lease"},
		{[]string{"--at-least", "-1s", "k", "--", "true"}, "--at-least"},
		{[]string{"--grace", "-1s", "k", "--", "true"}, "--grace"},
		{[]string{"", "--", "true"}, "Key"},
		{[]string{"-c", "k", "--", "echo", "two"}, "one word"},
		{[]string{"--redis", "nonsense", "k", "--", "true"}, "--redis"},
	} {
		var out, errs bytes.Buffer
		status := run(t.Context(), append([]string{"exec"}, c.args...), nil, &out, &errs)
		const form = "\nusage: anteroom exec [flags] KEY -- COMMAND [ARG...]; see anteroom exec --help\n"
		if status != exitUsage || out.Len() != 0 || !strings.Contains(errs.String(), c.words) || !strings.HasSuffix(errs.String(), form) {
			t.Errorf("%v: exit status %d, %q, %q", c.args, status, out.String(), errs.String())
		}
	}
}

func TestExec_Help(t *testing.T) {
	var out, errs bytes.Buffer
	status := run(t.Context(), []string{"exec", "--help"}, nil, &out, &errs)
	if status != 0 || errs.Len() != 0 {
		t.Fatalf("exit status %d, %q", status, errs.String())
	}
	if n := strings.Count(out.String(), "\n"); n > 50 {
		t.Errorf("the help has %d lines, more than a screen", n)
	}
	for _, words := range []string{"ANTEROOM_TOKEN", "--grace", "  75  ", "--at-least"} {
		if !strings.Contains(out.String(), words) {
			t.Errorf("the help has no %q", words)
		}
	}
}

// Descriptors, arguments and the environment reach the command unchanged.
func TestExec_X4_Untouched(t *testing.T) {
	s, _ := withRedis(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	data := make([]byte, 300_000)
	for i := range data {
		data[i] = byte(i * i >> 3)
	}
	script := `printf '%s|%s|' "$1" "$ANTEROOM_KEY" >&3; ls /proc/self/fd 2>/dev/null | wc -l >&3; echo to-err >&2; exec cat`
	words := []string{"sh", "-c", script, "sh", "a\xff\n$HOME"}
	var said [2]string
	for i, words := range [][]string{words, slices.Concat([]string{os.Args[0], "exec", "k\xff", "--"}, words)} {
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Env = environWithout(asCommand+"=1", "GORACE=atexit_sleep_ms=0", redisVariable+"="+s.URL())
		cmd.Stdin = bytes.NewReader(data)
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = &out, &errs, []*os.File{w}
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v, %q", err, errs.String())
		}
		if !bytes.Equal(out.Bytes(), data) || errs.String() != "to-err\n" {
			t.Errorf("%d bytes came back, %q", out.Len(), errs.String())
		}
		b := make([]byte, 4096)
		n, _ := r.Read(b)
		said[i] = string(b[:n])
	}
	// The key is new, and no descriptor is.
	if want := strings.Replace(said[0], "||", "|k\xff|", 1); said[1] != want || !strings.HasPrefix(want, "a\xff\n$HOME|k\xff|") {
		t.Errorf("%q, want %q", said[1], want)
	}
}

func TestExec_Environment(t *testing.T) {
	s, rdb := withRedis(t)
	c := startTool(t, s.URL(), "exec", "--fencing", "k", "--",
		"sh", "-c", `echo "$ANTEROOM_KEY $ANTEROOM_HOLDER $ANTEROOM_TOKEN"; read x`)
	words := strings.Fields(c.line())
	if len(words) != 3 || words[0] != "k" {
		t.Fatal(words)
	}
	if n, err := rdb.HGet(t.Context(), "k", words[1]).Result(); err != nil || n != "1 note: exec sh" {
		t.Errorf("the holder %q is %q in Redis: %v", words[1], n, err)
	}
	fmt.Fprintln(c.in)
	c.expect(0)

	// The next token is larger; without --fencing there is none, not even one of an outer exec.
	first := words[2]
	cmd := exec.Command(os.Args[0], "exec", "--fencing", "--pass-env", "k", "--",
		os.Args[0], "exec", "l", "--", "sh", "-c", `echo "$ANTEROOM_KEY $ANTEROOM_TOKEN"`)
	if got := startCommand(t, cmd, s.URL()).line(); got != "l " {
		t.Errorf("%q", got)
	}
	c = startTool(t, s.URL(), "exec", "--fencing", "k", "--", "sh", "-c", "echo $ANTEROOM_TOKEN")
	if next := c.line(); len(next) < len(first) || len(next) == len(first) && next <= first {
		t.Errorf("the token %q follows %q", next, first)
	}
}

// The URL of Redis, which may contain a password, is not passed to the command.
func TestExec_ThePasswordIsNotPassedOn(t *testing.T) {
	s, _ := withRedis(t)
	for flag, want := range map[string]string{"--fencing": "", "--pass-env": redisVariable + "=" + s.URL()} {
		c := startTool(t, s.URL(), "exec", flag, "k", "--", "sh", "-c", "env; cat /proc/$PPID/environ | tr '\\0' '\\n'; echo end")
		got := ""
		for l := c.line(); l != "end"; l = c.line() {
			if strings.HasPrefix(l, redisVariable) {
				got += l
			}
		}
		c.expect(0)
		if got != want {
			t.Errorf("%s: the command, or its parent, has %q, want %q", flag, got, want)
		}
	}
}

// A grace that may outlast the margin causes a warning at the start; the default grace is short enough.
func TestExec_X1_AGraceThatIsTooLongIsSaid(t *testing.T) {
	s, _ := withRedis(t)
	for _, c := range []struct{ lease, grace, words string }{
		{"30s", "", ""},
		{"24h", "", ""},
		{"30s", "2s", ""},
		{"30s", "2001ms", "--grace 2.001s is more than a lease of 30s leaves time for (2s)"},
		{"1m", "5s", "--lease 1m15s leaves enough"},
	} {
		args := []string{"exec", "--lease", c.lease, "k", "--", "true"}
		if c.grace != "" {
			args = slices.Insert(args, 1, "--grace", c.grace)
		}
		tool := startTool(t, s.URL(), args...)
		tool.expect(0, c.words)
		if c.words == "" && tool.errs.String() != "" {
			t.Errorf("%v: it said %q", args, tool.errs)
		}
	}
}

// The longest grace without a warning ends within the margin, even if the keeper is stopped and the supervisor acts.
func TestExec_X1_TheGraceEndsWithinTheMargin(t *testing.T) {
	for _, lease := range []time.Duration{100 * time.Millisecond, 30 * time.Second, 24 * time.Hour} {
		f := execFlags{lease: lease}
		if f.slack()+f.mostGrace() >= f.margin() || f.mostGrace() < lease/20 {
			t.Errorf("lease %v: margin %v, slack %v, grace %v", lease, f.margin(), f.slack(), f.mostGrace())
		}
	}
}

func TestExec_Verbose(t *testing.T) {
	s, rdb := withRedis(t)
	take(t, rdb, "k")
	c := startTool(t, s.URL(), "exec", "--verbose", "--fencing", "k", "--", "true")
	c.until(`lock "k" is held by other:1; waiting`)
	if err := rdb.Del(t.Context(), "k").Err(); err != nil {
		t.Fatal(err)
	}
	if err := rdb.Publish(t.Context(), "lock:release:k", "{}").Err(); err != nil {
		t.Fatal(err)
	}
	c.expect(0, `lock "k" acquired after `, ", token ", `lock "k" released after `)
	take(t, rdb, "k")
	startTool(t, s.URL(), "exec", "--verbose", "-w", "1s", "k", "--", "true").expect(75, `lock "k" is still held after 1`)
}

func TestExec_AtLeast(t *testing.T) {
	s, rdb := withRedis(t)
	startTool(t, s.URL(), "exec", "--at-least", "1h", "k", "--", "true").expect(0)
	if ttl, err := rdb.PTTL(t.Context(), "k").Result(); err != nil || ttl < 50*time.Minute {
		t.Errorf("the key is there for another %v: %v", ttl, err)
	}
}

func TestExec_Lease(t *testing.T) {
	s, rdb := withRedis(t)
	c := startTool(t, s.URL(), "exec", "--lease", "1h", "k", "--", "sh", "-c", "echo; read x")
	c.line()
	for end := time.Now().Add(soon); ; time.Sleep(5 * time.Millisecond) { // the first renewal gives the lease its length
		ttl, err := rdb.PTTL(t.Context(), "k").Result()
		if err == nil && ttl > 50*time.Minute {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the lease lasts for another %v: %v", ttl, err)
		}
	}
}

// Concurrent runs execute one after the other.
func TestExec_X1_OneAtATime(t *testing.T) {
	s, _ := withRedis(t)
	file := filepath.Join(t.TempDir(), "n")
	var all sync.WaitGroup
	tools := make([]*execTool, 5)
	for i := range tools {
		tools[i] = startTool(t, s.URL(), "exec", "k", "--", "sh", "-c",
			`n=$(cat "$0" 2>/dev/null || echo 0); read x; echo $((n + 1)) >"$0"`, file)
	}
	for _, c := range tools {
		all.Go(func() { fmt.Fprintln(c.in) })
	}
	all.Wait()
	for _, c := range tools {
		c.expect(0)
	}
	if got, _ := os.ReadFile(file); string(got) != "5\n" {
		t.Errorf("counted %q", got)
	}
}
