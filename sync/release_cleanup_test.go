package anteroom_test

import (
	"context"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/faultnet"
	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
)

// clientFrom returns a client whose connections are made over n, and later ones over what over is called with.
func (s *embedded) clientFrom(n *faultnet.Network) (c *redis.Client, over func(*faultnet.Network)) {
	var present atomic.Pointer[faultnet.Network]
	present.Store(n)
	return s.clientDialing(func(ctx context.Context, nw, addr string) (net.Conn, error) {
		return present.Load().Dial(ctx, nw, addr)
	}), present.Store
}

// A send whose answer was lost is cleaned up also where its repeat was refused because
// too few replicas confirmed it.
func TestALostSendIsCleanedUpAfterAReplicaRefusal(t *testing.T) {
	for range 10 {
		bubble(t, func(t *testing.T, s *embedded) {
			slow, fast := s.network(), s.network()
			rdb, over := s.clientFrom(slow)
			m, _ := manager(t, rdb, anteroom.Config{})
			mu := mutex(t, m, anteroom.LockConfig{Key: "k", Replicas: 1, ReplicaTimeout: 100 * time.Millisecond})
			ctx, cancel := context.WithTimeout(bg, 50*time.Millisecond)
			_, _ = mu.Acquire(ctx) // a connection is made
			cancel()
			time.Sleep(time.Second)
			over(fast)
			slow.BlackHole() // the first attempt is on its way for a long time
			ctx, cancel = context.WithTimeout(bg, 2500*time.Millisecond)
			defer cancel()
			_, err := mu.Acquire(ctx) // the repeat is granted, and released for want of replicas
			t.Log(err)
			slow.Heal() // now the first attempt arrives
			time.Sleep(5 * time.Second)
			if s.Exists("k") {
				fields, _ := s.HKeys("k")
				t.Errorf("left behind without anybody to clean it up: %v, TTL %v, %+v", fields, s.TTL("k"), m.Snapshot())
			}
		})
		if t.Failed() {
			return
		}
	}
}

// lateSend gives f a hold of "k" by the second acquire: the first one is on its way until arrives is called.
func lateSend(t *testing.T, cfg anteroom.LockConfig, opts []anteroom.AcquireOption, f func(t *testing.T, s *embedded, m *anteroom.Manager, h *anteroom.Hold, arrives func())) {
	bubble(t, func(t *testing.T, s *embedded) {
		slow, fast := s.network(), s.network()
		rdb, over := s.clientFrom(slow)
		m, _ := manager(t, rdb, anteroom.Config{})
		ok(t, acquire(t, m.Mutex("warm")).Release(bg)) // a connection is made
		over(fast)
		slow.BlackHole()
		cfg.Key = "k"
		f(t, s, m, acquire(t, mutex(t, m, cfg), opts...), slow.Heal)
	})
}

// The same where the lock was held by a later acquire, however the hold has ended: the first acquire may still arrive.
func TestALostSendIsCleanedUpAfterAHold(t *testing.T) {
	for name, c := range map[string]struct {
		cfg anteroom.LockConfig
		end func(t *testing.T, s *embedded, m *anteroom.Manager, h *anteroom.Hold)
	}{
		"a loss": {end: func(t *testing.T, _ *embedded, m *anteroom.Manager, h *anteroom.Hold) {
			_, err := m.ForceRelease(bg, "k")
			ok(t, err)
			time.Sleep(10 * time.Millisecond)
			if h.Held() {
				t.Fatal("no report")
			}
			_ = h.Release(bg)
		}},
		"a release that finds nothing": {end: func(t *testing.T, s *embedded, _ *anteroom.Manager, h *anteroom.Hold) {
			s.Del("k")
			t.Log(h.Release(bg)) // ErrLost: found gone when it was released
		}},
		"MinHold": {cfg: anteroom.LockConfig{MinHold: 2 * time.Second}, end: func(t *testing.T, s *embedded, _ *anteroom.Manager, h *anteroom.Hold) {
			ok(t, h.Release(bg))
			time.Sleep(2200 * time.Millisecond) // MinHold is over
			if s.Exists("k") {
				t.Fatal("still kept")
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			lateSend(t, c.cfg, nil, func(t *testing.T, s *embedded, m *anteroom.Manager, h *anteroom.Hold, arrives func()) {
				c.end(t, s, m, h)
				arrives()
				time.Sleep(5 * time.Second)
				if s.Exists("k") {
					fields, _ := s.HKeys("k")
					t.Errorf("left behind without anybody to clean it up: %v, TTL %v, %+v", fields, s.TTL("k"), m.Snapshot())
				}
			})
		})
	}
}

// Clean-ups and granted attempts of one key, many times, with the race detector.
func TestCleanUpsBesideGrantedAttempts(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	n := faultnet.New(nil)
	m, _ := manager(t, s.Client(t, overNetwork(n)), anteroom.Config{})
	raw := s.Client(t)
	for i := range 400 {
		mu := m.Mutex("k" + strconv.Itoa(i))
		ctx, cancel := context.WithCancel(bg)
		done := make(chan struct{})
		go func() {
			defer close(done)
			n.CutReplies(1, 0)
			if h, err := mu.Acquire(ctx); err == nil {
				_ = h.Release(bg)
			}
		}()
		for raw.Exists(bg, mu.Key()).Val() == 0 {
			select {
			case <-done:
			default:
				continue
			}
			break
		}
		time.Sleep(time.Duration(i%10) * 30 * time.Microsecond)
		cancel()
		<-done
		n.Heal()
		time.Sleep(time.Duration(i%13) * 20 * time.Microsecond)
		_ = acquire(t, mu).Release(bg)
	}
}

// The clean-up of an unconfirmed release continues as long as the key may live.
func TestTheCleanUpLastsAsLongAsAnExtendedLease(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		h := acquire(t, m.Mutex("k"), anteroom.Lease(2*time.Second))
		ok(t, h.Extend(bg, time.Hour))
		s.net.Refuse()
		s.net.CloseAll()
		_ = h.Release(bg) // continues in the background until the lease has passed
		time.Sleep(5 * time.Second)
		s.net.Heal()
		time.Sleep(time.Minute)
		if s.Exists("k") {
			t.Errorf("a minute after Redis came back the released lock is still there, TTL %v: the clean-up gave up after the first lease", s.TTL("k"))
		}
	})
}

