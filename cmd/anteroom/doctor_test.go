package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/testredis"
)

var factLine = regexp.MustCompile(`^(ok|warning|problem) +([a-z]+(?: [a-z]+)?)  +(.+)\n$`)

// facts runs doctor and returns its lines by name, as "level: text".
func facts(t *testing.T, status int, args ...string) map[string]string {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(t.Context(), append([]string{"doctor"}, args...), nil, &out, &errs)
	if code != status || errs.Len() != 0 {
		t.Errorf("%q: exit status %d, want %d; it said %q", args, code, status, errs.String())
	}
	found := map[string]string{}
	for line := range strings.Lines(out.String()) {
		m := factLine.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("the line %q", line)
			continue
		}
		found[m[2]] += m[1] + ": " + m[3]
	}
	return found
}

// has checks that these facts begin so and contain the words after "…".
func has(t *testing.T, found map[string]string, want map[string]string) {
	t.Helper()
	for name, text := range want {
		begin, words, _ := strings.Cut(text, "…")
		if !strings.HasPrefix(found[name], begin) || !strings.Contains(found[name], words) {
			t.Errorf("%s is %q, want %q", name, found[name], text)
		}
	}
}

// A server as docs/operations.md wants it has no problem, by a URL or by --redis, and doctor leaves nothing behind.
func TestDoctor_Healthy(t *testing.T) {
	s := testredis.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	for _, args := range [][]string{{s.URL()}, {"--redis", s.URL()}, {"--redis", "redis://127.0.0.1:1", s.URL(), "--lock", "order:0", "--lock", "invoice:0"}} {
		found := facts(t, 0, args...)
		has(t, found, map[string]string{
			"round trip": "…: median ", "clock": "ok: ", "server": "ok: ", "eviction": "ok: noeviction", "persistence": "ok: appendfsync always",
			"replicas": "ok: none", "locks": "ok: ",
		})
		if len(found) != 7 {
			t.Errorf("%q", found)
		}
	}
	if n := s.Client(t).DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}

// Each setting that harms locks is found, with its remedy, and only a problem is a failure.
func TestDoctor_Findings(t *testing.T) {
	for _, c := range []struct {
		args   []string
		status int
		want   map[string]string
	}{
		{nil, 0, map[string]string{"persistence": "warning: appendonly no…keep a stopped Redis down"}},
		{[]string{"--maxmemory-policy", "volatile-lru"}, 0, map[string]string{"eviction": "warning: volatile-lru…set maxmemory-policy noeviction"}},
		{[]string{"--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"}, exitNone, map[string]string{"eviction": "problem: allkeys-lru…set maxmemory-policy noeviction"}},
		{[]string{"--maxmemory", "1"}, exitNone, map[string]string{"eviction": "warning: noeviction…full", "locks": "problem: …OOM"}},
		{[]string{"--appendonly", "yes", "--appendfsync", "everysec"}, 0, map[string]string{"persistence": "warning: appendfsync everysec…set appendonly yes"}},
		{[]string{"--requirepass", "pw"}, 0, map[string]string{"locks": "ok: "}},
	} {
		s := testredis.Start(t, c.args...)
		has(t, facts(t, c.status, "redis://:pw@"+s.Addr()), c.want)
	}
}

// A replica grants no locks, and a failover to one loses some.
func TestDoctor_Replicas(t *testing.T) {
	master := testredis.Start(t, "--repl-diskless-sync-delay", "0")
	host, port, _ := strings.Cut(master.Addr(), ":")
	replica := testredis.Start(t, "--replicaof", host, port)
	for end := time.Now().Add(soon); !strings.Contains(master.Client(t).Info(t.Context(), "replication").Val(), "state=online"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the replica does not come")
		}
	}
	has(t, facts(t, 0, master.URL()), map[string]string{"replicas": "warning: 1: a failover loses…set min-replicas-to-write 1"})
	has(t, facts(t, exitNone, replica.URL()), map[string]string{"replicas": "problem: this server is a replica", "locks": "problem: …READONLY"})
	must(t, master.Client(t).ConfigSet(t.Context(), "min-replicas-to-write", "1").Err())
	has(t, facts(t, 0, master.URL()), map[string]string{"replicas": "ok: 1: a failover loses…LockConfig.Replicas"})
}

// Behind Sentinels the master is examined. A Sentinel itself is recognized.
func TestDoctor_Sentinel_Lab(t *testing.T) {
	s := testredis.StartSentinel(t)
	has(t, facts(t, 0, s.URL()), map[string]string{"server": "ok: ", "replicas": "warning: 2: a failover loses", "locks": "ok: "})
	one, _, _ := strings.Cut(strings.TrimPrefix(s.URL(), "redis+sentinel://"), ",")
	found := facts(t, exitNone, "redis://"+one)
	if has(t, found, map[string]string{"locks": "problem: " + one + " is a Sentinel…redis+sentinel://"}); found["eviction"] != "" {
		t.Errorf("%q", found)
	}
}

