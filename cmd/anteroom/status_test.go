package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
)

// answer is a line of `anteroom status --json` as a program parses it.
type answer struct {
	Key      string
	Base64   []byte `json:"key_base64"`
	State    string
	Kind     *string
	Used     *int64
	Capacity *int64
	Holders  []struct {
		Holder, Client, Host string
		Pid                  int
		Count                int64
		Note                 string
	}
	TTL         *int64 `json:"ttl_ms"`
	Token       *int64
	Subscribers *int
	InLine      *int `json:"in_line"`
	First       *string
	Open        *int64 `json:"open_ms"`
	Error       string
}

// answersTo runs `anteroom status --json` and checks that exactly the documented fields are printed, all of them for
// every key.
func answersTo(t *testing.T, s *testredis.Server, status int, keys ...string) (answers []answer, out string) {
	t.Helper()
	code, out, errs := tool(t, s, append([]string{"status", "--json"}, keys...)...)
	if code != status || strings.Count(out, "\n") != len(keys) {
		t.Fatalf("%q: exit status %d, %q, %q", keys, code, out, errs)
	}
	for line := range strings.Lines(out) {
		var all map[string]any
		var a answer
		d := json.NewDecoder(strings.NewReader(line))
		d.DisallowUnknownFields()
		if err := d.Decode(&a); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		must(t, json.Unmarshal([]byte(line), &all))
		for _, name := range []string{"key", "state", "kind", "used", "capacity", "holders", "ttl_ms", "token", "subscribers", "in_line", "first", "open_ms"} {
			if _, there := all[name]; !there {
				t.Errorf("%q has no %s", line, name)
			}
		}
		answers = append(answers, a)
	}
	return answers, out
}

// awaitLine waits until n clients wait in line for key.
func awaitLine(t *testing.T, m *anteroom.Manager, key string, n int) {
	t.Helper()
	for end := time.Now().Add(soon); ; time.Sleep(5 * time.Millisecond) {
		info, err := m.Inspect(t.Context(), key)
		if err == nil && info.InLine == n {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("not %d wait in line for %q: %+v, %v", n, key, info, err)
		}
	}
}

// awaitSubscribers waits until n connections listen for the release of key.
func awaitSubscribers(t *testing.T, s *testredis.Server, key string, n int64) {
	t.Helper()
	rdb := s.Client(t)
	for end := time.Now().Add(soon); ; time.Sleep(5 * time.Millisecond) {
		got, err := rdb.PubSubNumSub(t.Context(), "lock:release:"+key).Result()
		if err == nil && got["lock:release:"+key] == n {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("not %d listen for %q: %v, %v", n, key, got, err)
		}
	}
}

// A held lock: holder, host and process, time to live, token, and number of subscribers.
func TestStatus_HeldAndWaitedFor(t *testing.T) {
	s := testredis.Start(t)
	m, _ := client(t, s, anteroom.Config{})
	other, _ := client(t, s, anteroom.Config{})
	mu, err := m.NewMutex(anteroom.LockConfig{Key: "order:42", Fencing: true, LeaseTime: time.Minute})
	must(t, err)
	h := hold(t, mu)
	ctx, cancel := context.WithCancel(t.Context())
	waited := make(chan error, 1)
	go func() {
		_, err := other.Mutex("order:42").Acquire(ctx)
		waited <- err
	}()
	awaitLine(t, m, "order:42", 1)
	r := s.Client(t).Subscribe(t.Context(), "lock:release:order:42") // a client of another kind
	defer r.Close()
	awaitSubscribers(t, s, "order:42", 1)

	list, _ := answersTo(t, s, 0, "order:42", "free")
	a := list[0]
	token, _ := h.Token()
	if a.Key != "order:42" || a.State != "held" || len(a.Holders) != 1 || a.Token == nil || *a.Token < token || a.Subscribers == nil || *a.Subscribers != 1 ||
		a.InLine == nil || *a.InLine != 1 || a.First == nil || *a.First != other.ClientID() || a.Open != nil {
		t.Fatalf("%+v", a)
	}
	if who := a.Holders[0]; who.Holder != h.Holder() || who.Client != m.ClientID() || !strings.HasPrefix(m.ClientID(), who.Host+"-") || who.Host == "" || who.Pid != os.Getpid() || who.Count != 1 {
		t.Errorf("%+v, want %s", who, h.Holder())
	}
	if a.TTL == nil || *a.TTL <= 0 || *a.TTL > time.Minute.Milliseconds() {
		t.Errorf("TTL %v ms", a.TTL)
	}
	if f := list[1]; f.State != "free" || len(f.Holders) != 0 || f.TTL != nil || f.Token != nil || f.Subscribers == nil || *f.Subscribers != 0 || f.InLine == nil || *f.InLine != 0 || f.First != nil {
		t.Errorf("%+v", f)
	}
	code, out, errs := tool(t, s, "status", "order:42", "free")
	rows := strings.Split(out, "\n")
	if code != 0 || errs != "" || len(rows) != 4 || strings.Join(strings.Fields(rows[0]), " ") != "KEY STATE KIND USED HOST PID TTL TOKEN LINE FIRST SUBSCRIBERS HOLDER UNITS NOTE" {
		t.Fatalf("exit status %d, %q, %q", code, out, errs)
	}
	if f := strings.Fields(rows[1]); len(f) != 14 || f[13] != "-" || f[0] != "order:42" || f[1] != "held" || f[2] != "mutex" || f[3] != "-" || f[4] != a.Holders[0].Host ||
		f[5] != fmt.Sprint(os.Getpid()) || f[7] != fmt.Sprint(*a.Token) || f[8] != "1" || f[9] != other.ClientID() || f[10] != "1" || f[11] != h.Holder() || f[12] != "-" {
		t.Errorf("%q", rows[1])
	} else if left, err := time.ParseDuration(f[6]); err != nil || left <= 0 || left > time.Minute {
		t.Errorf("TTL %q: %v", f[6], err)
	}
	if got := strings.Join(strings.Fields(rows[2]), " "); got != "free free - - - - - - 0 - 0 - - -" {
		t.Errorf("%q", rows[2])
	}
	cancel()
	<-waited
	must(t, h.Release(t.Context()))
}

