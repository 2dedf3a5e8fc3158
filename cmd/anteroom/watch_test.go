package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/screen"
	"github.com/anteroom/anteroom/internal/testredis"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	anteroom "github.com/anteroom/anteroom/sync"
)

// watching is a run of `anteroom watch`.
type watching struct {
	t         *testing.T
	out, errs screen.Screen
	cancel    context.CancelFunc
	status    chan int
}

// watch starts a run and returns when it receives releases.
func watch(t *testing.T, s *testredis.Server, args ...string) *watching {
	t.Helper()
	w := &watching{t: t, status: make(chan int, 1)}
	w.begin(func(ctx context.Context) int {
		return run(ctx, append([]string{"--redis", s.URL(), "watch"}, args...), nil, &w.out, &w.errs)
	})
	w.await(&w.errs, "anteroom: watching ", 1)
	return w
}

func (w *watching) begin(f func(ctx context.Context) int) {
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	go func() { w.status <- f(ctx) }()
	w.t.Cleanup(cancel)
}

// await waits until word has been written n times.
func (w *watching) await(s *screen.Screen, word string, n int) {
	w.t.Helper()
	for end := time.Now().Add(soon); strings.Count(s.String(), word) < n; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("not %d times %q: %q", n, word, s.String())
		}
	}
}

// ends waits for the run's end and checks its exit status.
func (w *watching) ends(status int) {
	w.t.Helper()
	select {
	case code := <-w.status:
		if code != status {
			w.t.Errorf("exit status %d, want %d; %q, %q", code, status, w.out.String(), w.errs.String())
		}
	case <-time.After(soon):
		w.t.Fatalf("it has not ended; %q, %q", w.out.String(), w.errs.String())
	}
}

var atFront = regexp.MustCompile(`(?m)^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(Z|[+-]\d\d:\d\d)  `)

// Releases by holders, by force, and by foreign clients, each on a line of its own; and messages that are not releases.
func TestWatch_Releases(t *testing.T) {
	s := testredis.Start(t)
	rdb := s.Client(t)
	m, losses := client(t, s, anteroom.Config{})
	plain, lines := watch(t, s, "order:*"), watch(t, s, "--json", "--count", "5")
	h := hold(t, m.Mutex("order:42"))
	first := h.Holder()
	must(t, h.Release(t.Context()))
	h = hold(t, m.Mutex("order:42"))
	if code, _, errs := tool(t, s, "release", "--force", "--yes", "order:42"); code != 0 {
		t.Fatal(errs)
	}
	<-losses
	must(t, hold(t, m.Mutex("other")).Release(t.Context()))
	_ = h.Release(t.Context())
	for _, payload := range []string{`{"lockKey":"order:7","releaseTime":-5,"holder":"thread 1"}`, "\x1b[2J\xffrubbish"} {
		must(t, rdb.Publish(t.Context(), "lock:release:order:7", payload).Err())
	}
	lines.ends(0)
	plain.await(&plain.out, "\n", 4) // it receives the same, except "other"
	plain.cancel()
	plain.ends(0)

	forced := forcedBy(t, lines.out.String())
	rows := strings.Split(atFront.ReplaceAllString(plain.out.String(), ""), "\n")
	want := []string{"order:42  " + first, "order:42  " + forced, `order:7  "thread 1"`, `order:7  (not a release message: "\x1b[2J\xffrubbish")`, ""}
	if strings.Join(rows, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(rows, "\n"), strings.Join(want, "\n"))
	}
	printable(t, plain.out.String()+plain.errs.String()+lines.out.String()+lines.errs.String())
}

// forcedBy checks the lines of JSON of TestWatch_Releases and returns who forced a release.
func forcedBy(t *testing.T, out string) (by string) {
	t.Helper()
	var events, keys []string
	for line := range strings.Lines(out) {
		var e struct {
			Time, Event, Key, Payload string
			Holder, Client, Host      *string
			Pid                       *int
			Release                   *int64 `json:"release_time"`
		}
		d := json.NewDecoder(strings.NewReader(line))
		d.DisallowUnknownFields()
		must(t, d.Decode(&e))
		at, err := time.Parse(time.RFC3339, e.Time)
		if err != nil || time.Since(at) > soon {
			t.Errorf("%q: %v", line, err)
		}
		events, keys = append(events, e.Event), append(keys, e.Key)
		switch {
		case e.Event == "malformed" && (e.Payload != "\x1b[2J\ufffdrubbish" || e.Holder != nil):
			t.Errorf("%q", line)
		case e.Event == "release" && (e.Holder == nil || e.Release == nil):
			t.Errorf("%q", line)
		case e.Key == "order:7" && e.Event == "release" && (*e.Release != -5 || e.Client != nil):
			t.Errorf("%q", line)
		case e.Key == "other" && (e.Pid == nil || *e.Pid != os.Getpid()):
			t.Errorf("%q", line)
		}
		if len(events) == 3 && e.Client != nil {
			if _, _, ok := lettucecompat.ParseField(*e.Holder); ok || *e.Client != *e.Holder {
				t.Errorf("forced by %q", *e.Holder)
			}
			by = *e.Holder
		}
	}
	if got := strings.Join(events, " ") + "," + strings.Join(keys, " "); got != "subscribed release release release release malformed, order:42 order:42 other order:7 order:7" {
		t.Errorf("events and keys: %s", got)
	}
	return by
}

