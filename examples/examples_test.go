//go:build unix

// Package examples runs the programs in its folders as their users would: as processes, beside a real server.
package examples

import (
	"database/sql"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	_ "modernc.org/sqlite"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
)

func TestMutex(t *testing.T) {
	s, file := testredis.Start(t), filepath.Join(t.TempDir(), "counter.txt")
	var all []*program
	for range 3 {
		all = append(all, start(t, s, "mutex", "-file", file, "-n", "100"))
	}
	for _, p := range all {
		if status, text := p.exits(); status != 0 {
			t.Errorf("status %d: %s", status, text)
		}
	}
	if text, err := os.ReadFile(file); string(text) != "300\n" {
		t.Errorf("the number is %q (%v), want 300", text, err)
	}
}

func TestCron(t *testing.T) {
	s := testredis.Start(t)
	ran, left := 0, 0
	var all []*program
	for range 4 {
		all = append(all, start(t, s, "cron", "echo", "the job"))
	}
	for _, p := range all {
		status, text := p.exits()
		if status != 0 {
			t.Errorf("status %d: %s", status, text)
		}
		ran += strings.Count(text, "the job\n")
		left += strings.Count(text, "another machine")
	}
	if ran != 1 || left != 3 {
		t.Errorf("it ran %d times, and %d machines left it to another", ran, left)
	}
}

