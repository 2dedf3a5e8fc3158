package anteroom_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// aclBlocks returns the ACL rules of docs/operations.md: what an operator copies is what the tests run under. A comment
// begins the next block. Those that depend on the server's version are among the first ones.
func aclBlocks(t *testing.T) [][]string {
	t.Helper()
	text, err := os.ReadFile("../docs/operations.md")
	ok(t, err)
	_, rules, _ := strings.Cut(string(text), "```acl\n")
	rules, _, closed := strings.Cut(rules, "```")
	if !closed {
		t.Fatal("docs/operations.md has no block of ACL rules")
	}
	blocks := [][]string{nil}
	for line := range strings.Lines(rules) {
		if strings.HasPrefix(line, "#") {
			blocks = append(blocks, nil)
			continue
		}
		last := &blocks[len(blocks)-1]
		*last = append(*last, strings.TrimSpace(line))
	}
	if len(blocks) != 7 {
		t.Fatalf("docs/operations.md has %d ACL blocks, want the rules, those for 7.2, for 6, for Replicas, for a Cluster, and for Redisson's dialect twice", len(blocks))
	}
	switch {
	case testredis.AtLeast("7.2"):
		blocks[0] = append(blocks[0], blocks[1]...)
	case !testredis.AtLeast("7.0"):
		blocks[0] = append(blocks[0], blocks[2]...)
	}
	return slices.Delete(blocks, 1, 3)
}

// applyACL runs the rules as an operator would and returns the commands they allow,
// by the name under which the server counts calls.
func applyACL(t *testing.T, admin *redis.Client, rules []string) []string {
	t.Helper()
	var commands []string
	for _, rule := range rules {
		var args []any
		for _, word := range strings.Fields(rule) {
			args = append(args, word)
			if name, allowed := strings.CutPrefix(word, "+"); allowed {
				commands = append(commands, name)
			}
		}
		if err := admin.Do(bg, args...).Err(); err != nil {
			t.Fatalf("%s: %v", rule, err)
		}
	}
	return commands
}

// patience is how long these tests wait for a server that is a process of its own.
const patience = pace.Hang

// TestACL_TheListInTheDocumentIsEnoughAndExact runs every command that the library has
// under the rules that docs/operations.md prints. The server's own log of refusals says
// that the list is enough, its counters that nothing in it is unused.
func TestACL_TheListInTheDocumentIsEnoughAndExact(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	admin := s.Client(t)
	blocks := aclBlocks(t)
	seen := watchCommands(t, s)
	commands := applyACL(t, admin, blocks[0])
	replicated := applyACL(t, admin, blocks[1])
	ok(t, admin.Do(bg, "config", "resetstat").Err())

	user := func(o *redis.Options) { o.Username, o.Password = "anteroom", "change-me" }
	counts := newCounter()
	cfg := anteroom.Config{Observer: hooks(counts), Defaults: anteroom.LockConfig{
		LeaseTime: pace.Scale(2 * time.Second), WatchdogPeriod: 50 * time.Millisecond,
		Fencing:     true,
		MaxHandoffs: 1, MaxHandoffTime: time.Minute,
	}}
	a, eventsA := manager(t, s.Client(t, user), cfg)
	b, eventsB := manager(t, s.Client(t, user), cfg)

	ok(t, a.Ping(bg, "order:0"))
	holdAndWaitAcrossProcesses(t, a, b)
	readAndWriteAcrossProcesses(t, a, b)
	endATurn(t, a, b, counts)
	waitForAStranger(t, admin, b)
	forceRelease(t, a, b, counts)
	watched := acquire(t, a.Mutex("order:0"))
	for _, what := range []string{
		"renewed/renewed", "acquired/acquired/handoff", "command/yield", "command/status",
		"command/ping", "command/probe", "command/inspect", "command/force",
	} {
		eventually(t, what, func() bool { return counts.get(what) > 0 })
	}
	ok(t, watched.Release(bg))
	mu := mutex(t, a, anteroom.LockConfig{Key: "order:4", Replicas: 1, ReplicaTimeout: 10 * time.Millisecond})
	if _, err := mu.TryAcquire(bg); !errors.Is(err, anteroom.ErrNotAcquired) {
		t.Fatalf("with a replica that does not exist: %v", err)
	}

	ok(t, admin.Set(bg, "order:5", "no lock", 0).Err())
	if _, err := a.Mutex("order:5").TryAcquire(bg); !errors.Is(err, anteroom.ErrConfig) || !strings.Contains(err.Error(), "a value of type string") {
		t.Errorf("of a string: %v", err)
	}

	wantUsed(t, s, append(commands, replicated...))
	wantMatched(t, blocks[0], seen())
	wantNoRefusals(t, admin)
	for _, ev := range slices.Concat(eventsA.of(observe.EventWarning), eventsB.of(observe.EventWarning)) {
		t.Errorf("warning under the ACL of the document: %s %v", ev.Text, ev.Err)
	}
}