// The holder releases as soon as it is notified, and the key is locked again, while the
// loss is still being dealt with.
func TestALossNeverForgetsALiveKey_Lab(t *testing.T) {
	s := newEmbedded(t)
	m, _ := manager(t, s.client(), anteroom.Config{})
	mu := mutex(t, m, anteroom.LockConfig{Key: "k", LeaseTime: time.Second})
	h := acquire(t, mu)
	ctx := h.Context()
	var stops []context.CancelFunc
	for range 200_000 { // a busy server: many requests under one hold
		_, stop := context.WithCancel(ctx)
		stops = append(stops, stop)
	}
	defer func() {
		for _, stop := range stops {
			stop()
		}
	}()
	s.net.BlackHole()
	<-ctx.Done()
	_ = h.Release(bg)
	s.net.Heal()
	mu.Lock() // while the old entry's clean-up is pending
	time.Sleep(3 * time.Second)
	if len(m.Snapshot()) != 1 {
		t.Errorf("the lock is held and the Manager has forgotten its key: %+v", m.Snapshot())
	}
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("Unlock of a held lock panics: %v", p)
		}
	}()
	mu.Unlock()
}

// A lock that is given up and not removed ends with its lease, also where an earlier
// acquire of its field may still arrive: its owner's work may still run.
func TestALostSendDoesNotEndALockEarly(t *testing.T) {
	for name, giveUp := range map[string]func(m *anteroom.Manager, h *anteroom.Hold){
		"closed": func(m *anteroom.Manager, _ *anteroom.Hold) {
			ctx, cancel := context.WithTimeout(bg, time.Second)
			defer cancel()
			_ = m.Close(ctx)
		},
		"fixed lease": func(_ *anteroom.Manager, h *anteroom.Hold) { <-h.Context().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			lateSend(t, anteroom.LockConfig{}, []anteroom.AcquireOption{anteroom.Lease(20 * time.Second)}, func(t *testing.T, s *embedded, m *anteroom.Manager, h *anteroom.Hold, arrives func()) {
				giveUp(m, h)
				for s.TTL("k") > 100*time.Millisecond {
					time.Sleep(50 * time.Millisecond)
				}
				if !s.Exists("k") {
					t.Errorf("removed under an owner that may still be working")
				}
				_ = h.Release(bg)
				time.Sleep(time.Second)
				arrives()
				time.Sleep(30 * time.Second)
			})
		})
	}
}

// The key of a fixed lease lasts no longer than that, also where its answer takes longer than a renewal waits.
func TestAFixedLeaseIsNotRenewedMeanwhile(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		ok(t, acquire(t, m.Mutex("warm")).Release(bg))
		s.net.Delay(150 * time.Millisecond)
		h := acquire(t, m.Mutex("k"), anteroom.Lease(3*time.Second))
		time.Sleep(time.Second)
		if left := s.TTL("k"); left > 3*time.Second {
			t.Errorf("the key lasts for %v more", left)
		}
		s.net.Heal()
		ok(t, h.Release(bg))
	})
}

// Who comes next in the process has a lease of its own, not what the one before has asked for.
func TestWhatAnOwnerExtendedIsItsOwn(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		mu := m.Mutex("k")
		h, next := acquire(t, mu), make(chan *anteroom.Hold, 1)
		go func() { next <- acquire(t, mu) }()
		synctest.Wait()
		ok(t, h.Extend(bg, 12*time.Hour))
		ok(t, h.Release(bg))
		h = <-next
		time.Sleep(time.Second)
		if left, ttl := h.TTL(), s.TTL("k"); left > 30*time.Second || ttl > 30*time.Second {
			t.Errorf("%v are left, and %v in Redis", left, ttl)
		}
		ok(t, h.Release(bg))
	})
}
