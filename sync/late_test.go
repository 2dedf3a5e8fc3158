package anteroom_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// As TestALostSendIsCleanedUpAfterALoss, but the release itself finds the field gone.
func TestALostSendIsCleanedUpAfterAReleaseThatFoundNothing(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		slow, fast := s.network(), s.network()
		over := slow
		rdb := s.clientDialing(func(ctx context.Context, nw, addr string) (net.Conn, error) { return over.Dial(ctx, nw, addr) })
		m, _ := manager(t, rdb, anteroom.Config{})
		mu := m.Mutex("k")
		ok(t, acquire(t, mu).Release(bg)) // a connection is made
		over = fast
		slow.BlackHole()
		h := acquire(t, mu) // by a repeat; the first send is still on its way
		s.Del("k")
		t.Log(h.Release(bg)) // ErrLost: found gone when it was released
		slow.Heal()          // now the first attempt arrives
		time.Sleep(5 * time.Second)
		if s.Exists("k") {
			fields, _ := s.HKeys("k")
			t.Errorf("left behind without anybody to clean it up: %v, TTL %v, %+v", fields, s.TTL("k"), m.Snapshot())
		}
	})
}

// As above with MinHold: the mark of the release is not taken for the late acquire.
func TestALostSendIsCleanedUpAfterMinHold(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		slow, fast := s.network(), s.network()
		over := slow
		rdb := s.clientDialing(func(ctx context.Context, nw, addr string) (net.Conn, error) { return over.Dial(ctx, nw, addr) })
		m, _ := manager(t, rdb, anteroom.Config{})
		warm := m.Mutex("warm")
		ok(t, acquire(t, warm).Release(bg)) // a connection is made
		mu := mutex(t, m, anteroom.LockConfig{Key: "k", MinHold: 2 * time.Second})
		over = fast
		slow.BlackHole()
		h := acquire(t, mu) // by a repeat; the first send is still on its way
		ok(t, h.Release(bg))
		time.Sleep(2200 * time.Millisecond) // MinHold is over
		if s.Exists("k") {
			t.Fatal("still kept")
		}
		slow.Heal() // now the first attempt arrives
		time.Sleep(5 * time.Second)
		if s.Exists("k") {
			fields, _ := s.HKeys("k")
			t.Errorf("left behind without anybody to clean it up: %v, TTL %v, %+v", fields, s.TTL("k"), m.Snapshot())
		}
	})
}

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
func TestCloseWaitsForTheCleanUpOfALoss(t *testing.T) {
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
