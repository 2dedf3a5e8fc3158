package anteroom_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
)

// Nobody reports a crash: a waiter asks when the holder's lease is over, and not at its
// next poll.
func TestDriver_TheHoldersLeaseEndsTheWait(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		for _, lease := range []time.Duration{700 * time.Millisecond, 5 * time.Second, 40 * time.Second} {
			s.HSet("k", "foreign", "1")
			s.SetTTL("k", lease)
			start := time.Now()
			ok(t, acquire(t, m.Mutex("k")).Release(bg))
			if late := time.Since(start) - lease; late < 0 || late > 20*time.Millisecond {
				t.Errorf("a lease of %v: %v late", lease, late)
			}
		}
	})
}

// An Acquire gives up while its answer is open. What it has set is removed soon, and not
// only when its lease of half a minute ends it.
func TestDriver_WhatNobodyWantsIsRemoved(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		ok(t, acquire(t, m.Mutex("k")).Release(bg)) // the connection is there
		s.net.HoldReplies()
		ctx, cancel := context.WithTimeout(bg, 300*time.Millisecond)
		defer cancel()
		if h, err := m.Mutex("k").Acquire(ctx); err == nil {
			t.Fatalf("%v acquired without an answer", h)
		}
		if !s.Exists("k") {
			t.Fatal("the acquire has not reached Redis, so nothing is tested")
		}
		time.Sleep(2 * time.Second) // longer than CommandTimeout: the attempt is over
		s.net.Heal()
		time.Sleep(5 * time.Second)
		if s.Exists("k") {
			t.Error("the lock is still taken")
		}
	})
}

// A turn that is kept begins a lease of its own: the next owner comes in immediately, and keeps
// the lock for longer than the first lease.
func TestTurn_AKeptTurnIsRenewed(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		mu := mutex(t, m, anteroom.LockConfig{Key: "k", MaxHandoffs: 1, MaxHandoffTime: time.Minute})
		first := acquire(t, mu)
		start := time.Now()
		got := make(chan *anteroom.Hold)
		for range 2 {
			go func() { got <- acquire(t, mu) }()
		}
		synctest.Wait()
		ok(t, first.Release(bg))
		ok(t, (<-got).Release(bg)) // the one hand-off
		third := <-got
		if took := time.Since(start); took > time.Second {
			t.Errorf("the third owner came in after %v", took)
		}
		time.Sleep(2 * time.Minute)
		if err := third.Err(); err != nil {
			t.Errorf("after two minutes: %v", err)
		}
		ok(t, third.Release(bg))
	})
}

// A caller that only tries has its answer after one attempt, also where that brought none.
func TestDriver_ATryDoesNotRetry(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		s.net.Refuse()
		ctx, cancel := context.WithTimeout(bg, time.Minute)
		defer cancel()
		start := time.Now()
		_, err := m.Mutex("k").TryAcquire(ctx)
		if !errors.Is(err, anteroom.ErrUnavailable) || time.Since(start) > 5*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		s.net.Heal()
	})
}

// A Hold is released once; what its second Release would free is somebody else's.
func TestHold_IsReleasedOnce(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		first := acquire(t, m.Mutex("k"))
		ok(t, first.Release(bg))
		next := acquire(t, m.Mutex("k"))
		if err := first.Release(bg); !errors.Is(err, anteroom.ErrNotHeld) {
			t.Errorf("a second Release: %v", err)
		}
		if !next.Held() {
			t.Error("it has ended the next hold")
		}
		inner, err := m.Mutex("k").Acquire(next.Context())
		ok(t, err)
		ok(t, inner.Release(bg))
		if err := inner.Release(bg); !errors.Is(err, anteroom.ErrNotHeld) {
			t.Errorf("a second Release beside another Hold of its owner: %v", err)
		}
		if !next.Held() {
			t.Error("it has released the other Hold")
		}
		ok(t, next.Release(bg))
	})
}

// Who waits beside a foreign holder listens for its release, and not who only tries: its subscription would count as a
// program that waits, and a release would leave the lock to it for a moment, so that the next try would be refused beside
// a free lock.
func TestDriver_ATryDoesNotListen(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		mu := m.Mutex("k")
		ok(t, acquire(t, mu).Release(bg))
		s.HSet("k", "foreign", "1")
		if _, err := mu.TryAcquire(bg); !errors.Is(err, anteroom.ErrNotAcquired) {
			t.Error(err)
		}
		s.settle()
		if n := s.PubSubNumSub("lock:release:k")["lock:release:k"]; n != 0 {
			t.Errorf("%d listen for a try", n)
		}
		ctx, cancel := context.WithCancel(bg)
		got := s.waiting(t, ctx, mu)
		if n := s.PubSubNumSub("lock:release:k")["lock:release:k"]; n != 1 {
			t.Errorf("%d listen for a waiter", n)
		}
		cancel()
		<-got
		time.Sleep(time.Minute)
		if n := s.PubSubNumSub("lock:release:k")["lock:release:k"]; n != 0 {
			t.Errorf("%d listen for nobody", n)
		}
	})
}
