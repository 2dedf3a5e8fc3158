package library

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/metrics"
	anteroom "github.com/anteroom/anteroom/sync"
)

const anteroomModule = "github.com/anteroom/anteroom"

// anteroomSends are the commands that a Manager sends. Its scripts publish, so PUBLISH, which it also sends to its
// own channel every few seconds, is not among them; nor is PUBSUB NUMSUB, which only the scripts call.
var anteroomSends = []string{"evalsha", "eval", "script|load", "subscribe", "unsubscribe", "ping", "hello", "client|setinfo"}

// closeWithin bounds a client's end: releases of that moment were answered long before.
const closeWithin = 5 * time.Second

// anteroomByLock is Anteroom as most programs use it: the default configuration, Lock and Unlock.
func anteroomByLock(fair bool) Library {
	l := Library{
		Name: Anteroom, Module: anteroomModule, Sends: anteroomSends, Fair: fair,
		Settings: "the default LockConfig, Lock and Unlock, no Observer; go-redis with ContextTimeoutEnabled",
		Open: func(addr string) (Client, error) {
			return openAnteroom(mindful(addr), anteroom.Config{Defaults: anteroom.LockConfig{Fair: fair}}, nil)
		},
	}
	if fair {
		l.Name = AnteroomFair
		l.Settings = "Fair, otherwise the default LockConfig, Lock and Unlock, no Observer; go-redis with ContextTimeoutEnabled"
	}
	return l
}

// mindful are the options of a client that heeds the deadline of a context, so that a caller of Anteroom may send its
// command itself (docs/internals/architecture.md, section 10).
func mindful(addr string) *redis.Options {
	return &redis.Options{Addr: addr, ContextTimeoutEnabled: true}
}

// defaults are go-redis' own options.
func defaults(addr string) *redis.Options { return &redis.Options{Addr: addr} }

// anteroomOnDefaults is Anteroom on a client with go-redis' defaults.
func anteroomOnDefaults() Library {
	return Library{
		Name: AnteroomDefaults, Module: anteroomModule, Sends: anteroomSends,
		Settings: "as anteroom, but with go-redis' default options",
		Open: func(addr string) (Client, error) {
			return openAnteroom(defaults(addr), anteroom.Config{}, nil)
		},
	}
}

// anteroomByAcquire is Anteroom with everything on: a Hold for each acquisition, the watchdog (on by default), and an
// Observer whose series are registered in a Prometheus registry.
func anteroomByAcquire(fair bool) Library {
	l := Library{
		Name: AnteroomFull, Module: anteroomModule, Sends: anteroomSends, Fair: fair,
		Settings: "as anteroom, but Acquire and Release, the metrics package as Observer, registered with Prometheus",
		Open: func(addr string) (Client, error) {
			c, err := metrics.New(metrics.Config{})
			if err != nil {
				return nil, err
			}
			return openAnteroom(mindful(addr), anteroom.Config{Observer: c.Observer(), Defaults: anteroom.LockConfig{Fair: fair}}, c)
		},
	}
	if fair {
		l.Name = AnteroomFullFair
		l.Settings = "as anteroom-full, but Fair"
	}
	return l
}

// openAnteroom creates a Manager. With a Collector, handles acquire Holds.
func openAnteroom(options *redis.Options, cfg anteroom.Config, c *metrics.Collector) (Client, error) {
	cfg.Logger = slog.New(slog.DiscardHandler)
	rdb := redis.NewClient(options)
	m, err := anteroom.NewManager(rdb, cfg)
	if err != nil {
		_ = rdb.Close()
		return nil, err
	}
	if c != nil {
		c.Attach(m)
		if err := prometheus.NewRegistry().Register(c); err != nil {
			return nil, err
		}
	}
	return anteroomClient{m, rdb, c != nil}, nil
}

type anteroomClient struct {
	m     *anteroom.Manager
	rdb   *redis.Client
	holds bool
}

func (c anteroomClient) Handle(key string) Handle {
	if c.holds {
		return &anteroomHold{mu: c.m.Mutex(key)}
	}
	return anteroomLock{c.m.Mutex(key)}
}

func (c anteroomClient) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	err := c.m.Close(ctx)
	if e := c.rdb.Close(); err == nil {
		err = e
	}
	return err
}

// anteroomLock is a sync.Locker. Its Lock takes no context and so waits until it has the lock.
type anteroomLock struct{ mu *anteroom.Mutex }

func (h anteroomLock) Lock(context.Context) error { h.mu.Lock(); return nil }

func (h anteroomLock) Unlock() error { h.mu.Unlock(); return nil }

type anteroomHold struct {
	mu   *anteroom.Mutex
	hold *anteroom.Hold
}

func (h *anteroomHold) Lock(ctx context.Context) (err error) {
	h.hold, err = h.mu.Acquire(ctx)
	return err
}

func (h *anteroomHold) Unlock() error { return h.hold.Release(context.Background()) }
