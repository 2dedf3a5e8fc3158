package main

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/redis/rueidis/rueidislock"

	"github.com/anteroom/anteroom/internal/faultnet"
	"github.com/anteroom/anteroom/lab/promise"
)

// rueidislockREADME is configured as its README recommends for one Redis from 7.0.5 on. TryNextAfter does not affect
// the measurement; it is longer than the default of 20 ms, so that no acquire fails on a slow machine.
func rueidislockREADME(lease time.Duration) promise.Library {
	return ofRueidislock("rueidislock 1.0.79, README", "KeyMajority 1, NoLoopTracking, KeyValidity "+lease.String()+
		", ExtendInterval by default (half of it), TryNextAfter 1s", rueidislock.LockerOption{
		KeyMajority: 1, NoLoopTracking: true, KeyValidity: lease, TryNextAfter: time.Second,
	})
}

// rueidislockTight is the configuration, of those tried, that notices an unreachable Redis earliest. rueidis then
// finds a dead connection by its own pings, gives up dialing soon, and does not retry, so that an extension fails
// long before the key's expiry. The price is a lock that does not survive an interruption of a few tenths of its
// lease. Without these limits the context ends one ExtendInterval after the key's expiry, however short that is.
func rueidislockTight(lease time.Duration) promise.Library {
	o := rueidislock.LockerOption{KeyMajority: 1, NoLoopTracking: true, KeyValidity: lease, TryNextAfter: time.Second}
	o.ClientOption.ConnWriteTimeout = lease / 10
	o.ClientOption.Dialer.KeepAlive = lease / 10
	o.ClientOption.Dialer.Timeout = lease / 10
	o.ClientOption.DisableRetry = true
	return ofRueidislock("rueidislock 1.0.79, tightened",
		"as before, with ConnWriteTimeout, Dialer.KeepAlive and Dialer.Timeout of a tenth of KeyValidity, DisableRetry", o)
}

func ofRueidislock(name, settings string, opts rueidislock.LockerOption) promise.Library {
	return promise.Library{
		Name: name, Settings: settings, Lease: opts.KeyValidity,
		Key:       func(name string) string { return "rueidislock:0:" + name },
		Usurp:     `redis.call('set', KEYS[1], 'usurper', 'PX', 60000)`,
		Questions: []string{"ctx.Err"},
		Connect: func(addr string, dial faultnet.DialFunc) (promise.Client, error) {
			o := opts
			o.ClientOption.InitAddress = []string{addr}
			o.ClientOption.ForceSingleClient = true
			o.ClientOption.DialCtxFn = func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
				return dial(ctx, "tcp", addr)
			}
			locker, err := rueidislock.NewLocker(o)
			if err != nil {
				return nil, err
			}
			return rueidisClient{locker}, nil
		},
	}
}

type rueidisClient struct{ locker rueidislock.Locker }

func (c rueidisClient) Acquire(ctx context.Context, name string) (promise.Hold, error) {
	// The hold's context inherits the end of the given one, so that one has none.
	held, cancel, err := c.locker.TryWithContext(context.WithoutCancel(ctx), name)
	if err != nil {
		return nil, err
	}
	return rueidisHold{contextHold{held}, cancel}, nil
}

func (c rueidisClient) Close() { c.locker.Close() }

type rueidisHold struct {
	contextHold
	cancel context.CancelFunc
}

func (h rueidisHold) Release() { h.cancel() }
