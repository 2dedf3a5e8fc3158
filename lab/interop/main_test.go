package interop

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/internal/silence"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	anteroom "github.com/anteroom/anteroom/sync"
)

func TestMain(m *testing.M) {
	silence.Logs()
	child.Run(map[string]child.Role{contenderRole: contend, holderRole: hold})
	goleak.VerifyTestMain(m)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The roles of Go processes.
const (
	contenderRole = "interop-contender"
	holderRole    = "interop-holder"
)

// contention is what each program of a contended lock does: in so many goroutines it counts on a counter that only
// the lock protects, until the time is over.
type contention struct {
	URL, Key, Counter string
	Dialect           lettucecompat.Dialect
	Goroutines        int
	Hold, Pause, For  time.Duration
}

// takes is what came of it.
type takes struct {
	Count   int
	Longest time.Duration // wait
}

func (a takes) plus(b takes) takes { return takes{a.Count + b.Count, max(a.Longest, b.Longest)} }

// contend is a Go program of a contention. It sends what came of each goroutine.
func contend(_ context.Context, parent *child.Link, raw json.RawMessage) error {
	var c contention
	if err := json.Unmarshal(raw, &c); err != nil {
		return err
	}
	ctx := context.Background()
	m, err := anteroom.Open(ctx, c.URL, anteroom.Config{Dialect: anteroom.Dialect(c.Dialect)})
	if err != nil {
		return err
	}
	rdb, err := lettucecompat.Open(c.URL, lettucecompat.Options{})
	if err != nil {
		return err
	}
	defer rdb.Close()
	each := make([]takes, c.Goroutines)
	var wg sync.WaitGroup
	lock := m.Mutex(c.Key)
	end := time.Now().Add(c.For)
	for i := range each {
		wg.Go(func() {
			for time.Now().Before(end) {
				start := time.Now()
				lock.Lock()
				waited := time.Since(start)
				n, _ := rdb.Get(ctx, c.Counter).Int()
				time.Sleep(c.Hold)
				rdb.Set(ctx, c.Counter, n+1, 0)
				lock.Unlock()
				each[i] = each[i].plus(takes{1, waited})
				time.Sleep(c.Pause)
			}
		})
	}
	wg.Wait()
	if err := parent.Send(each); err != nil {
		return err
	}
	return m.Close(ctx)
}

// hold is a Go program that holds the lock until it is killed.
func hold(ctx context.Context, parent *child.Link, raw json.RawMessage) error {
	var c contention
	if err := json.Unmarshal(raw, &c); err != nil {
		return err
	}
	m, err := anteroom.Open(ctx, c.URL, anteroom.Config{Dialect: anteroom.Dialect(c.Dialect)})
	if err != nil {
		return err
	}
	mu, err := m.NewMutex(anteroom.LockConfig{Key: c.Key, LeaseTime: c.For})
	if err != nil {
		return err
	}
	if _, err := mu.Acquire(ctx); err != nil {
		return err
	}
	if err := parent.Send("held"); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}