// holdAndWaitAcrossProcesses: acquire, wait for another process, renew, be woken.
func holdAndWaitAcrossProcesses(t *testing.T, a, b *anteroom.Manager) {
	t.Helper()
	h := acquire(t, a.Mutex("order:1"))
	got := make(chan *anteroom.Hold, 1)
	go func() {
		h, err := b.Mutex("order:1").Acquire(bg)
		if err != nil {
			t.Error(err)
		}
		got <- h
	}()
	eventually(t, "the waiter waits in line", func() bool {
		info := must[anteroom.Info](t)(a.Inspect(bg, "order:1"))
		return info.InLine == 1 && info.Token > 0
	})
	ok(t, h.Release(bg))
	h = <-got
	if h == nil || tokenOf(h) == 0 {
		t.Fatal("the waiter has no lock, or no token")
	}
	ok(t, h.Release(bg))
}

// waitForAStranger: a holder that calls nobody is waited for on the release channel.
func waitForAStranger(t *testing.T, admin *redis.Client, m *anteroom.Manager) {
	t.Helper()
	ok(t, admin.HSet(bg, "order:6", "foreign", 1).Err())
	ok(t, admin.PExpire(bg, "order:6", time.Hour).Err())
	got := make(chan error, 1)
	go func() {
		h, err := m.Mutex("order:6").Acquire(bg)
		if err == nil {
			err = h.Release(bg)
		}
		got <- err
	}()
	eventually(t, "the waiter listens", func() bool {
		return must[anteroom.Info](t)(m.Inspect(bg, "order:6")).Subscribers == 1
	})
	ok(t, admin.Del(bg, "order:6").Err())
	ok(t, admin.Publish(bg, "lock:release:order:6", `{"lockKey":"order:6","releaseTime":1,"holder":"foreign"}`).Err())
	ok(t, <-got)
	eventually(t, "the key is idle", func() bool { return len(m.Snapshot()) == 0 })
	ok(t, m.Destroy("order:6")) // gives the subscription back
}

// endATurn: with a budget of one hand-off, and another process in line, the third owner comes by the end of a turn, once
// the message that somebody waits has arrived.
func endATurn(t *testing.T, m, other *anteroom.Manager, counts *counter) {
	t.Helper()
	for range 20 {
		if passOn(t, m, other); counts.get("command/yield") > 0 {
			return
		}
	}
	t.Fatal("no turn ended")
}

// passOn lets an owner of m be followed by two more there and one of other.
func passOn(t *testing.T, m, other *anteroom.Manager) {
	t.Helper()
	h := acquire(t, m.Mutex("order:1"))
	var waiters sync.WaitGroup
	for _, mu := range []*anteroom.Mutex{other.Mutex("order:1"), m.Mutex("order:1"), m.Mutex("order:1")} {
		waiters.Go(func() {
			if h, err := mu.Acquire(bg); err != nil {
				t.Error(err)
			} else if err := h.Release(bg); err != nil {
				t.Error(err)
			}
		})
	}
	eventually(t, "two wait here, and one there", func() bool {
		states := m.Snapshot()
		return len(states) == 1 && len(states[0].Waiters) == 2 && must[anteroom.Info](t)(m.Inspect(bg, "order:1")).InLine == 1
	})
	ok(t, h.Release(bg))
	waiters.Wait()
	eventually(t, "the key is idle", func() bool { return len(m.Snapshot())+len(other.Snapshot()) == 0 })
}

// forceRelease: the holder is notified on its own channel by another process.
func forceRelease(t *testing.T, a, b *anteroom.Manager, counts *counter) {
	t.Helper()
	h := acquire(t, a.Mutex("order:3"))
	eventually(t, "a renewal", func() bool { return counts.get("renewed/renewed") > 0 })
	if broken := must[[]string](t)(b.ForceRelease(bg, "order:3")); len(broken) != 1 {
		t.Fatal("nothing was released")
	}
	<-h.Context().Done()
	if err := h.Release(bg); !errors.Is(err, anteroom.ErrLost) {
		t.Fatalf("release after it was forced: %v", err)
	}
}

// readAndWriteAcrossProcesses: the same for an RWMutex, of which both processes have units at a time.
func readAndWriteAcrossProcesses(t *testing.T, a, b *anteroom.Manager) {
	t.Helper()
	read := must[*anteroom.Hold](t)(a.RWMutex("order:7").RAcquire(bg))
	ok(t, b.RWMutex("order:7").RDo(bg, func(context.Context) error { return nil }))
	wrote := make(chan error, 1)
	go func() {
		wrote <- b.RWMutex("order:7").Do(bg, func(context.Context) error { return nil })
	}()
	eventually(t, "the writer waits in line", func() bool { return must[anteroom.Info](t)(a.Inspect(bg, "order:7")).InLine == 1 })
	ok(t, read.Release(bg))
	ok(t, <-wrote)
	eventually(t, "the key is idle", func() bool { return len(a.Snapshot())+len(b.Snapshot()) == 0 })
}

