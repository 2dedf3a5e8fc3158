package growth

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/lab/bench/library"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// observer counts what a Manager does by itself.
type observer struct {
	renewed, failed, late, lost atomic.Int64
	leastLeft                   atomic.Int64 // nanoseconds

	mu       sync.Mutex
	commands map[string]int // guarded by mu
}

const (
	lease = 30 * time.Second // the default
	// A renewal is due a third of the lease after the previous one, and may be a sixth late. It then has the
	// deadline's own margin and nearly half of the lease left.
	lateBelow = lease - lease/20 - lease/3 - lease/6
)

func (o *observer) onRenewed(_ string, outcome observe.Outcome, left time.Duration) {
	if outcome != observe.OutcomeRenewed {
		o.failed.Add(1)
		return
	}
	o.renewed.Add(1)
	if left < lateBelow {
		o.late.Add(1)
	}
	for {
		least := o.leastLeft.Load()
		if int64(left) >= least || o.leastLeft.CompareAndSwap(least, int64(left)) {
			return
		}
	}
}

// hooks returns what a Manager is to call.
func (o *observer) hooks() *observe.Observer {
	return &observe.Observer{
		Renewed: o.onRenewed, Command: o.onCommand,
		Lost: func(string, observe.LossReason) { o.lost.Add(1) },
	}
}

func (o *observer) onCommand(name, _ string, _ time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.commands[name]++
}

// reset resets the counts.
func (o *observer) reset() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.commands = map[string]int{}
	for _, n := range []*atomic.Int64{&o.renewed, &o.failed, &o.late, &o.lost} {
		n.Store(0)
	}
	o.leastLeft.Store(int64(lease))
}

// manager is an observed Manager with the default LockConfig, except for Fair.
type manager struct {
	*anteroom.Manager
	*observer
	rdb *redis.Client
}

func newManager(addr string, fair bool) (manager, error) {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	o := &observer{}
	o.reset()
	m, err := anteroom.NewManager(rdb, anteroom.Config{
		Observer: o.hooks(), Logger: slog.New(slog.DiscardHandler), Defaults: anteroom.LockConfig{Fair: fair},
	})
	return manager{m, o, rdb}, err
}

func (m manager) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	if err := m.Close(ctx); err != nil {
		return err
	}
	return m.rdb.Close()
}

// warm uses some keys, so that connections, scripts and pools exist before anything is measured.
func (m manager) warm(prefix string) error {
	return each(2000, func(i int) error {
		use(m.Mutex(key(prefix, "warm", i%500)))
		return nil
	})
}

// use locks and unlocks once.
func use(mu sync.Locker) {
	mu.Lock()
	defer mu.Unlock()
}

// sends are the commands that Anteroom sends itself.
func sends() []string {
	l, _ := library.For(library.Anteroom, library.Alone) // it exists
	return append(l.Sends, "publish")
}