// Fields written by others, and a lock kept by MinHold.
func TestStatus_OddKeys(t *testing.T) {
	s := testredis.Start(t)
	rdb := s.Client(t)
	m, _ := client(t, s, anteroom.Config{ClientID: "nightly"})
	mu, err := m.NewMutex(anteroom.LockConfig{Key: "kept", MinHold: time.Hour})
	must(t, err)
	must(t, hold(t, mu).Release(t.Context()))
	must(t, rdb.HSet(t.Context(), "two", "server1-thread-1", 2, "web-7-31337-9f3c2a1b00de:1763776900000017", 1).Err())
	must(t, rdb.Set(t.Context(), "text", "v", 0).Err())
	list, _ := answersTo(t, s, exitRefused, "kept", "two", "text")
	if k := list[0]; k.State != "kept" || len(k.Holders) != 1 || k.Holders[0].Client != m.ClientID() || k.Holders[0].Host != "" || k.Holders[0].Pid != 0 || k.TTL == nil || k.Error != "" {
		t.Errorf("%+v", k)
	}
	if w := list[1]; w.State != "held" || len(w.Holders) != 2 || w.TTL != nil || w.Holders[0].Client != "" || w.Holders[0].Count != 2 || w.Holders[1].Pid != 31337 {
		t.Errorf("%+v", w)
	}
	if x := list[2]; x.State != "refused" || len(x.Holders) != 0 || x.TTL != nil || x.Subscribers != nil || x.InLine != nil || !strings.Contains(x.Error, "of type string, not a lock") {
		t.Errorf("%+v", x)
	}
	must(t, rdb.Set(t.Context(), "more text", "v", 0).Err())
	const hint = " (a lock of redsync, redislock or rueidislock? See docs/migrating.md)\n"
	if _, _, errs := tool(t, s, "status", "text", "more text"); errs != "anteroom: text holds a value of type string, not a lock; it was left alone"+hint+
		"anteroom: \"more text\" holds a value of type string, not a lock; it was left alone"+hint {
		t.Errorf("two errors are not two lines of one kind: %q", errs)
	}
	code, out, errs := tool(t, s, "status", "two", "text", "kept")
	if code != exitRefused || strings.Count(out, "\n") != 5 || strings.Count(out, "\ntwo ") != 2 || !strings.Contains(out, "never") ||
		!strings.Contains(errs, "two: has 2 fields") || !strings.Contains(errs, "two: has no time to live") || !strings.Contains(errs, "not a lock") {
		t.Errorf("exit status %d, %q, %q", code, out, errs)
	}
}

func TestStatus_Quiet(t *testing.T) {
	s := testredis.Start(t)
	must(t, s.Client(t).HSet(t.Context(), "held", "me:1763776900000017", 1).Err())
	must(t, s.Client(t).HSet(t.Context(), "kept", "me:1763776900000017:kept", 1).Err())
	for _, c := range []struct {
		status int
		keys   []string
	}{
		{0, []string{"held"}}, {0, []string{"kept"}}, {0, []string{"free", "held"}}, {exitNone, []string{"free"}}, {exitNone, []string{"free", "idle"}},
	} {
		if code, out, errs := tool(t, s, append([]string{"status", "-q"}, c.keys...)...); code != c.status || out+errs != "" {
			t.Errorf("%q: exit status %d, %q, %q", c.keys, code, out, errs)
		}
	}
}

// Names of keys and of holders that contain terminal commands are printed quoted, and complete.
func TestStatus_O1_HostileNames(t *testing.T) {
	s := testredis.Start(t)
	rdb := s.Client(t)
	var keys []string
	for _, name := range hostile {
		if name != "" {
			keys = append(keys, name)
			must(t, rdb.HSet(t.Context(), name, name, 1).Err())
		}
	}
	list, out := answersTo(t, s, 0, append([]string{}, keys[:len(keys)-1]...)...)
	printable(t, out)
	for i, a := range list {
		got := a.Key
		if a.Base64 != nil {
			got = string(a.Base64)
		}
		if got != keys[i] || len(a.Holders) != 1 {
			t.Errorf("%q is shown as %+v", keys[i], a)
		}
	}
	code, out, errs := tool(t, s, append([]string{"status", "--"}, keys...)...)
	if code != 0 || strings.Count(out, "\n") != len(keys)+1 {
		t.Errorf("exit status %d, %q", code, out)
	}
	printable(t, out+errs)
}