// wantUsed: what nobody calls does not belong into the list.
func wantUsed(t *testing.T, s *testredis.Server, commands []string) {
	t.Helper()
	for _, name := range commands {
		if !testredis.AtLeast("7.0") {
			name, _, _ = strings.Cut(name, "|") // subcommands are not counted by themselves
		}
		if name == "client" {
			continue // its subcommand is unknown there, and nothing is counted
		}
		eventually(t, name+" is in the list and is called", func() bool { return s.Stats(t)[name] > 0 })
	}
}

// wantMatched: neither does a pattern that no key or channel matches.
func wantMatched(t *testing.T, rules []string, commands string) {
	t.Helper()
	patterns := 0
	for _, word := range strings.Fields(strings.Join(rules, " ")) {
		if word[0] != '~' && word[0] != '&' {
			continue
		}
		patterns++
		if !strings.Contains(commands, `"`+strings.TrimSuffix(word[1:], "*")) {
			t.Errorf("%s is in the list, and nothing matches it", word)
		}
	}
	if patterns == 0 {
		t.Error("there are no patterns in the list")
	}
}

// watchCommands records the commands of a server, but not what its administrator says about ACLs, until the function
// returned is called.
func watchCommands(t *testing.T, s *testredis.Server) (seen func() string) {
	t.Helper()
	conn, err := net.Dial("tcp", s.Addr())
	ok(t, err)
	must[int](t)(conn.Write([]byte("MONITOR\r\n")))
	sc := bufio.NewScanner(conn)
	sc.Buffer(nil, 1<<20) // a script
	if !sc.Scan() || sc.Text() != "+OK" {
		t.Fatal(sc.Text(), sc.Err())
	}
	var commands strings.Builder
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for sc.Scan() {
			if !strings.Contains(strings.ToLower(sc.Text()), `"acl"`) {
				commands.WriteString(sc.Text())
			}
		}
	}()
	seen = func() string {
		_ = conn.Close()
		<-ended
		return commands.String()
	}
	t.Cleanup(func() { seen() })
	return seen
}

func wantNoRefusals(t *testing.T, admin *redis.Client) {
	t.Helper()
	log, err := admin.Do(bg, "acl", "log").Slice()
	ok(t, err)
	for _, entry := range log {
		t.Errorf("refused under the ACL of the document: %s", fmt.Sprint(entry))
	}
}

// TestACL_AKeyOutsideTheListIsOneClearError: what the list does not allow comes back at
// once, and says whom to ask.
func TestACL_AKeyOutsideTheListIsOneClearError(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	applyACL(t, s.Client(t), aclBlocks(t)[0])
	rdb := s.Client(t, func(o *redis.Options) { o.Username, o.Password = "anteroom", "change-me" })
	m, _ := manager(t, rdb, anteroom.Config{})
	_, err := m.Mutex("invoice:1").Acquire(bg)
	if !errors.Is(err, anteroom.ErrConfig) || !strings.Contains(err.Error(), "docs/operations.md") {
		t.Fatalf("%v", err)
	}
}

// TestACL_ACluster: what go-redis asks a Cluster beyond the commands of the library.
func TestACL_ACluster(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t, "--cluster-enabled", "yes")
	admin := s.Client(t)
	ok(t, admin.ClusterAddSlotsRange(bg, 0, 16383).Err())
	eventually(t, "the cluster is up", func() bool {
		return strings.Contains(admin.ClusterInfo(bg).Val(), "cluster_state:ok")
	})
	blocks := aclBlocks(t)
	applyACL(t, admin, blocks[0])
	cluster := applyACL(t, admin, blocks[2])
	cc := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{s.Addr()}, Username: "anteroom", Password: "change-me"})
	t.Cleanup(func() { _ = cc.Close() })
	counts := newCounter()
	m, rec := manager(t, cc, anteroom.Config{Observer: hooks(counts), Defaults: anteroom.LockConfig{
		LeaseTime: pace.Scale(2 * time.Second), WatchdogPeriod: 50 * time.Millisecond, Fencing: true,
	}})
	h := acquire(t, m.Mutex("order:1"))
	eventually(t, "a renewal and a check by the watchdog", func() bool {
		return counts.get("renewed/renewed") > 0 && counts.get("command/probe") > 0 && counts.get("command/status") > 0
	})
	ok(t, h.Release(bg))
	wantUsed(t, s, cluster)
	wantNoRefusals(t, admin)
	if warnings := rec.of(observe.EventWarning); len(warnings) != 0 {
		t.Errorf("warnings under the ACL of the document: %+v", warnings)
	}
}
