package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
)

// listed runs `anteroom list --json` and returns the keys.
func listed(t *testing.T, url string, status int, args ...string) (keys []string) {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(t.Context(), append([]string{"list", "--json", "--redis", url}, args...), nil, &out, &errs)
	if code != status {
		t.Fatalf("%q: exit status %d, want %d; it said %q", args, code, status, errs.String())
	}
	if status == 0 && errs.Len() > 0 {
		t.Errorf("%q: it said %q", args, errs.String())
	}
	for line := range strings.Lines(out.String()) {
		var a answer
		must(t, json.Unmarshal([]byte(line), &a))
		if a.State != stateHeld && a.State != stateKept && (a.State != stateString || *a.TTL <= 0) {
			t.Errorf("%+v", a)
		}
		keys = append(keys, a.Key)
	}
	return keys
}

const (
	oneOurs     = "web-7-31337-9f3c2a1b00de:1763776900000017"
	oneRedisson = "2d4f0d8e-5b64-4f6e-9d0a-9f3c2a1b00de:57"
)

// Locks of every kind are listed, as status shows them, and nothing else is.
func TestList_LocksAndNothingElse(t *testing.T) {
	s := testredis.Start(t)
	rdb, ctx := s.Client(t), t.Context()
	m, _ := client(t, s, anteroom.Config{})
	other, _ := client(t, s, anteroom.Config{ClientID: "nightly"})
	mu, err := m.NewMutex(anteroom.LockConfig{Key: "lock:ours", Fencing: true, LeaseTime: time.Hour})
	must(t, err)
	h := hold(t, mu)
	waiting, cancel := context.WithCancel(ctx)
	waited := make(chan error, 1)
	go func() {
		_, err := other.Mutex("lock:ours").Acquire(waiting)
		waited <- err
	}()
	awaitLine(t, m, "lock:ours", 1)
	kept, err := other.NewMutex(anteroom.LockConfig{Key: "lock:kept", MinHold: time.Hour})
	must(t, err)
	must(t, hold(t, kept).Release(ctx))
	for key, fields := range map[string][]any{
		"lock:redisson": {oneRedisson, 2},
		"lock:service":  {"server1-thread-12", 1},
		"lock:two":      {oneOurs, 1, oneRedisson, 1},
		"no:counter":    {"hits", 5},
		"no:basket":     {"item:5", 2, "item:7", 1},
		"no:user":       {"name", "x", "age", 7},
		"no:text":       {oneOurs, "text"},
		"no:zero":       {oneOurs, 0},
		"no:number":     {"2026-11", 5}, // without a time to live
	} {
		must(t, rdb.HSet(ctx, key, fields...).Err())
		if key != "no:number" && key != "lock:two" {
			must(t, rdb.PExpire(ctx, key, time.Hour).Err())
		}
	}
	for i := range 65 {
		must(t, rdb.HSet(ctx, "no:large", fmt.Sprint("web-7-31337-9f3c2a1b00de:", i), 1).Err())
	}
	must(t, rdb.Set(ctx, "no:string", 1, 0).Err())
	must(t, rdb.LPush(ctx, "no:list", oneOurs).Err())
	must(t, rdb.Set(ctx, "redisson_lock_token:{lock:redisson}", 7, 0).Err())
	must(t, rdb.HSet(ctx, "anteroom:fence:{other}", oneOurs, 1).Err()) // what is reserved is never a lock

	locks := []string{"lock:kept", "lock:ours", "lock:redisson", "lock:service", "lock:two"}
	if got := listed(t, s.URL(), 0); !slices.Equal(got, locks) {
		t.Errorf("%q, want %q", got, locks)
	}
	if got := listed(t, s.URL(), 0, "lock:*r*"); !slices.Equal(got, []string{"lock:ours", "lock:redisson", "lock:service"}) {
		t.Errorf("%q by a pattern", got)
	}
	if got := listed(t, s.URL(), 0, "none:*"); len(got) != 0 {
		t.Errorf("%q where nothing is", got)
	}
	if code, out, errs := tool(t, s, "list", "none *"); code != 0 || out != "" || errs != "anteroom: no locks match \"none *\"\n" {
		t.Errorf("where nothing is: exit status %d, %q, %q", code, out, errs)
	}
	code, out, errs := tool(t, s, "list", "--dialect", "redisson", "lock:redisson")
	if f := strings.Fields(out); code != 0 || len(f) != 28 || f[14] != "lock:redisson" || f[21] != "7" || f[25] != oneRedisson {
		t.Errorf("exit status %d, %q, %q", code, out, errs)
	}
	// The rows are those of status, but for what is left of the lease.
	code, out, errs = tool(t, s, "list", "lock:ours")
	_, want, _ := tool(t, s, "status", "lock:ours")
	got, expected := strings.Fields(out), strings.Fields(want)
	if code != 0 || errs != "" || len(got) != 28 || len(expected) != 28 || !slices.Equal(slices.Delete(got, 20, 21), slices.Delete(expected, 20, 21)) {
		t.Errorf("exit status %d, %q, want %q; it said %q", code, out, want, errs)
	}
	cancel()
	<-waited
	must(t, h.Release(ctx))
}

