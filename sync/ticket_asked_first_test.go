package anteroom_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/faultnet"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// Parts of the command by which Resume takes the lock, as it is sent and as its arguments: it comes after the question whether
// the ticket is there.
const (
	takeText = "\r\n{}\r\n$0\r\n\r\n$0\r\n\r\n$56\r\nticket."
	takeArgs = "{}ticket."
)

// Redis is away: a Seize that fails has taken nothing from a Hold of its own process.
func TestSeize_WithoutRedisItTakesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		net := s.network()
		m, events := manager(t, s.clientOver(net), anteroom.Config{})
		h := acquire(t, m.Mutex("k"))
		time.Sleep(time.Second) // it is renewed
		ctx, cancel := context.WithTimeout(bg, 5*time.Second)
		defer cancel()
		net.BlackHole()
		if _, err := m.Mutex("k").Seize(ctx); !errors.Is(err, anteroom.ErrUnavailable) {
			t.Errorf("%v", err)
		}
		ok(t, h.Err())
		if lost := events.of(observe.EventLost); len(lost) > 0 {
			t.Errorf("a loss is reported: %v", lost[0].Reason)
		}
		net.Heal()
		seized := seize(t, m)
		if err := h.Err(); !errors.Is(err, anteroom.ErrLost) {
			t.Errorf("after Seize: %v", err)
		}
		_, _ = h.Release(bg), seized.Release(bg)
	})
}

// The margin is for what two clocks differ by in one lease. So a resumed hold is relied on for one lease from an answer, and
// not for the time of its ticket.
func TestTicket_AResumedHoldReliesOnOneLease(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b, net := s.two(t)
		const lease = 10 * time.Second
		cfg := anteroom.LockConfig{Key: "k", LeaseTime: lease}
		ticket := must[anteroom.Ticket](t)(acquire(t, mutex(t, a, cfg)).Detach(bg, time.Hour))
		h := must[*anteroom.Hold](t)(mutex(t, b, cfg).Resume(bg, ticket))
		if left := time.Until(h.Deadline()); left > lease {
			t.Errorf("it is relied on for %v", left)
		}
		time.Sleep(time.Minute)
		ok(t, h.Err()) // it is renewed
		net.BlackHole()
		ctx := h.Context()
		start := time.Now()
		<-ctx.Done()
		if took := time.Since(start); took > lease {
			t.Errorf("without Redis its holder was notified after %v", took)
		}
		net.Heal()
		_ = h.Release(bg)
	})
}

// What a ticket brought goes back for the rest of the ticket's time, although it was relied on for less.
func TestTicket_WhatGoesBackKeepsItsTime(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b, net := s.two(t)
		ok(t, acquire(t, b.Mutex("warm"), anteroom.Note("n")).Release(bg))
		ticket := detached(t, a, time.Hour)
		net.OnRequest("\r\n$1\r\nx\r\n", 1, faultnet.Late(500*time.Millisecond)) // the answer that brings its note
		ctx, cancel := context.WithTimeout(bg, 100*time.Millisecond)
		defer cancel()
		if _, err := b.Mutex("k").Resume(ctx, ticket, anteroom.Note("x")); err == nil || net.Waiting() != 0 {
			t.Fatalf("%v; %d traps", err, net.Waiting())
		}
		time.Sleep(10 * time.Second)
		if ttl := s.TTL("k"); ttl < 59*time.Minute {
			t.Errorf("the ticket is left %v; Redis has %v", ttl, s.holders("k"))
		}
		ok(t, resume(t, a, ticket).Release(bg))
	})
}

// Close ends a Resume that waits for the answer of a Redis that is silent.
func TestTicket_CloseEndsAResume(t *testing.T) {
	for name, holds := range map[string]bool{"free here": false, "held here": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				a, b, net := s.two(t)
				dead := deadTicket(t, a)
				if holds {
					h := acquire(t, b.Mutex("k"))
					time.Sleep(time.Second) // it is renewed
					defer func() { _ = h.Release(bg) }()
				}
				net.BlackHole()
				ended := make(chan error, 1)
				go func() { _, err := b.Mutex("k").Resume(bg, dead); ended <- err }()
				time.Sleep(3 * time.Second)
				start := time.Now()
				go func() { _ = b.CloseWithin(3 * time.Second) }()
				err := <-ended
				if took := time.Since(start); took > 10*time.Millisecond || !errors.Is(err, anteroom.ErrClosed) {
					t.Errorf("after %v: %v", took, err)
				}
				net.Heal()
			})
		})
	}
}

