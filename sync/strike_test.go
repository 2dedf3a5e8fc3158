package anteroom

import (
	"context"
	"testing"
	"time"

	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/renewal"
	"github.com/anteroom/anteroom/watchdog"
)

// heir acquires k in the background, behind the owner, and returns when it is parked.
func heir(t *testing.T, m *Manager, mu *Mutex) <-chan *Hold {
	t.Helper()
	got := make(chan *Hold, 1)
	go func() {
		h, err := mu.Acquire(context.Background(), Wait(10*time.Second))
		if err != nil {
			t.Error(err)
		}
		got <- h
	}()
	for e := mu.find(); e.q.Len() == 0; {
		time.Sleep(time.Millisecond)
	}
	return got
}

// The watchdog strikes an owner in the moment in which that owner has decided to pass the
// grant on: the next one does not get it, and has a lock of its own.
func TestWatchdog_WhatStrikesOneOwnerSparesTheNext(t *testing.T) {
	for name, strike := range map[string]func(a *services, id uint64) bool{
		"stop renewing": func(a *services, id uint64) bool { return a.Act(id, watchdog.ActionStopRenewing, watchdog.OverMaxHold) },
		"cancel":        func(a *services, id uint64) bool { return a.Act(id, watchdog.ActionCancel, watchdog.OverMaxHold) },
	} {
		t.Run(name, func(t *testing.T) {
			m := insideManager(t, Config{})
			defer func() { _ = m.Close(context.Background()) }()
			mu, err := m.NewMutex(LockConfig{Key: "k", MaxHold: time.Millisecond, WatchdogPeriod: time.Hour, MaxHandoffTime: time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			first, err := mu.Acquire(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			tenure := first.t
			g, e := tenure.g, tenure.g.e
			next := heir(t, m, mu)
			for time.Since(tenure.began()) < mu.Config().MaxHold {
				time.Sleep(time.Millisecond)
			}
			if !g.mayHandOff(int(tenure.handOffs), m.leases.Now()) {
				t.Fatal("there is nothing to pass on")
			}
			if !strike(&services{m: m}, g.n) { // between the decision and the hand-off
				t.Fatal("the accused was spared")
			}
			exit, order := e.q.Exit(tenure.number, true)
			e.do(order)
			if exit != queue.HandedOff {
				g.burnLost() // the loss came first, and its owner gives it up: see exit
			}
			e.unref()
			h := <-next // before the end of the lease that was given up: nobody works under it
			if h == nil {
				return
			}
			if h.t.g == g {
				t.Error("the next owner got the grant that was given up")
			}
			if lease := h.t.g.lease.Load(); lease.State() != renewal.StateActive || lease.NextDue().IsZero() {
				t.Error("the next owner's lease is not renewed")
			}
			if err := h.Release(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
}

// An owner that has passed the grant on is out of the watchdog's reach, and so is who
// came after it.
func TestWatchdog_AnAccusationExpiresWithItsOwner(t *testing.T) {
	m := insideManager(t, Config{})
	defer func() { _ = m.Close(context.Background()) }()
	mu, err := m.NewMutex(LockConfig{Key: "k", MaxHold: time.Minute, WatchdogPeriod: time.Hour, MaxHandoffTime: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	first, err := mu.Acquire(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	first.t.since -= time.Hour // long ago; nobody reads it at the moment
	next := heir(t, m, mu)
	if err := first.Release(context.Background()); err != nil {
		t.Fatal(err)
	}
	h := <-next
	if h == nil || h.t.g != first.t.g {
		t.Fatal("not handed on")
	}
	a, id := &services{m: m}, h.t.g.n
	if a.Act(id, watchdog.ActionStopRenewing, watchdog.OverMaxHold) || a.Act(id, watchdog.ActionCancel, watchdog.OverMaxHold) || a.Act(id, watchdog.ActionCancel, watchdog.HolderUnreachable) {
		t.Error("struck the next owner")
	}
	if e := h.t.g.e; e.q.Word().State() != queue.Owned || !h.Held() {
		t.Error("the next owner's lock is gone")
	}
	if err := h.Release(context.Background()); err != nil {
		t.Error(err)
	}
}

// The check and the act are one step under the lock in which owners are admitted: a strike
// that meets an admission waits for it, and then finds another owner than the accused.
func TestWatchdog_AStrikeWaitsForAnAdmission(t *testing.T) {
	m := insideManager(t, Config{})
	defer func() { _ = m.Close(context.Background()) }()
	mu, err := m.NewMutex(LockConfig{Key: "k", MaxHold: time.Hour, WatchdogPeriod: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	h, err := mu.Acquire(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	g := h.t.g
	g.e.mu.Lock()
	h.t.since -= 2 * time.Hour
	struck := make(chan bool, 1)
	go func() { struck <- (&services{m: m}).Act(g.n, watchdog.ActionCancel, watchdog.OverMaxHold) }()
	select {
	case <-struck:
		t.Error("struck while an owner was being admitted")
		struck <- false
	case <-time.After(50 * time.Millisecond):
	}
	h.t.since += 2 * time.Hour // the next owner
	g.e.mu.Unlock()
	if <-struck || !h.Held() {
		t.Error("the next owner was struck")
	}
	_ = h.Release(context.Background())
}