// Many keys are looked through in steps that never block the server, and what --limit and --for cut off is said.
func TestList_IsBounded(t *testing.T) {
	s := testredis.Start(t)
	rdb, ctx := s.Client(t), t.Context()
	p := rdb.Pipeline()
	for i := range 5000 {
		p.Set(ctx, fmt.Sprint("text:", i), "", 0)
	}
	for i := range 100 {
		p.HSet(ctx, fmt.Sprintf("lock:%02d", i), oneOurs, 1)
	}
	_, err := p.Exec(ctx)
	must(t, err)
	if got := listed(t, s.URL(), 0, "--limit", "100"); len(got) != 100 || !slices.IsSorted(got) || len(slices.Compact(got)) != 100 {
		t.Errorf("%d: %q", len(got), got)
	}
	if stats := s.Stats(t); stats["scan"] < 5 || stats["keys"] != 0 {
		t.Errorf("%d SCAN, %d KEYS", stats["scan"], stats["keys"])
	}
	for words, args := range map[string][]string{
		"there are more than 7 locks; --limit shows more":    {"--limit", "7"},
		"not all keys were visited within 1ns; --for gives ": {"--for", "1ns"},
	} {
		code, out, errs := tool(t, s, append([]string{"list", "--json"}, args...)...)
		if n := strings.Count(out, "\n"); code != exitNone || args[0] == "--limit" && n != 7 || !strings.Contains(errs, "the list is incomplete: "+words) {
			t.Errorf("%q: exit status %d, %d locks, %q", args, code, n, errs)
		}
	}
}

// On a Cluster all masters are looked through.
func TestList_Cluster_Lab(t *testing.T) {
	c := testredis.StartCluster(t, 3, 0, "--cluster-require-full-coverage", "no") // or all fall silent with one
	rdb, ctx := c.Client(t), t.Context()
	var want []string
	for i := range 60 {
		want = append(want, fmt.Sprintf("lock:%02d", i))
		must(t, rdb.HSet(ctx, want[i], oneRedisson, 1).Err())
		must(t, rdb.Set(ctx, fmt.Sprint("lock:text:", i), "", 0).Err())
	}
	must(t, rdb.HSet(ctx, "lock:{", oneRedisson, 1).Err()) // Redisson cannot have this name on a Cluster
	for dialect, want := range map[string][]string{"document": append(slices.Clone(want), "lock:{"), "redisson": want} {
		if got := listed(t, c.URL(), 0, "--dialect", dialect, "lock:*"); !slices.Equal(got, want) {
			t.Errorf("%s: %q", dialect, got)
		}
	}
	if got := listed(t, c.URL(), exitNone, "-n", "5"); len(got) != 5 {
		t.Errorf("%q of five", got)
	}
	c.Masters()[1].Kill()
	if got := listed(t, c.URL(), exitUnavailable, "--timeout", "10s"); len(got) == 0 || len(got) >= 60 {
		t.Errorf("%d locks, of the masters that answer", len(got))
	}
}

// Keys and holders that contain terminal commands are printed quoted.
func TestList_O1_HostileNames(t *testing.T) {
	s := testredis.Start(t)
	for _, name := range hostile {
		if name != "" {
			must(t, s.Client(t).HSet(t.Context(), name, name+"-1", 1).Err())
			must(t, s.Client(t).PExpire(t.Context(), name, time.Hour).Err())
		}
	}
	code, out, errs := tool(t, s, "list")
	if code != 0 || strings.Count(out, "\n") < 3 {
		t.Errorf("exit status %d, %q", code, out)
	}
	printable(t, out+errs)
}

// Under the smallest ACL other keys of the server are left out, and counted.
func TestList_KeysThatTheUserMayNotTouch(t *testing.T) {
	s := testredis.Start(t)
	rdb := s.Client(t)
	must(t, rdb.HSet(t.Context(), "order:1", oneOurs, 1).Err())
	must(t, rdb.HSet(t.Context(), "invoice:1", oneOurs, 1).Err())
	must(t, rdb.Set(t.Context(), "data", "x", 0).Err())
	must(t, rdb.Do(t.Context(), "ACL", "SETUSER", "few", "reset", "on", ">pw",
		"~order:*", "~anteroom:line:{order:*", "~anteroom:fence:{order:*", "&*", "+@all").Err())
	url := strings.Replace(s.URL(), "redis://", "redis://few:pw@", 1)
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"list", "--json", "--redis", url}, nil, &out, &errs)
	if code != 0 || strings.Count(out.String(), "\n") != 1 || !strings.Contains(out.String(), `"order:1"`) || !strings.Contains(errs.String(), "2 keys were left out") {
		t.Errorf("exit status %d, %q, %q", code, out.String(), errs.String())
	}
}
