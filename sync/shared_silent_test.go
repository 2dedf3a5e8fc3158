package anteroom_test

import (
	"context"
	"testing"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
)

// Whoever waits for what its own process frees does not wait for Redis, also with a context that never ends.
func TestShared_WhatTheProcessFreesNeedsNoAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		net := s.network()
		a, _ := manager(t, s.clientOver(net), anteroom.Config{})
		b, _ := manager(t, s.client(), anteroom.Config{})
		mine, other := must[theHold](t)(a.Semaphore("k", 2).Acquire(bg, 1)), must[theHold](t)(b.Semaphore("k", 2).Acquire(bg, 1))
		time.Sleep(3 * time.Second) // both are renewed
		net.BlackHole()
		began, in := time.Now(), make(chan theHold)
		go func() {
			h, _ := a.Semaphore("k", 2).Acquire(bg, 1)
			in <- h
		}()
		time.Sleep(100 * time.Millisecond)
		ok(t, mine.Release(bg))
		h := <-in
		if took := time.Since(began); took > 200*time.Millisecond {
			t.Errorf("it came in after %v", took)
		}
		net.Heal()
		ok(t, h.Release(bg))
		ok(t, other.Release(bg))
	})
}

// So does a reader behind a writer of its process, which gives up.
func TestShared_AReaderBehindAWriterThatGivesUpNeedsNoAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		net := s.network()
		a, _ := manager(t, s.clientOver(net), anteroom.Config{})
		b, _ := manager(t, s.client(), anteroom.Config{})
		mine, other := must[theHold](t)(a.RWMutex("k").RAcquire(bg)), must[theHold](t)(b.RWMutex("k").RAcquire(bg))
		time.Sleep(3 * time.Second) // both are renewed
		net.BlackHole()
		ctx, cancel := context.WithCancel(bg)
		gone, in := make(chan error), make(chan theHold)
		go func() { _, err := a.RWMutex("k").Acquire(ctx); gone <- err }()
		time.Sleep(50 * time.Millisecond)
		go func() { in <- must[theHold](t)(a.RWMutex("k").RAcquire(bg)) }()
		time.Sleep(50 * time.Millisecond)
		began := time.Now()
		cancel()
		if err := <-gone; err == nil {
			t.Error("the writer came in")
		}
		h := <-in
		if took := time.Since(began); took > 200*time.Millisecond {
			t.Errorf("it came in after %v", took)
		}
		net.Heal()
		for _, hold := range []theHold{h, mine, other} {
			ok(t, hold.Release(bg))
		}
	})
}