// Each payment is in the stream three times in a row, so that two consumers meet at it.
func TestConsumer(t *testing.T) {
	s, file := testredis.Start(t), filepath.Join(t.TempDir(), "payments.db")
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr()})
	defer rdb.Close()
	for id := range 10 {
		for range 3 {
			add := &redis.XAddArgs{Stream: "payments", Values: []any{"id", id, "account", "alice", "cents", 100}}
			if err := rdb.XAdd(t.Context(), add).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	both := []*program{start(t, s, "consumer", "-db", file), start(t, s, "consumer", "-db", file)}
	db, err := sql.Open("sqlite", file+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var done, cents int
	for limit := time.Now().Add(pace.Hang); done < 10; time.Sleep(20 * time.Millisecond) {
		_ = db.QueryRow(`SELECT count(*) FROM messages WHERE done`).Scan(&done) // there is no table at first
		if time.Now().After(limit) {
			t.Fatalf("%d of 10 are done", done)
		}
	}
	pending := int64(1) // the repetitions are acknowledged, too
	for limit := time.Now().Add(pace.Hang); pending > 0; time.Sleep(20 * time.Millisecond) {
		groups, err := rdb.XInfoGroups(t.Context(), "payments").Result()
		if err != nil {
			t.Fatal(err)
		}
		if pending = groups[0].Pending + groups[0].Lag; time.Now().After(limit) {
			t.Errorf("%d messages are not acknowledged", pending)
			break
		}
	}
	if err := db.QueryRow(`SELECT cents FROM accounts WHERE name = 'alice'`).Scan(&cents); cents != 1000 {
		t.Errorf("alice has %d cents (%v), want 1000", cents, err)
	}
	worked := 0
	for _, p := range both {
		p.signal(syscall.SIGTERM)
		status, text := p.exits()
		if status != 0 {
			t.Errorf("status %d after SIGTERM: %s", status, text)
		}
		worked += strings.Count(text, "working on payment")
	}
	if worked != 10 { // the done-marker alone would let both work, and refuse one of them at the end
		t.Errorf("the work on 10 payments was done %d times", worked)
	}
}

func TestLeader(t *testing.T) {
	s := testredis.Start(t)
	a := start(t, s, "leader", "-lease", "1s")
	a.prints("leading")
	b := start(t, s, "leader", "-lease", "1s")
	b.prints("standing by")
	began := time.Now()
	a.signal(syscall.SIGKILL)
	b.prints("leading")
	if took := time.Since(began); !pace.Within(took, 10*time.Second) {
		t.Errorf("a leader that was killed was succeeded after %v", took)
	}
	c := start(t, s, "leader", "-lease", "1h")
	c.prints("standing by")
	time.Sleep(200 * time.Millisecond) // it waits in line by now
	began = time.Now()
	b.signal(syscall.SIGUSR1) // it steps down
	b.prints("no longer leading")
	c.prints("leading")
	c.signal(syscall.SIGTERM)
	b.prints("leading")
	if took := time.Since(began); took > pace.Hang {
		t.Errorf("two changes of the leader took %v, and a lease of an hour must not", took)
	}
	if status, text := c.exits(); status != 0 {
		t.Errorf("status %d after SIGTERM: %s", status, text)
	}
}

func TestHTTP(t *testing.T) {
	s := testredis.Start(t)
	work := min(pace.Scale(2*time.Second), 10*time.Second) // beside it another request has 500 ms, and what the machine adds
	url := "http://" + start(t, s, "http", "-listen", "127.0.0.1:0", "-work", work.String()).prints("serving on ") + "/checkout?user="
	first := make(chan int)
	go func() { first <- answered(t, url+"ann") }()
	for rdb := redis.NewClient(&redis.Options{Addr: s.Addr()}); ; time.Sleep(10 * time.Millisecond) {
		if n, err := rdb.Exists(t.Context(), "checkout:ann").Result(); n == 1 || err != nil {
			_ = rdb.Close()
			break
		}
	}
	if got := answered(t, url+"ann"); got != http.StatusConflict {
		t.Errorf("a second request of the user is answered %d, want 409", got)
	}
	if got := <-first; got != http.StatusOK {
		t.Errorf("the first request is answered %d, want 200", got)
	}
	s.Kill()
	if got := post(t, url+"bob"); got != http.StatusServiceUnavailable {
		t.Errorf("without Redis it answers %d, want 503", got)
	}
}

// answered posts until the answer is not 503: on a loaded machine Redis may answer too late.
func answered(t *testing.T, url string) int {
	for end := time.Now().Add(pace.Hang); ; {
		if got := post(t, url); got != http.StatusServiceUnavailable || time.Now().After(end) {
			return got
		}
	}
}

func post(t *testing.T, url string) int {
	client := http.Client{Timeout: pace.Hang, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Post(url, "", nil)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer answer.Body.Close()
	return answer.StatusCode
}

// A writer is stopped for longer than its lease, between its check and its write.
func TestSQL(t *testing.T) {
	s, file := testredis.Start(t), filepath.Join(t.TempDir(), "account.db")
	slow := start(t, s, "sql", "-db", file, "-owner", "slow", "-lease", "1s", "-pause", "2s") // time enough to stop it
	slow.prints("holding")
	slow.signal(syscall.SIGSTOP)
	fast := start(t, s, "sql", "-db", file, "-owner", "fast", "-lease", "1m")
	fast.prints("written")
	slow.signal(syscall.SIGCONT)
	if status, text := slow.exits(); status == 0 || !strings.Contains(text, "refused") || !strings.Contains(text, "lock lost") {
		t.Errorf("the slow writer ended with %d: %s", status, text)
	}
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var owner string
	if err := db.QueryRow(`SELECT owner FROM account`).Scan(&owner); owner != "fast" {
		t.Errorf("the owner is %q (%v), want fast", owner, err)
	}
}

func TestObservability(t *testing.T) {
	s := testredis.Start(t)
	p := start(t, s, "observability", "-listen", "127.0.0.1:0")
	url := "http://" + p.prints("serving on ")
	p.prints(`{"Name":"anteroom.acquire"`)
	for path, want := range map[string]string{
		"/metrics":                     `anteroom_acquire_attempts_total{class="example",outcome="acquired",via="redis"}`,
		"/debug/anteroom/?format=json": `"example"`,
	} {
		if text := get(t, url+path); !strings.Contains(text, want) {
			t.Errorf("%s does not have %q:\n%s", path, want, text)
		}
	}
	p.signal(syscall.SIGTERM)
	if status, text := p.exits(); status != 0 {
		t.Errorf("status %d: %s", status, text)
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	client := http.Client{Timeout: pace.Hang, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