// What the user may not ask is said and is no failure; what it lacks for locks is named.
func TestDoctor_Permissions(t *testing.T) {
	s := testredis.Start(t, "--appendonly", "yes")
	hset := "problem: …+hset"
	if !testredis.AtLeast("7.0") { // which names no command
		hset = "problem: …lacks a permission"
	}
	for _, c := range []struct {
		rules  string
		status int
		locks  []string
		want   map[string]string
	}{
		{"~* &* +@all -config", 0, nil, map[string]string{"persistence": "warning: appendonly yes; CONFIG GET is not permitted: ask your provider", "locks": "ok: "}},
		{"~* &* +@all -info -time", exitNone, nil, map[string]string{"server": "warning: INFO is not permitted…ask your provider", "locks": "problem: …time"}},
		{"~* &* +@all -hset", exitNone, nil, map[string]string{"locks": hset}},
		{"~order:* ~anteroom:* &* +@all", 0, []string{"--lock=order:0"}, map[string]string{"locks": "ok: "}},
		{"~order:* ~anteroom:* &* +@all", exitNone, []string{"--lock=order:0", "--lock=invoice:0"}, map[string]string{"locks": "problem: …invoice:0"}},
	} {
		must(t, s.Client(t).Do(t.Context(), "acl", "deluser", "app").Err())
		rule := []any{"acl", "setuser", "app", "on", ">pw"}
		for word := range strings.FieldsSeq(c.rules) {
			rule = append(rule, word)
		}
		must(t, s.Client(t).Do(t.Context(), rule...).Err())
		found := facts(t, c.status, append([]string{"redis://app:pw@" + s.Addr()}, c.locks...)...)
		has(t, found, c.want)
	}
}

// Every master of a Cluster has its lines, and a URL that names one node is reported.
func TestDoctor_Cluster_Lab(t *testing.T) {
	c := testredis.StartCluster(t, 2, 0)
	found := facts(t, 0, c.URL())
	for _, node := range c.Nodes() {
		if !strings.Contains(found["master"], "ok: "+node.Addr()) {
			t.Errorf("no %s in %q", node.Addr(), found["master"])
		}
	}
	if strings.Count(found["eviction"], "ok: ") != 2 || !strings.HasPrefix(found["locks"], "ok: ") {
		t.Errorf("%q", found)
	}
	found = facts(t, exitNone, c.Nodes()[0].URL(), "--lock={a}", "--lock={b}", "--lock={c}", "--lock={d}")
	has(t, found, map[string]string{"server": "warning: …redis+cluster", "locks": "problem: …MOVED"})
}

// A Redis that does not answer, or refuses, ends doctor as it ends the other commands.
func TestDoctor_NoAnswer(t *testing.T) {
	paused := testredis.Start(t)
	paused.Pause()
	defer paused.Resume()
	for _, c := range []struct {
		args   []string
		status int
		words  string
	}{
		{[]string{"redis://127.0.0.1:1"}, exitUnavailable, "connection refused"},
		{[]string{"--timeout", "0.1", paused.URL()}, exitUnavailable, "does not answer"},
		{[]string{"redis://nobody:wrong@" + testredis.Start(t).Addr()}, exitRefused, "WRONGPASS"},
		{[]string{"nonsense"}, exitUsage, "must begin with"},
		{[]string{"redis://127.0.0.1:1", "order:0"}, exitUsage, "usage: anteroom doctor [flags] [URL]"},
	} {
		var out, errs bytes.Buffer
		code := run(t.Context(), append([]string{"doctor"}, c.args...), nil, &out, &errs)
		if code != c.status || out.Len() != 0 || !strings.Contains(errs.String(), c.words) {
			t.Errorf("%q: exit status %d, %q, %q", c.args, code, out.String(), errs.String())
		}
	}
}

// What no server of a test can be: old, slow, or wrong about the time; and a server of a service that hides a setting.
func TestDoctor_Facts(t *testing.T) {
	fact := func(level, name, text string) string { return level + ": " + name + ": " + text }
	for got, want := range map[string]string{
		fact(serverFact(map[string]string{"redis_version": "6.0.16"}, false)):                           "problem: server: Redis 6.0.16 is too old",
		fact(serverFact(map[string]string{"redis_version": "6.2.0"}, false)):                            "ok: server: Redis 6.2.0",
		fact(serverFact(map[string]string{"redis_version": "10.0.0"}, false)):                           "ok: server: Redis 10.0.0",
		fact(serverFact(map[string]string{"redis_version": "7.2.4", "valkey_version": "7.2.5"}, false)): "problem: server: Valkey 7.2.5",
		fact(serverFact(map[string]string{"redis_version": "7.2.4", "valkey_version": "8.1.0"}, false)): "ok: server: Valkey 8.1.0",
		fact(serverFact(map[string]string{"redis_version": "7.2.4", "redis_mode": "cluster"}, false)):   "warning: server: Redis 7.2.4 in a Cluster",
		fact(serverFact(map[string]string{"valkey_version": "9.0.0", "server_mode": "cluster"}, false)): "warning: server: Valkey 9.0.0 in a Cluster",
		fact(serverFact(map[string]string{"valkey_version": "9.0.0", "server_mode": "cluster"}, true)):  "ok: server: Valkey 9.0.0",
		fact(evictionFact(nil)):                                                                "warning: eviction: the server does not name",
		fact(clockFact(2 * time.Second)):                                                       "warning: clock: 2s ahead",
		fact(clockFact(-time.Hour)):                                                            "warning: clock: 1h0m0s behind",
		fact(clockFact(-5 * time.Millisecond)):                                                 "ok: clock: 5ms behind",
		fact(roundTripFact(time.Millisecond, time.Second)):                                     "warning: round trip: median 1ms, slowest 1s",
		fact(roundTripFact(time.Millisecond, time.Millisecond)):                                "ok: round trip: median 1ms",
		fact(replicasFact(map[string]string{"role": "master", "connected_slaves": "1"}, true)): "ok: replicas: 1",
	} {
		if !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