// --fixed takes a name literally, where a pattern would match others, or not the name itself.
func TestWatch_Fixed(t *testing.T) {
	s := testredis.Start(t)
	rdb := s.Client(t)
	const key = `a*[b]\?`
	w := watch(t, s, "--fixed", "--count", "1", key)
	if n := rdb.PubSubNumSub(t.Context(), "lock:release:"+key).Val()["lock:release:"+key]; n != 0 {
		t.Errorf("who watches is taken for %d who wait", n)
	}
	for _, k := range []string{"ab", `a*[b]\`, key} {
		must(t, rdb.Publish(t.Context(), "lock:release:"+k, `{"lockKey":"","releaseTime":1,"holder":"h"}`).Err())
	}
	w.ends(0)
	if got := atFront.ReplaceAllString(w.out.String(), ""); got != `"a*[b]\\?"`+"  h\n" {
		t.Errorf("%q", got)
	}
}

// The user of docs/operations.md §3, with the one additional command that docs/cli.md names, may watch the pattern of
// its own rule and no other.
func TestWatch_Permissions(t *testing.T) {
	s := testredis.Start(t)
	must(t, s.Client(t).Do(t.Context(), "acl", "setuser", "op", "on", ">pw", "resetchannels", "&lock:release:order:*", "&anteroom:client:*",
		"+psubscribe", "+subscribe", "+unsubscribe", "+ping", "+hello").Err())
	for _, pattern := range []string{"order:4*", "*"} {
		var out, errs screen.Screen
		if code := run(t.Context(), []string{"watch", "--redis", "redis://op:pw@" + s.Addr(), pattern}, nil, &out, &errs); code != exitRefused {
			t.Errorf("%s: exit status %d, %q", pattern, code, errs.String())
		}
	}
	w := &watching{t: t, status: make(chan int, 1)}
	w.begin(func(ctx context.Context) int {
		return run(ctx, []string{"watch", "--redis", "redis://op:pw@" + s.Addr(), "order:*"}, nil, &w.out, &w.errs)
	})
	w.await(&w.errs, "watching", 1)
	w.cancel()
	w.ends(0)
}

// A permission revoked later ends it too: a retry would be in vain.
func TestWatch_RefusedLater(t *testing.T) {
	s := testredis.Start(t)
	rdb := s.Client(t)
	must(t, rdb.Do(t.Context(), "acl", "setuser", "op", "on", ">pw", "~*", "&*", "+@all").Err())
	w := &watching{t: t, status: make(chan int, 1)}
	w.begin(func(ctx context.Context) int {
		return run(ctx, []string{"watch", "--redis", "redis://op:pw@" + s.Addr()}, nil, &w.out, &w.errs)
	})
	w.await(&w.errs, "watching", 1)
	must(t, rdb.Do(t.Context(), "acl", "setuser", "op", "-psubscribe").Err())
	must(t, rdb.Do(t.Context(), "client", "kill", "user", "op").Err())
	w.ends(exitRefused)
	if !strings.Contains(w.errs.String(), "redis refuses: NOPERM") {
		t.Errorf("%q", w.errs.String())
	}
}

// --for ends it, counted from when it listens. That is a failure only if --count asked for more, and never a lost
// connection.
func TestWatch_For(t *testing.T) {
	s := testredis.Start(t)
	for status, args := range [][]string{0: {"watch", "--for", "300ms"}, exitNone: {"watch", "--for", "300ms", "--count", "1"}} {
		code, out, errs := tool(t, s, args...)
		if code != status || out != "" || errs != "anteroom: watching lock:release:*\n" {
			t.Errorf("%q: exit status %d, %q, %q", args, code, out, errs)
		}
	}
}

// The end of --for does not turn a server that never answered into a success.
func TestWatch_ForOfASilentServer(t *testing.T) {
	s := testredis.Start(t)
	s.Pause()
	defer s.Resume()
	var out, errs bytes.Buffer
	args := []string{"watch", "--redis", s.URL() + "?read_timeout=200ms", "--for", "10ms"}
	if code := run(t.Context(), args, nil, &out, &errs); code != exitUnavailable || !strings.Contains(errs.String(), "does not answer") {
		t.Errorf("exit status %d, %q, %q", code, out.String(), errs.String())
	}
}

// A lost server is reported, and heard again when it is back.
func TestWatch_ConnectsAgain(t *testing.T) {
	s := testredis.Start(t)
	w := watch(t, s, "--json", "--count", "1")
	s.Kill()
	w.await(&w.errs, "the connection is lost (", 1)
	s.Restart()
	w.await(&w.errs, "again after ", 1)
	must(t, s.Client(t).Publish(t.Context(), "lock:release:k", `{"lockKey":"k","releaseTime":1,"holder":"h"}`).Err())
	w.ends(0)
	var events []string
	for line := range strings.Lines(w.out.String()) {
		var e eventJSON
		must(t, json.Unmarshal([]byte(line), &struct{ Event *string }{&e.Event}))
		events = append(events, e.Event)
	}
	if got := strings.Join(events, " "); got != "subscribed disconnected subscribed release" {
		t.Errorf("%s: %q", got, w.out.String())
	}
}

// A connection that stays open but delivers nothing is given up.
func TestWatch_NoticesSilence(t *testing.T) {
	s := testredis.Start(t)
	w := &watching{t: t, status: make(chan int, 1)}
	rdb := s.Client(t)
	l := &listener{
		rdb: rdb, patterns: []string{"lock:release:*"}, ping: 50 * time.Millisecond, patience: time.Second,
		report: &reporter{out: &w.out, errs: &w.errs, most: 1},
	}
	w.begin(func(ctx context.Context) int {
		if err := l.run(ctx); err != errEnough {
			return exitFailed
		}
		return 0
	})
	w.await(&w.errs, "watching ", 1)
	s.Pause()
	w.await(&w.errs, "no sign of life from Redis for 1s", 1)
	s.Resume()
	w.await(&w.errs, "again after", 1)
	// If the machine stalls for a second, the connection may be given up once more, and a message be lost.
	for end := time.Now().Add(soon); len(w.status) == 0 && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		must(t, rdb.Publish(t.Context(), "lock:release:k", "no JSON").Err())
	}
	w.ends(0)
}

// standstill is a reader of the output who pauses before each line.
type standstill struct {
	io.Writer
	d time.Duration
}

func (s standstill) Write(p []byte) (int, error) {
	time.Sleep(s.d)
	return s.Writer.Write(p)
}

// A reader of the output that pauses for longer than Redis may be silent loses nothing.
func TestWatch_AReaderThatStops(t *testing.T) {
	s := testredis.Start(t)
	w := &watching{t: t, status: make(chan int, 1)}
	patience := pace.Scale(400 * time.Millisecond)
	l := &listener{
		rdb: s.Client(t), patterns: []string{"lock:release:*"}, ping: 20 * time.Millisecond, patience: patience,
		report: &reporter{out: standstill{&w.out, 2 * patience}, errs: &w.errs, most: 3},
	}
	w.begin(func(ctx context.Context) int {
		if err := l.run(ctx); err != errEnough {
			return exitFailed
		}
		return 0
	})
	w.await(&w.errs, "watching ", 1)
	for _, key := range []string{"a", "b", "c"} {
		must(t, s.Client(t).Publish(t.Context(), "lock:release:"+key, "no JSON").Err())
	}
	w.ends(0)
	if said := w.errs.String(); strings.Contains(said, "lost") {
		t.Errorf("it said %q", said)
	}
}

// An interrupt, as ^C sends it to a process of its own, and the signal of supervisors.
func TestWatch_SignalsEndIt(t *testing.T) {
	s := testredis.Start(t)
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		cmd := exec.Command(os.Args[0], "watch")
		cmd.Env = append(os.Environ(), asCommand+"=1", "GORACE=atexit_sleep_ms=0", redisVariable+"="+s.URL())
		var out bytes.Buffer
		var errs screen.Screen
		cmd.Stdout, cmd.Stderr = &out, &errs
		started := make(chan struct{})
		errs.On("watching", func(string) {
			<-started
			_ = cmd.Process.Signal(sig)
		})
		must(t, cmd.Start())
		close(started)
		if err := cmd.Wait(); err != nil || out.Len() != 0 {
			t.Errorf("%v: %v, %q, %q", sig, err, out.String(), errs.String())
		}
	}
}

// A failure to write ends it, so that it does not outlive its reader.
func TestWatch_AFullDiskEndsIt(t *testing.T) {
	s := testredis.Start(t)
	var errs screen.Screen
	errs.On("watching", func(string) {
		// Not from here: the listener waits for this function.
		go s.Client(t).Publish(context.Background(), "lock:release:k", "no JSON")
	})
	if code := run(t.Context(), []string{"watch", "--redis", s.URL()}, nil, full{}, &errs); code != exitOutput {
		t.Errorf("exit status %d, %q", code, errs.String())
	}
}
