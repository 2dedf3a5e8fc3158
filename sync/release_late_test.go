package anteroom_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// stall keeps scripts about one key from being sent for a while, as a connection does
// that drops packets.
type stall struct {
	*redis.Client
	armed atomic.Bool
	for_  time.Duration
	hit   atomic.Int64
}

func (l *stall) Process(ctx context.Context, cmd redis.Cmder) error {
	if l.armed.Load() && strings.Contains(fmt.Sprint(cmd.Args()...), "slowkey") {
		l.hit.Add(1)
		time.Sleep(l.for_)
	}
	return l.Client.Process(ctx, cmd)
}

// Renewals of one shard with different time limits never share a batch: the answer of
// the short one does not wait for the long one.
func TestAConfirmedRenewalDoesNotWaitForAnother(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := &stall{Client: s.client(), for_: 2 * time.Second}
		m, rec := manager(t, l, anteroom.Config{})
		short := acquire(t, mutex(t, m, anteroom.LockConfig{Key: "short", LeaseTime: time.Second}))
		long := acquire(t, mutex(t, m, anteroom.LockConfig{Key: "slowkey", LeaseTime: 30 * time.Second, RenewalTime: 500 * time.Millisecond}))
		for range 60 { // a hiccup of one connection now and then, at any phase of the two rhythms
			time.Sleep(5 * time.Second)
			hits := l.hit.Load()
			l.armed.Store(true)
			for l.hit.Load() == hits {
				time.Sleep(time.Millisecond)
			}
			l.armed.Store(false)
			time.Sleep(3 * time.Second)
		}
		if err := short.Err(); err != nil {
			t.Errorf("Redis has confirmed every renewal of the short lease: %v; key there: %v", err, s.Exists("short"))
			for _, e := range rec.of(observe.EventLost) {
				t.Log(e.Key, e.Reason, e.Err)
			}
		}
		_ = short.Release(bg)
		_ = long.Release(bg)
		time.Sleep(5 * time.Second)
	})
}

// Close is waiting when a hold is lost by its deadline: it waits for the clean-up too.
func TestCloseWaitsForTheCleanUpOfALoss_Lab(t *testing.T) {
	missed := 0
	for range 200 {
		bubble(t, func(t *testing.T, s *embedded) {
			m, _ := manager(t, s.client(), anteroom.Config{})
			h := acquire(t, mutex(t, m, anteroom.LockConfig{Key: "k", LeaseTime: 10 * time.Second, RenewalTime: 3 * time.Second}))
			_ = h
			s.net.HoldReplies()
			time.AfterFunc(9*time.Second, func() { s.SetTTL("k", 10*time.Second) }) // a renewal whose answer was lost
			go func() {
				time.Sleep(9800 * time.Millisecond)
				s.net.CloseAll()
				s.net.Heal()
			}()
			ctx, cancel := context.WithTimeout(bg, time.Minute)
			defer cancel()
			err := m.Close(ctx)
			if err == nil && s.Exists("k") {
				missed++
				if missed == 1 {
					t.Logf("Close returned nil and the lost hold's key is still in Redis, TTL %v", s.TTL("k"))
				}
			}
			time.Sleep(30 * time.Second)
		})
	}
	if missed > 0 {
		t.Errorf("%d of 200: Close did not wait for the clean-up of a loss", missed)
	}
}
