package anteroom_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
)

// aclBlocks returns the fenced blocks of docs/operations.md that are marked as ACL
// rules: what an operator copies is what the tests run under.
func aclBlocks(t *testing.T) [][]string {
	t.Helper()
	text, err := os.ReadFile("../docs/operations.md")
	ok(t, err)
	var blocks [][]string
	rest := string(text)
	for {
		_, after, found := strings.Cut(rest, "```acl\n")
		if !found {
			break
		}
		block, tail, closed := strings.Cut(after, "```")
		if !closed {
			t.Fatal("docs/operations.md: an ACL block has no end")
		}
		blocks = append(blocks, strings.Split(strings.TrimSpace(block), "\n"))
		rest = tail
	}
	if len(blocks) != 2 {
		t.Fatalf("docs/operations.md has %d ACL blocks, want the rules and those for Replicas", len(blocks))
	}
	return blocks
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

// tally counts what a Manager reports, so that a test can wait for it.
type tally struct {
	anteroom.NopObserver
	mu    sync.Mutex
	count map[string]int
}

func (c *tally) add(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count == nil {
		c.count = map[string]int{}
	}
	c.count[what]++
}

func (c *tally) has(what string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count[what] > 0
}

// Command and Renewed are the reports that the test waits for.
func (c *tally) Command(name, outcome string, _ time.Duration)              { c.add(name + " " + outcome) }
func (c *tally) Renewed(_ string, o anteroom.RenewOutcome, _ time.Duration) { c.add(string(o)) }
func (c *tally) Acquired(_ string, _ anteroom.AcquireOutcome, via anteroom.Via, _ time.Duration) {
	c.add(string(via))
}

// soon waits until done, in real time; the server is a process of its own, so nothing
// else can tell.
func soon(t *testing.T, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(bg, 20*time.Second)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			t.Fatalf("not within 20s: %s", what)
		case <-tick.C:
		}
	}
}

// TestACL_TheListInTheDocumentIsEnoughAndExact runs every command that the library has
// under the rules that docs/operations.md prints. The server's own log of refusals says
// that the list is enough, its counters that nothing in it is unused.
func TestACL_TheListInTheDocumentIsEnoughAndExact(t *testing.T) {
	s := testredis.Start(t)
	admin := s.Client(t)
	blocks := aclBlocks(t)
	commands := applyACL(t, admin, blocks[0])
	replicated := applyACL(t, admin, blocks[1])
	ok(t, admin.Do(bg, "config", "resetstat").Err())

	user := func(o *redis.Options) { o.Username, o.Password = "anteroom", "change-me" }
	counts := &tally{}
	cfg := anteroom.Config{Observer: counts, Defaults: anteroom.LockConfig{
		LeaseTime: 2 * time.Second, WatchdogPeriod: 50 * time.Millisecond,
		Fencing: true, Recovery: anteroom.RecoverReacquire,
		MaxHandoffs: 1, MaxHandoffTime: time.Minute,
	}}
	a, eventsA := manager(t, s.Client(t, user), cfg)
	b, eventsB := manager(t, s.Client(t, user), cfg)

	holdAndWaitAcrossProcesses(t, a, b)
	endATurn(t, a, counts)
	ok(t, b.Destroy("order:1")) // gives the subscription of the one that waited back
	loseAndTakeBack(t, admin, a, counts)
	forceRelease(t, a, b)
	for _, what := range []string{"renewed", "reacquired", "handoff", "turn ok", "status ok", "ping ok", "probe ok", "inspect ok", "force ok"} {
		soon(t, what, func() bool { return counts.has(what) })
	}
	mu := mutex(t, a, anteroom.LockConfig{Key: "order:4", Replicas: 1, ReplicaTimeout: 10 * time.Millisecond})
	if _, err := mu.TryAcquire(bg); !errors.Is(err, anteroom.ErrNotAcquired) {
		t.Fatalf("with a replica that does not exist: %v", err)
	}

	for _, name := range append(commands, replicated...) {
		soon(t, name+" is used; if not, it does not belong into the list", func() bool {
			return s.Stats(t)[name] > 0
		})
	}
	wantNoRefusals(t, admin)
	for _, ev := range slices.Concat(eventsA.of(anteroom.EventWarning), eventsB.of(anteroom.EventWarning)) {
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
	soon(t, "the waiter listens", func() bool {
		info := must[anteroom.Info](t)(a.Inspect(bg, "order:1"))
		return info.Subscribers == 1 && info.Token > 0
	})
	ok(t, h.Release(bg))
	h = <-got
	if h == nil || h.Token() == 0 {
		t.Fatal("the waiter has no lock, or no token")
	}
	ok(t, h.Release(bg))
}

// endATurn: with a budget of one hand-off the third owner comes by the end of a turn.
func endATurn(t *testing.T, m *anteroom.Manager, counts *tally) {
	t.Helper()
	mu := m.Mutex("order:1")
	h := acquire(t, mu)
	var waiters sync.WaitGroup
	for range 2 {
		waiters.Go(func() {
			if h, err := mu.Acquire(bg); err != nil {
				t.Error(err)
			} else if err := h.Release(bg); err != nil {
				t.Error(err)
			}
		})
	}
	soon(t, "two wait", func() bool {
		states := m.Snapshot()
		return len(states) == 1 && len(states[0].Waiters) == 2
	})
	ok(t, h.Release(bg))
	waiters.Wait()
	soon(t, "the key is idle", func() bool { return len(m.Snapshot()) == 0 })
	if !counts.has("turn ok") {
		t.Fatal("no turn ended")
	}
}

// loseAndTakeBack: the key vanishes, and the renewal takes it back by its record.
func loseAndTakeBack(t *testing.T, admin *redis.Client, m *anteroom.Manager, counts *tally) {
	t.Helper()
	h := acquire(t, m.Mutex("order:2"))
	soon(t, "a renewal", func() bool { return counts.has("renewed") })
	ok(t, admin.Unlink(bg, "order:2").Err())
	soon(t, "the lock is taken back", func() bool { return counts.has("reacquired") })
	ok(t, h.Release(bg))
}

// forceRelease: the holder is told on its own channel by another process.
func forceRelease(t *testing.T, a, b *anteroom.Manager) {
	t.Helper()
	h := acquire(t, a.Mutex("order:3"))
	if done := must[bool](t)(b.ForceRelease(bg, "order:3")); !done {
		t.Fatal("nothing was released")
	}
	<-h.Context().Done()
	if err := h.Release(bg); !errors.Is(err, anteroom.ErrLost) {
		t.Fatalf("release after it was forced: %v", err)
	}
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
	s := testredis.Start(t)
	applyACL(t, s.Client(t), aclBlocks(t)[0])
	rdb := s.Client(t, func(o *redis.Options) { o.Username, o.Password = "anteroom", "change-me" })
	m, _ := manager(t, rdb, anteroom.Config{})
	_, err := m.Mutex("invoice:1").Acquire(bg)
	if !errors.Is(err, anteroom.ErrConfig) || !strings.Contains(err.Error(), "docs/operations.md") {
		t.Fatalf("%v", err)
	}
}
