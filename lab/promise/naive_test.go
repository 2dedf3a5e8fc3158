package promise_test

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/faultnet"
	"github.com/anteroom/anteroom/lab/promise"
)

const (
	naiveLease = time.Second
	// naiveLate is how long after its lease the naive lock notifies: much longer than the difference between the ends
	// of two leases, so that every one of them is late.
	naiveLate = naiveLease
)

// naive is a lock that breaks every part of the promise: it notifies by a timer that ends after the lease, counted
// from the last answer, and checks nothing else.
func naive() promise.Library {
	return promise.Library{
		Name: "naive", Lease: naiveLease, Bound: naiveLease / 10,
		Key:       func(name string) string { return "naive:" + name },
		Usurp:     `redis.call('set', KEYS[1], 'usurper', 'PX', 60000)`,
		Questions: []string{"flag"},
		Connect: func(addr string, dial faultnet.DialFunc) (promise.Client, error) {
			return naiveClient{redis.NewClient(&redis.Options{Addr: addr, Dialer: dial})}, nil
		},
	}
}

type naiveClient struct{ rdb *redis.Client }

func (c naiveClient) Acquire(ctx context.Context, name string) (promise.Hold, error) {
	if err := c.rdb.Do(ctx, "set", "naive:"+name, "me", "nx", "px", naiveLease.Milliseconds()).Err(); err != nil {
		return nil, err
	}
	h := &naiveHold{lost: make(chan struct{}), released: make(chan struct{})}
	h.timer = time.AfterFunc(naiveLease+naiveLate, func() { close(h.lost) })
	h.renewing.Go(func() { h.renew(c.rdb, "naive:"+name) })
	return h, nil
}

func (c naiveClient) Close() { _ = c.rdb.Close() }

type naiveHold struct {
	lost     chan struct{}
	released chan struct{}
	timer    *time.Timer
	renewing sync.WaitGroup
}

var naiveRenew = redis.NewScript(`return redis.call('get', KEYS[1]) == 'me' and redis.call('pexpire', KEYS[1], ARGV[1])`)

// renew goes on until the key is gone, which it does not report.
func (h *naiveHold) renew(rdb *redis.Client, key string) {
	tick := time.NewTicker(naiveLease / 4)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			mine, err := naiveRenew.Run(context.Background(), rdb, []string{key}, naiveLease.Milliseconds()).Bool()
			if err != nil || !mine || !h.timer.Reset(naiveLease+naiveLate) {
				return
			}
		case <-h.released:
			return
		}
	}
}

func (h *naiveHold) Done() <-chan struct{} { return h.lost }

func (h *naiveHold) Held(int) bool {
	select {
	case <-h.lost:
		return false
	default:
		return true
	}
}

func (h *naiveHold) Release() {
	close(h.released)
	h.renewing.Wait()
	h.timer.Stop()
}
