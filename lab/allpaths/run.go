package allpaths

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/faultnet"
	"github.com/anteroom/anteroom/internal/testredis"
	"github.com/anteroom/anteroom/metrics"
	anteroom "github.com/anteroom/anteroom/sync"
)

const (
	// processes stand for as many programs on as many machines. The faults hit the first.
	processes = 3
	// commandTimeout leaves room for a renewal that is late but has not failed yet.
	commandTimeout = time.Second
	// watchdogPeriod is short, so that changes to a lock are found soon.
	watchdogPeriod = 200 * time.Millisecond
	// closeTime bounds the end of a Manager. What is not cleaned up by then, because the network swallowed a release,
	// ends with its lease.
	closeTime = 2 * time.Second
)

// Run is one run. Start starts it; it ends with its test or program.
type Run struct {
	tb        testredis.TB
	server    *testredis.Server
	admin     *redis.Client // bypasses the faults
	processes []*process
	serial    atomic.Int64 // of keys
}

// process is one Manager with what a program adds to it.
type process struct {
	net       *faultnet.Network
	rdb       *redis.Client
	manager   *anteroom.Manager
	collector *metrics.Collector
	registry  *prometheus.Registry
}

// Start starts a redis-server and the Managers. cfg configures the Collectors.
func Start(tb testredis.TB, cfg metrics.Config) *Run {
	tb.Helper()
	r := &Run{tb: tb, server: testredis.Start(tb)}
	r.admin = r.server.Client(tb)
	for range processes {
		p := &process{net: faultnet.New(nil), registry: prometheus.NewPedanticRegistry()}
		p.rdb = r.server.Client(tb, func(o *redis.Options) { o.Dialer = p.net.Dial })
		var err error
		if p.collector, err = metrics.New(cfg); err != nil {
			tb.Fatal(err)
		}
		var end func(time.Duration)
		p.manager, end = r.newManager(p, p.rdb)
		tb.Cleanup(func() { end(closeTime) })
		p.registry.MustRegister(p.collector)
		r.processes = append(r.processes, p)
	}
	return r
}

// newManager returns a Manager that reports to p's Collector and is attached to it. end closes it, within its limit;
// what a path lost on purpose may still be held then, and ends with its lease.
func (r *Run) newManager(p *process, rdb *redis.Client) (m *anteroom.Manager, end func(within time.Duration)) {
	m, err := anteroom.NewManager(rdb, anteroom.Config{
		Logger: slog.New(slog.DiscardHandler), Observer: p.collector.Observer(), CommandTimeout: commandTimeout,
		Defaults: anteroom.LockConfig{WatchdogPeriod: watchdogPeriod},
	})
	if err != nil {
		panic(err) // the configuration of this package is invalid
	}
	p.collector.Attach(m)
	return m, func(within time.Duration) {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		_ = m.Close(ctx)
		p.collector.Detach(m)
	}
}

// Handlers returns the /metrics handler of each process.
func (r *Run) Handlers() []http.Handler {
	var list []http.Handler
	for _, p := range r.processes {
		list = append(list, promhttp.HandlerFor(p.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}))
	}
	return list
}

// Server is the redis-server, for faults that hit all processes.
func (r *Run) Server() *testredis.Server { return r.server }

// Work does ordinary work in all processes until ctx ends: orders are many short holds of few keys, stock is one fair
// lock with Lock and Unlock, reports are held through several renewals, and invoices are also tried by TryAcquire. It
// returns when all have ended.
func (r *Run) Work(ctx context.Context) {
	var wg sync.WaitGroup
	for _, p := range r.processes {
		for i := range 6 {
			wg.Go(func() { p.orders(ctx, i) })
		}
		for range 2 {
			wg.Go(func() { p.stock(ctx) })
			wg.Go(func() { p.reports(ctx) })
		}
		wg.Go(func() { p.invoices(ctx) })
	}
	wg.Wait()
}

func (p *process) lock(cfg anteroom.LockConfig) *anteroom.Mutex {
	if cfg.WatchdogPeriod == 0 {
		cfg.WatchdogPeriod = watchdogPeriod
	}
	mu, err := p.manager.NewMutex(cfg)
	if err != nil {
		panic(err) // the configuration of this package is invalid
	}
	return mu
}

// orders holds one of two keys for about a millisecond.
func (p *process) orders(ctx context.Context, i int) {
	mu := p.lock(anteroom.LockConfig{
		Key: "order:" + strconv.Itoa(i%2), Name: "orders", LeaseTime: 10 * time.Second, RenewalTime: time.Second,
	})
	for ctx.Err() == nil {
		if h, err := mu.Acquire(ctx, anteroom.Wait(5*time.Second)); err == nil {
			pause(ctx, time.Millisecond)
			_ = h.Release(ctx) // continues in the background if it fails
		}
		pause(ctx, 20*time.Millisecond)
	}
}

// stock is the drop-in use, with a nested Lock. Lock cannot be cancelled, so the end waits for the current round.
func (p *process) stock(ctx context.Context) {
	mu := p.lock(anteroom.LockConfig{Key: "stock", Name: "stock", Fair: true, LeaseTime: 10 * time.Second, RenewalTime: time.Second})
	for ctx.Err() == nil {
		mu.Lock()
		mu.Lock()
		pause(ctx, 2*time.Millisecond)
		mu.Unlock()
		mu.Unlock()
		pause(ctx, 20*time.Millisecond)
	}
}

// reports holds its lock for so long that the lease is renewed.
func (p *process) reports(ctx context.Context) {
	mu := p.lock(anteroom.LockConfig{Key: "report", Name: "reports", LeaseTime: 10 * time.Second, RenewalTime: 100 * time.Millisecond})
	for ctx.Err() == nil {
		_ = mu.Do(ctx, func(ctx context.Context) error {
			pause(ctx, 400*time.Millisecond)
			return nil
		})
		pause(ctx, 50*time.Millisecond)
	}
}

// invoices are fenced, and only tried.
func (p *process) invoices(ctx context.Context) {
	mu := p.lock(anteroom.LockConfig{Key: "invoice", Name: "invoices", Fencing: true, LeaseTime: 10 * time.Second, RenewalTime: 100 * time.Millisecond})
	for ctx.Err() == nil {
		if h, err := mu.TryAcquire(ctx); err == nil {
			pause(ctx, 250*time.Millisecond)
			_ = h.Release(ctx)
		}
		pause(ctx, 40*time.Millisecond)
	}
}

// pause waits for d or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
