package history

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/internal/child"
	"github.com/anteroom/anteroom/internal/faultnet"
	"github.com/anteroom/anteroom/internal/silence"
	anteroom "github.com/anteroom/anteroom/sync"
)

// workerRole is the child role of a worker.
const workerRole = "history-worker"

// RunWorker makes this process a worker and never returns, if Start has started it as one. Every program and every
// TestMain that calls Start must call it first.
func RunWorker() {
	child.Run(map[string]child.Role{workerRole: work})
}

// worker is a process that takes part in a history.
type worker struct {
	plan   Plan
	log    *Log
	reg    *registerClient
	lines  *faultnet.Network
	rdb    redis.UniversalClient
	m      *anteroom.Manager
	locks  []func(units int64) way // by index in the plan
	ctx    context.Context         // ends with the order to stop
	cancel context.CancelFunc
	wg     sync.WaitGroup
	inside atomic.Int64 // goroutines that have not returned
	next   atomic.Uint64

	mu       sync.Mutex
	problems []string // guarded by mu
}

// work carries out orders until one says stop, or until its parent has ended.
func work(_ context.Context, parent *child.Link, raw json.RawMessage) error {
	silence.Logs()
	var plan Plan
	if err := json.Unmarshal(raw, &plan); err != nil {
		return err
	}
	before := goleak.IgnoreCurrent()
	w, err := newWorker(plan)
	if err != nil {
		return err
	}
	if err := parent.Send(message{}); err != nil {
		return err
	}
	w.begin()
	for {
		var order message
		if err := parent.Receive(&order); err != nil {
			return err
		}
		if order.Stop {
			report := w.stop(order.For, before)
			return parent.Send(message{ID: order.ID, Report: &report})
		}
		go func() {
			err := w.suffer(order.Fault, order.For)
			_ = parent.Send(message{ID: order.ID, Error: text(err)})
		}()
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func newWorker(plan Plan) (*worker, error) {
	w := &worker{plan: plan, lines: faultnet.New(nil)}
	var err error
	if w.log, err = NewLog(plan.Log); err != nil {
		return nil, err
	}
	if w.reg, err = dialRegister(plan.Register); err != nil {
		return nil, err
	}
	w.rdb = redis.NewUniversalClient(&redis.UniversalOptions{
		Addrs: plan.Addrs, MasterName: plan.Master, Username: plan.User, Password: plan.Password, Dialer: w.lines.Dial,
		DialTimeout: time.Second, ReadTimeout: time.Second, WriteTimeout: time.Second, PoolSize: 64, DialerRetries: plan.Dials,
	})
	// The Manager's own defaults are those of the first lock: the period of its watchdog, and the time limit of
	// commands that belong to no lock.
	defaults := plan.Locks[0]
	defaults.Key, defaults.Reentrant, defaults.Fencing = "", false, false
	w.m, err = anteroom.NewManager(w.rdb, anteroom.Config{
		ClientID: clientName(plan.Proc), Logger: slog.New(slog.DiscardHandler), Defaults: defaults,
	})
	if err != nil {
		return nil, err
	}
	if w.plan.Keys == nil {
		for i := range plan.Locks {
			w.plan.Keys = append(w.plan.Keys, i)
		}
	}
	for _, cfg := range plan.Locks {
		if plan.Apart {
			cfg.Key += fmt.Sprint(":", plan.Proc)
		}
		enter, err := w.lock(cfg, plan.units(len(w.locks)))
		if err != nil {
			return nil, err
		}
		w.locks = append(w.locks, enter)
	}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w, nil
}

// begin starts the goroutines.
func (w *worker) begin() {
	go w.beat()
	for n := range w.plan.Goroutines {
		c := &client{worker: w, n: uint32(n), rng: rand.New(rand.NewPCG(w.plan.Seed, uint64(n)))}
		w.inside.Add(1)
		w.wg.Go(func() {
			defer w.inside.Add(-1)
			for w.ctx.Err() == nil {
				c.round()
			}
		})
	}
}

const (
	beat = 10 * time.Millisecond
	// longGap is how late a beat must be to be recorded as a time in which the process did not run.
	longGap = 50 * time.Millisecond
)

// beat records when this process did not run: stopped, starved, or its world stopped.
func (w *worker) beat() {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	last := Now()
	for range ticker.C {
		now := Now()
		if now-last > int64(beat+longGap) {
			w.add(Event{Kind: Gap, Since: last, At: now})
		}
		last = now
	}
}

func (w *worker) add(e Event) {
	e.Proc = w.plan.Proc
	w.log.Add(e)
}

// problem records what no fault explains.
func (w *worker) problem(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.problems) < 20 {
		w.problems = append(w.problems, fmt.Sprintf("process %d: ", w.plan.Proc)+fmt.Sprintf(format, args...))
	}
}

// stop ends the work and checks what remains.
func (w *worker) stop(bound time.Duration, before goleak.Option) (r Report) {
	begin := time.Now()
	w.cancel()
	through := make(chan struct{})
	go func() {
		w.wg.Wait()
		close(through)
	}()
	select {
	case <-through:
	case <-time.After(bound):
		r.Stuck = int(w.inside.Load())
		for _, s := range w.m.Snapshot() {
			r.Problems = append(r.Problems, fmt.Sprintf("stuck: %+v", s))
		}
	}
	r.Through = time.Since(begin)
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	if err := w.m.Close(ctx); err != nil {
		r.Leaks = append(r.Leaks, "Close: "+err.Error())
	}
	if left := w.m.Snapshot(); len(left) > 0 && r.Stuck == 0 {
		r.Leaks = append(r.Leaks, fmt.Sprintf("%d keys in Snapshot after Close, the first %+v", len(left), left[0]))
	}
	_ = w.rdb.Close()
	_ = w.reg.c.Close()
	if r.Stuck == 0 {
		r.Leaks = append(r.Leaks, w.leftGoroutines(before, bound)...)
	}
	if n := w.lines.Open(); n > 0 {
		r.Leaks = append(r.Leaks, fmt.Sprintf("%d connections", n))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	r.Problems = append(r.Problems, w.problems...)
	return r
}

// leftGoroutines lists goroutines that did not exist at the beginning. go-redis ends a dial at its time limit of a second, tries it
// five times, and does so after Close, too; on a loaded machine all take longer. What leaks stays, so only a run that fails waits
// for the bound.
func (w *worker) leftGoroutines(before goleak.Option, bound time.Duration) []string {
	for begin := time.Now(); ; {
		err := goleak.Find(before, goleak.IgnoreAnyFunction("github.com/anteroom/anteroom/lab/history.(*worker).beat"))
		if err == nil {
			return nil
		}
		if time.Since(begin) > bound {
			return []string{err.Error()}
		}
	}
}
