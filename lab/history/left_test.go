package history

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/pace"
	anteroom "github.com/anteroom/anteroom/sync"
)

// Leaks are found: callers that never return, a lock that remains, a key without a time to live, and a subscription.
func TestLab_FindsWhoIsStuckAndWhatIsLeft(t *testing.T) {
	t.Parallel()
	l := NewLab(t, Setup{Locks: []anteroom.LockConfig{{Key: "key0", LeaseTime: 1500 * time.Millisecond, WatchdogPeriod: 500 * time.Millisecond, Reentrant: true}}, Processes: 1, Goroutines: 12, Seed: 7})
	const taken = `redis.call('del', KEYS[1]); redis.call('hset', KEYS[1], 'a stranger', '1'); return redis.call('pexpire', KEYS[1], 600000)`
	ctx := context.Background()
	if err := l.Admin.Eval(ctx, taken, []string{l.Setup.Locks[0].Key}).Err(); err != nil {
		t.Fatal(err)
	}
	if err := l.Admin.Set(ctx, "without an end", "1", 0).Err(); err != nil {
		t.Fatal(err)
	}
	sub := l.Admin.Subscribe(ctx, "somebody listens")
	defer sub.Close()
	if _, err := sub.Receive(ctx); err != nil {
		t.Fatal(err)
	}
	// A quarter of the rounds use Lock, which cannot be cancelled: soon one of them waits.
	time.Sleep(pace.Scale(2 * time.Second))
	o := l.Finish(time.Second)
	all := strings.Join(o.Leaks, "\n")
	if o.Stuck == 0 || !strings.Contains(all, "parked in Lock") || !strings.Contains(all, noEnd+"without an end") ||
		!strings.Contains(all, "somebody listens") || !strings.Contains(all, "key0") {
		t.Fatalf("%d are stuck; left is %s", o.Stuck, all)
	}
}
