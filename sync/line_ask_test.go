package anteroom_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
)

// A call has no copies on replicas yet: the called one writes and waits itself, on its own connection. Where too few
// answer it is not in, and asks anew.
func TestLine_ACallIsNotBelievedWithoutItsReplicas(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{})
		rdb := s.client()
		b, _ := manager(t, rdb, anteroom.Config{})
		h := acquire(t, a.Mutex("k"))
		hook := &replicas{}
		rdb.AddHook(hook)
		got := s.waiting(t, bg, mutex(t, b, anteroom.LockConfig{Key: "k", Replicas: 1, ReplicaTimeout: 100 * time.Millisecond}))
		time.Sleep(100 * time.Millisecond)
		called := s.spots("k")[0].field()
		ok(t, h.Release(bg))
		h = <-got
		if n := hook.waits.Load(); n != 2 || h.Holder() == called {
			t.Errorf("in as %s, called as %s, after %d WAITs; want another field, after a second one", h.Holder(), called, n)
		}
		time.Sleep(5 * time.Second) // a late release
		if fields := s.holders("k"); !h.Held() || len(fields) != 1 || fields[0] != h.Holder() {
			t.Errorf("%v holds: %v; in Redis %v", h, h.Held(), fields)
		}
		ok(t, h.Release(bg))
		time.Sleep(time.Minute) // the release of the first one was late, and may have been
		s.nothing(t, "k")
		anteroom.NothingLeft(t, b)
	})
}

// The same on a server that has a replica: who was called is in when the replica has its lock.
func TestLine_ACalledGrantIsOnItsReplicas(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t, "--repl-diskless-sync-delay", "0")
	second := testredis.Start(t, "--replicaof", "127.0.0.1", strconv.Itoa(s.Port()))
	admin, replica := s.Client(t), second.Client(t, func(o *redis.Options) { o.MaxRetries = -1 })
	eventually(t, "the replica follows", func() bool { return admin.Wait(bg, 1, 100*time.Millisecond).Val() == 1 })
	// A connection of its own changes the client's options in go-redis 9.23, beside others, unless this is off.
	plain := func(o *redis.Options) {
		o.ReadTimeout = 2 * pace.Hang
		o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	}
	a, _ := manager(t, s.Client(t), anteroom.Config{})
	b, _ := manager(t, s.Client(t, plain), anteroom.Config{})
	mu := mutex(t, b, anteroom.LockConfig{Key: "k", Replicas: 1, LeaseTime: 20 * time.Minute, ReplicaTimeout: pace.Scale(4 * time.Second)})
	for range 10 {
		h := acquire(t, a.Mutex("k"))
		got := make(chan *anteroom.Hold, 1)
		go func() { got <- acquire(t, mu) }()
		eventually(t, "it waits in line", func() bool { return admin.Exists(bg, lineOf("k")).Val() == 1 })
		waits := s.Stats(t)["wait"]
		ok(t, h.Release(bg))
		h = <-got
		if held := replica.HExists(bg, "k", h.Holder()).Val(); !held {
			t.Error("the replica does not have it")
		}
		if n := s.Stats(t)["wait"] - waits; n != 1 {
			t.Errorf("%d WAITs", n)
		}
		ok(t, h.Release(bg))
	}
}

// A release that MinHold keeps notifies the first in line when the lock is free. It comes then, and
// with one command; the others do not.
func TestLine_TheFirstAsksWhenMinHoldEnds(t *testing.T) {
	for _, phase := range []time.Duration{0, 300 * time.Millisecond, 600 * time.Millisecond, 900 * time.Millisecond} {
		bubble(t, func(t *testing.T, s *embedded) {
			a, _ := manager(t, s.client(), anteroom.Config{})
			var managers []*anteroom.Manager
			var sent []*traffic
			for range 3 {
				rdb, c := s.client(), &traffic{}
				rdb.AddHook(c)
				m, _ := manager(t, rdb, anteroom.Config{})
				managers, sent = append(managers, m), append(sent, c)
			}
			began := time.Now()
			h := acquire(t, mutex(t, a, anteroom.LockConfig{Key: "k", MinHold: 5*time.Second + phase}))
			var got []<-chan *anteroom.Hold
			for _, m := range managers {
				got = append(got, s.waiting(t, bg, m.Mutex("k")))
			}
			time.Sleep(time.Until(began.Add(4900*time.Millisecond + phase)))
			for _, c := range sent {
				c.take()
			}
			ok(t, h.Release(bg)) // 100 ms early
			next := <-got[0]
			if late := time.Since(began.Add(5*time.Second + phase)); late < 0 || late > 20*time.Millisecond {
				t.Errorf("in %v after the end of MinHold", late)
			}
			for i, c := range sent {
				if n := c.take(); n > 2 { // beside it a confirmation may be due
					t.Errorf("number %d has sent %d commands", i, n)
				}
			}
			ok(t, next.Release(bg))
			for _, c := range got[1:] {
				ok(t, (<-c).Release(bg))
			}
			s.nothing(t, "k")
		})
	}
}

// A call overtakes the answer that has made the place: it is entered without a command, and the answer changes nothing.
// Only a caller that cannot be stopped waits for its own answer in any case.
func TestLine_ACallBeforeTheAnswerThatWaits(t *testing.T) {
	for _, stops := range []bool{true, false} {
		bubble(t, func(t *testing.T, s *embedded) {
			cfg := anteroom.LockConfig{Key: "k", Fencing: true}
			a, _ := manager(t, s.client(), anteroom.Config{})
			slow, sent := newSlowAcquire(s.client(), true), &traffic{}
			slow.AddHook(sent)
			b, _ := manager(t, slow, anteroom.Config{})
			ok(t, acquire(t, mutex(t, b, anteroom.LockConfig{Key: "warm", Fencing: true})).Release(bg)) // it listens
			s.settle()
			h := acquire(t, mutex(t, a, cfg))
			slow.armed.Store(true)
			ctx := bg
			if stops {
				c, cancel := context.WithCancel(bg)
				defer cancel()
				ctx = c
			}
			got := s.waiting(t, ctx, mutex(t, b, cfg))
			<-slow.at
			before := tokenOf(h)
			sent.take()
			ok(t, h.Release(bg))
			s.settle()
			if stops {
				h = isIn(t, got)
			}
			close(slow.let)
			s.settle()
			if !stops {
				h = isIn(t, got)
			}
			if n := sent.take(); n != 0 || tokenOf(h) <= before {
				t.Errorf("%d commands to enter; token %d after %d", n, tokenOf(h), before)
			}
			s.onlyHolder(t, h)
			ok(t, h.Release(bg))
			s.settle()
			s.nothing(t, "k")
			anteroom.NothingLeft(t, b)
		})
	}
}
