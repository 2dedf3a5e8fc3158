package library

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/metrics"
	anteroom "github.com/anteroom/anteroom/sync"
)

// anteroomSends are the commands that a Manager sends. Its scripts publish, so PUBLISH, which it also sends to its
// own channel every few seconds, is not among them; nor is PUBSUB NUMSUB, which only the scripts call.
var anteroomSends = []string{"evalsha", "eval", "script|load", "subscribe", "unsubscribe", "ping", "hello", "client|setinfo"}

// closeWithin bounds a client's end: releases of that moment were answered long before.
const closeWithin = 5 * time.Second

// options are go-redis' options, and what the settings say about them.
type options struct {
	words string
	redis redis.Options
}

var (
	// mindful is a client that heeds the deadline of a context, so that a caller of Anteroom may send its command
	// itself (docs/internals/architecture.md, section 10).
	mindful = options{"go-redis with ContextTimeoutEnabled", redis.Options{ContextTimeoutEnabled: true}}
	// defaults are go-redis' own options.
	defaults = options{"go-redis' default options", redis.Options{}}
)

func (o options) client(addr string) *redis.Client {
	o.redis.Addr = addr
	return redis.NewClient(&o.redis)
}

// byLock is Anteroom as most programs use it: Lock and Unlock.
func byLock(name string, o options, fair bool) Library {
	return Library{
		Name: name, Module: "github.com/anteroom/anteroom", Sends: anteroomSends,
		Settings: "Lock and Unlock, no Observer" + ifFair(fair) + "; " + o.words,
		Open: func(addr string) (Client, error) {
			return openAnteroom(o.client(addr), anteroom.Config{Defaults: anteroom.LockConfig{Fair: fair}}, nil)
		},
	}
}

// byLingering is Anteroom as most programs have it, with Linger.
func byLingering(name string) Library {
	l := byLock(name, defaults, false)
	l.Settings = "Lock and Unlock, no Observer; Linger of 1 s, otherwise the default LockConfig; " + defaults.words
	l.Open = func(addr string) (Client, error) {
		return openAnteroom(defaults.client(addr), anteroom.Config{Defaults: anteroom.LockConfig{Linger: time.Second}}, nil)
	}
	return l
}

// byAcquire is Anteroom with everything on: a Hold for each acquisition, the watchdog (on by default), and an
// Observer whose series are registered in a Prometheus registry.
func byAcquire(name string, fair bool) Library {
	l := byLock(name, mindful, fair)
	l.Settings = "Acquire and Release, the metrics package as Observer, registered with Prometheus" + ifFair(fair) + "; " + mindful.words
	l.Open = func(addr string) (Client, error) {
		c, err := metrics.New(metrics.Config{})
		if err != nil {
			return nil, err
		}
		return openAnteroom(mindful.client(addr), anteroom.Config{Observer: c.Observer(), Defaults: anteroom.LockConfig{Fair: fair}}, c)
	}
	return l
}

// byAcquireUntracked is byAcquire while the server's default user may not use CLIENT TRACKING.
func byAcquireUntracked(name string) Library {
	l := byAcquire(name, false)
	l.Settings += "; CLIENT TRACKING refused"
	open := l.Open
	l.Open = func(addr string) (Client, error) {
		rdb := defaults.client(addr)
		err := rdb.Do(context.Background(), "acl", "setuser", "default", "-client|tracking").Err()
		c, failed := open(addr)
		if err = errors.Join(err, failed); err != nil {
			return nil, errors.Join(err, rdb.Close())
		}
		return anteroomUntracked{c, rdb}, nil
	}
	return l
}

type anteroomUntracked struct {
	Client
	rdb *redis.Client
}

func (c anteroomUntracked) Close() error {
	return errors.Join(c.Client.Close(), c.rdb.Do(context.Background(), "acl", "setuser", "default", "+client|tracking").Err(), c.rdb.Close())
}

// byShared is an RWMutex or a Semaphore of Permits by go-redis' own options, as byLock.
func byShared(name string) Library {
	l := byLock(name, defaults, false)
	l.Settings = "Lock, RLock and their ends; the default LockConfig; " + defaults.words
	if name == AnteroomSemaphore {
		l.Settings = "Weighted, one permit each; the default LockConfig; " + defaults.words
	}
	open := l.Open
	l.Open = func(addr string) (Client, error) {
		c, err := open(addr)
		if err != nil {
			return nil, err
		}
		return anteroomShared{c.(anteroomClient), name == AnteroomSemaphore}, nil
	}
	return l
}

type anteroomShared struct {
	anteroomClient
	permits bool
}

func (c anteroomShared) Handle(key string) Handle {
	if c.permits {
		return anteroomPermit{c.m.Semaphore(key, Permits).Weighted()}
	}
	return anteroomRW{c.m.RWMutex(key)}
}

type anteroomRW struct{ rw *anteroom.RWMutex }

func (h anteroomRW) Lock(context.Context) error { h.rw.Lock(); return nil }

func (h anteroomRW) Unlock() error { h.rw.Unlock(); return nil }

func (h anteroomRW) RLock(context.Context) error { h.rw.RLock(); return nil }

func (h anteroomRW) RUnlock() error { h.rw.RUnlock(); return nil }

type anteroomPermit struct {
	w interface {
		Acquire(context.Context, int64) error
		Release(int64)
	}
}

func (h anteroomPermit) Lock(ctx context.Context) error { return h.w.Acquire(ctx, 1) }

func (h anteroomPermit) Unlock() error { h.w.Release(1); return nil }

func ifFair(fair bool) string {
	if fair {
		return "; Fair, otherwise the default LockConfig"
	}
	return "; the default LockConfig"
}

// openAnteroom creates a Manager. With a Collector, handles acquire Holds.
func openAnteroom(rdb *redis.Client, cfg anteroom.Config, c *metrics.Collector) (Client, error) {
	cfg.Logger = slog.New(slog.DiscardHandler)
	m, err := anteroom.NewManager(rdb, cfg)
	if err == nil && c != nil {
		c.Attach(m)
		err = prometheus.NewRegistry().Register(c)
	}
	if err != nil {
		return nil, errors.Join(err, rdb.Close())
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
	return errors.Join(c.m.CloseWithin(closeWithin), c.rdb.Close())
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

func (h *anteroomHold) Held() (string, context.Context) { return h.hold.Key(), h.hold.Context() }

func (h *anteroomHold) Unlock() error { return h.hold.Release(context.Background()) }
