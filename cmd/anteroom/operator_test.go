package main

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// soon bounds what must happen.
const soon = pace.Hang

// tool runs one command line against a server, without a terminal.
func tool(t *testing.T, s *testredis.Server, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), append([]string{"--redis", s.URL()}, args...), nil, &o, &e)
	return code, o.String(), e.String()
}

// client returns a Manager on a server, closed with the test, and a channel of its losses.
func client(t *testing.T, s *testredis.Server, cfg anteroom.Config) (*anteroom.Manager, <-chan observe.Event) {
	t.Helper()
	losses := make(chan observe.Event, 16)
	cfg.Logger = slog.New(slog.DiscardHandler)
	cfg.OnEvent = func(e observe.Event) {
		if e.Kind == observe.EventLost {
			losses <- e
		}
	}
	m, err := anteroom.NewManager(s.Client(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		defer cancel()
		if err := m.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return m, losses
}

// hold acquires a lock; the caller releases it.
func hold(t *testing.T, mu *anteroom.Mutex) *anteroom.Hold {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	h, err := mu.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestHolderOf(t *testing.T) {
	for _, c := range []struct{ field, client, host, pid string }{
		{"web-7-31337-9f3c2a1b00de:1763776900000017", "web-7-31337-9f3c2a1b00de", "web-7", "31337"},
		{"web-7-31337-9f3c2a1b00de:1763776900000017:kept", "web-7-31337-9f3c2a1b00de", "web-7", "31337"},
		{"h-1-2-0123456789ab", "h-1-2-0123456789ab", "h-1", "2"}, // the client that forced a release
		{"payments:1763776900000017", "payments", "-", "-"},
		{"web-x-9f3c2a1b00de:1763776900000017", "web-x-9f3c2a1b00de", "-", "-"},
		{"web-1-9f3c2a1b00d:1763776900000017", "web-1-9f3c2a1b00d", "-", "-"},
		{"-1-9f3c2a1b00de:1763776900000017", "-1-9f3c2a1b00de", "-", "-"},
		{"web-99999999999999999999-9f3c2a1b00de:1763776900000017", "web-99999999999999999999-9f3c2a1b00de", "-", "-"},
		{"server1-thread-1", "", "-", "-"},
		{"w\x1b-1-9f3c2a1b00de:1763776900000017", "", "-", "-"},
		{"", "", "-", "-"},
	} {
		h := holderOf(c.field)
		host, pid := h.where()
		client := ""
		if h.Client != nil {
			client = *h.Client
		}
		if h.Field != c.field || client != c.client || host != c.host || pid != c.pid || h.kept != strings.HasSuffix(c.field, ":kept") {
			t.Errorf("%q: client %q, host %s, pid %s, kept %v", c.field, client, host, pid, h.kept)
		}
	}
}

// All commands of this kind report in the same way what keeps them from an answer.
func TestOperator_O3_ExitStatuses(t *testing.T) {
	s := testredis.Start(t)
	rdb := s.Client(t)
	must(t, rdb.Set(t.Context(), "text", "v", 0).Err())
	must(t, rdb.Do(t.Context(), "acl", "setuser", "nobody", "on", ">pw", "~*", "&*", "+ping", "+hello").Err())
	must(t, rdb.Do(t.Context(), "acl", "setuser", "scans", "on", ">pw", "~other:*", "&*", "+ping", "+hello", "+scan", "+hlen").Err())
	scans := "redis://scans:pw@" + s.Addr()
	refused := "redis://nobody:pw@" + s.Addr()
	wrong := "redis://nobody:wrong@" + s.Addr()
	unreachable := "redis://127.0.0.1:1"
	long := strings.Repeat("k", 70_000)
	noLock := "anteroom: text holds a value of type string, not a lock; it was left alone (a lock of redsync, redislock or rueidislock? See docs/migrating.md)\n"
	for i := range 65 {
		must(t, rdb.HSet(t.Context(), "large", i, 1).Err())
	}
	for _, c := range []struct {
		url, words string
		status     int
		args       []string
	}{
		{"", "KEY is missing", exitUsage, []string{"status"}},
		{"", "KEY is missing", exitUsage, []string{"release", "--force"}},
		{"", "give one KEY", exitUsage, []string{"release", "--force", "a", "b"}},
		{"", "is empty", exitUsage, []string{"status", "k", ""}},
		{"", "70000 bytes", exitUsage, []string{"release", "--force", "-y", long}},
		{"", "--timeout is 1ms", exitUsage, []string{"status", "--timeout", "1ms", "k"}},
		{"", "--timeout is 2m0s", exitUsage, []string{"status", "--timeout", "120", "k"}},
		{"", "\nusage: anteroom status [flags] KEY...; see anteroom status --help\n", exitUsage, []string{"status"}},
		{"", "Did you mean this?\n        status\n", exitUsage, []string{"stat"}},
		{"", "--timeout is 2m0s", exitUsage, []string{"release", "--force", "--yes", "--timeout", "2m", "k"}},
		{"", "json quiet", exitUsage, []string{"status", "--json", "--quiet", "k"}},
		{"", "--count is -1", exitUsage, []string{"watch", "--count", "-1"}},
		{"", `"--for" flag: must be a duration`, exitUsage, []string{"watch", "--for", "-1s"}},
		{"", "KEY is missing", exitUsage, []string{"watch", "--fixed"}},
		{"", "at most 1", exitUsage, []string{"watch", "a", "b"}},
		{"", "anteroom:fence:", exitUsage, []string{"watch", "--fixed", "anteroom:fence:{k}"}},
		{"", "anteroom:fence:", exitUsage, []string{"exec", "anteroom:fence:{k}", "--", "true"}},
		{"http://x", "must begin with", exitUsage, []string{"watch"}},
		{unreachable, "unavailable", exitUnavailable, []string{"status", "k"}},
		{unreachable, "unavailable", exitUnavailable, []string{"status", "-q", "k"}},
		{unreachable, "unavailable", exitUnavailable, []string{"release", "--force", "--yes", "k"}},
		{unreachable, "does not answer", exitUnavailable, []string{"watch", "--count", "1"}},
		{unreachable, "does not answer", exitUnavailable, []string{"list"}},
		{"", "--limit is 0", exitUsage, []string{"list", "-n", "0"}},
		{"", "--for is 0", exitUsage, []string{"list", "--for", "0"}},
		{"", "at most 1", exitUsage, []string{"list", "a", "b"}},
		{refused, "permission", exitRefused, []string{"status", "k"}},
		{refused, "permission", exitRefused, []string{"status", "-q", "k"}},
		{refused, "permission", exitRefused, []string{"release", "--force", "--yes", "k"}},
		{refused, "refuses", exitRefused, []string{"watch", "--count", "1"}},
		{refused, "refuses", exitRefused, []string{"list"}},
		{scans, "refuses", exitRefused, []string{"list"}},
		{wrong, "refuses", exitRefused, []string{"list"}},
		{wrong, "password is wrong", exitRefused, []string{"status", "k"}},
		{wrong, "refuses", exitRefused, []string{"watch", "--count", "1"}},
		{s.URL(), noLock, exitRefused, []string{"status", "free", "text", "free"}},
		{s.URL(), noLock, exitRefused, []string{"status", "--json", "text"}},
		{s.URL(), noLock, exitRefused, []string{"release", "--force", "--yes", "text"}},
		{s.URL(), "anteroom: large holds a hash that is no lock; it was left alone\n", exitRefused, []string{"release", "--force", "--yes", "large"}},
		{"", "anteroom:fence:", exitUsage, []string{"status", "-q", "anteroom:fence:{k}"}},
		{"", "anteroom:fence:", exitUsage, []string{"release", "--force", "--yes", "anteroom:fence:{k}"}},
	} {
		var out, errs bytes.Buffer
		args := c.args
		if c.url != "" {
			args = append(args, "--redis", c.url)
		}
		code := run(t.Context(), args, nil, &out, &errs)
		if code != c.status || !strings.Contains(errs.String(), c.words) {
			t.Errorf("%.60q on %q: exit status %d, %q, %.300q", args, c.url, code, out.String(), errs.String())
		}
		if form := strings.Count(errs.String(), "\nusage: anteroom "); form > 1 || (form == 1) != (code == exitUsage) {
			t.Errorf("%.60q: the form of the command is there %d times: %.300q", args, form, errs.String())
		}
		if said := errs.String(); strings.Contains(said, "bad configuration") || strings.Contains(said, "repeating") {
			t.Errorf("%.60q on %q: nobody has configured or repeated anything: %q", args, c.url, said)
		}
		printable(t, errs.String())
	}
	if v, err := rdb.Get(t.Context(), "text").Result(); err != nil || v != "v" {
		t.Errorf("the key that is no lock: %q, %v", v, err)
	}
}

// A server that accepts connections but never answers delays nobody beyond --timeout.
func TestOperator_ASilentServer_Lab(t *testing.T) {
	s := testredis.Start(t)
	must(t, s.Client(t).HSet(t.Context(), "k", "me:1763776900000017", 1).Err())
	s.Pause()
	defer s.Resume()
	begin := time.Now()
	for _, args := range [][]string{{"status", "k", "l", "m"}, {"release", "--force", "--yes", "k"}, {"list"}} {
		code, out, errs := tool(t, s, append(args, "--timeout", "100ms")...)
		if code != exitUnavailable || out != "" || errs == "" {
			t.Errorf("%v: exit status %d, %q, %q", args, code, out, errs)
		}
	}
	if took := time.Since(begin); took > soon {
		t.Errorf("it took %v", took)
	}
}

// gone reports whether a key does not exist.
func gone(t *testing.T, rdb *redis.Client, key string) bool {
	t.Helper()
	n, err := rdb.Exists(t.Context(), key).Result()
	must(t, err)
	return n == 0
}
