package promise

import (
	"context"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/faultnet"
	anteroom "github.com/anteroom/anteroom/sync"
)

// Anteroom is the library itself, with the defaults except for the lease and Fencing, without which there is no
// Token. A margin of 0 is the default one.
func Anteroom(lease, margin time.Duration) Library {
	l := ofAnteroom(anteroom.Config{Defaults: anteroom.LockConfig{LeaseTime: lease, Margin: margin, Fencing: true}})
	l.Settings = "LeaseTime " + lease.String() + ", Fencing, otherwise the defaults"
	l.Lease = lease
	l.Bound = 5*time.Second + min(lease/6, time.Second) // WatchdogPeriod + CommandTimeout
	return l
}

// AnteroomUnrenewed holds leases that are never renewed, so only the watchdog can find a removal. period is W and
// timeout C of docs/guarantees.md.
func AnteroomUnrenewed(lease, period, timeout time.Duration) Library {
	l := ofAnteroom(anteroom.Config{CommandTimeout: timeout, Defaults: anteroom.LockConfig{
		LeaseTime: lease, RenewalTime: -1, WatchdogPeriod: period, Fencing: true,
	}})
	l.Name = "Anteroom, watchdog alone"
	l.Settings = "LeaseTime " + lease.String() + ", RenewalTime -1 (fixed lease), WatchdogPeriod " + period.String() +
		", CommandTimeout " + timeout.String() + ", Fencing"
	l.Lease, l.Unrenewed = lease, true
	l.Bound = period + timeout
	return l
}

func ofAnteroom(cfg anteroom.Config) Library {
	cfg.Logger = slog.New(slog.DiscardHandler)
	return Library{
		Name:      "Anteroom",
		Key:       func(name string) string { return name },
		Usurp:     `redis.call('del', KEYS[1]) redis.call('hset', KEYS[1], 'usurper:1', '1') redis.call('pexpire', KEYS[1], 60000)`,
		Questions: []string{"Held", "Err", "TTL", "Context().Err"},
		Connect: func(addr string, dial faultnet.DialFunc) (Client, error) {
			rdb := redis.NewClient(&redis.Options{Addr: addr, Dialer: dial})
			m, err := anteroom.NewManager(rdb, cfg)
			if err != nil {
				_ = rdb.Close()
				return nil, err
			}
			return manager{m, rdb}, nil
		},
	}
}

type manager struct {
	m   *anteroom.Manager
	rdb *redis.Client
}

func (c manager) Acquire(ctx context.Context, name string) (Hold, error) {
	h, err := c.m.Mutex(name).Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return hold{h, h.Context()}, nil
}

func (c manager) Close() {
	// Lost locks are being removed; they end with their leases if that takes longer.
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = c.m.Close(ctx)
	_ = c.rdb.Close()
}

type hold struct {
	h   *anteroom.Hold
	ctx context.Context
}

func (h hold) Done() <-chan struct{} { return h.ctx.Done() }

func (h hold) Held(question int) bool {
	switch question {
	case 0:
		return h.h.Held()
	case 1:
		return h.h.Err() == nil
	case 2:
		return h.h.TTL() != 0
	}
	return h.ctx.Err() == nil
}

func (h hold) Release() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = h.h.Release(ctx) // ErrLost is expected
}