// One goroutine resumes a ticket that is worth nothing, again and again: others of its process come in, and the lock is not even
// asked for.
func TestTicket_ADeadOneKeepsNobodyOut(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		counts, net := newCounter(), s.network()
		a, _ := manager(t, s.client(), anteroom.Config{})
		net.Latency(time.Millisecond, 0, 1)
		b, _ := manager(t, s.clientOver(net), anteroom.Config{Observer: hooks(counts)})
		warmForce(t, a, b)
		dead := deadTicket(t, a)
		before := counts.get("command/acquire")
		if _, err := b.Mutex("k").Resume(bg, dead); !errors.Is(err, anteroom.ErrNotHeld) {
			t.Errorf("%v", err)
		}
		if asked := counts.get("command/acquire") - before; asked != 0 {
			t.Errorf("a dead ticket has asked for the lock %d times", asked)
		}
		h := acquire(t, a.Mutex("k"))
		waiter := s.waiting(t, bg, b.Mutex("k"))
		ctx, cancel := context.WithCancel(bg)
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			for ctx.Err() == nil {
				_, _ = b.Mutex("k").Resume(bg, dead)
			}
		}()
		time.Sleep(100 * time.Millisecond)
		ok(t, h.Release(bg))
		select {
		case h := <-waiter:
			ok(t, h.Release(bg))
		case <-time.After(time.Second):
			t.Error("a waiter of its process has not come in for a second after the lock was free")
		}
		cancel()
		<-stopped
	})
}

// A goroutine has lost its Lock and not unlocked it. Redis answers: so a ticket that counts is as it was, and somebody has the
// lock here; one that does not is worth nothing.
func TestTicket_ResumeBesideALostLock(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b, _ := s.two(t)
		dead := deadTicket(t, b)
		mu := a.Mutex("k")
		mu.Lock()
		ticket := must[anteroom.Ticket](t)(seize(t, b).Detach(bg, time.Hour))
		s.settle()
		for name, c := range map[string]struct {
			ticket anteroom.Ticket
			want   error
		}{"live": {ticket, anteroom.ErrNotAcquired}, "dead": {dead, anteroom.ErrNotHeld}} {
			ctx, cancel := context.WithTimeout(bg, time.Second)
			_, err := mu.Resume(ctx, c.ticket)
			if !errors.Is(err, c.want) || errors.Is(err, anteroom.ErrUnavailable) {
				t.Errorf("%s: %v", name, err)
			}
			cancel()
		}
		got := make(chan *anteroom.Hold, 1)
		go func() { got <- resume(t, a, ticket) }()
		time.Sleep(time.Second)
		mu.Unlock()
		ok(t, (<-got).Release(bg))
	})
}

// What its caller does not wait for any more is no outage of Redis.
func TestTicket_AResumeThatIsCutOffIsNoOutage(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{})
		net := s.network()
		b, rec := manager(t, s.clientOver(net), anteroom.Config{})
		warmForce(t, a, b)
		ticket := detached(t, a, time.Hour)
		net.Delay(50 * time.Millisecond)
		ctx, cancel := context.WithTimeout(bg, 5*time.Millisecond)
		defer cancel()
		if _, err := b.Mutex("k").Resume(ctx, ticket); !errors.Is(err, anteroom.ErrUnavailable) {
			t.Errorf("%v", err)
		}
		time.Sleep(time.Second)
		if got := rec.counted(observe.EventUnavailable, observe.EventAvailable); got != "0 unavailable, 0 available" {
			t.Error(got)
		}
		net.Heal()
		ok(t, resume(t, b, ticket).Release(bg))
	})
}

// A Resume asks for the ticket while another one of its process takes it, which then gives up: the ticket is there again.
func TestTicket_ResumeBesideOneThatGivesUp(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{})
		net := s.network()
		rdb, hook := s.clientOver(net), &slowOnce{text: "ticket.", d: 50 * time.Millisecond}
		rdb.AddHook(hook)
		b, _ := manager(t, rdb, anteroom.Config{})
		warmForce(t, a, b)
		ticket := detached(t, a, time.Hour)
		hook.armed.Store(true)
		second := make(chan error, 1)
		go func() {
			h, err := b.Mutex("k").Resume(bg, ticket)
			if err == nil {
				err = h.Release(bg)
			}
			second <- err
		}()
		time.Sleep(10 * time.Millisecond)
		net.OnRequest(takeText, 1, faultnet.Late(500*time.Millisecond))
		ctx, cancel := context.WithTimeout(bg, 300*time.Millisecond)
		defer cancel()
		if _, err := b.Mutex("k").Resume(ctx, ticket); !errors.Is(err, anteroom.ErrUnavailable) {
			t.Errorf("the first: %v", err)
		}
		if err := <-second; err != nil {
			t.Errorf("the second: %v", err)
		}
	})
}
