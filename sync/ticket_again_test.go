package anteroom_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/faultnet"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// Resume gave up before its answer; the caller tries again immediately, as recipes.md says.
func TestTaking_ResumeAgainImmediately(t *testing.T) {
	for name, fate := range map[string]faultnet.Fate{"late": faultnet.Late(800 * time.Millisecond), "lost": faultnet.Late(3 * time.Second)} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				a, b, net := s.two(t)
				ticket := detached(t, a, time.Hour)
				net.OnRequest(takeText, 1, fate)
				ctx, cancel := context.WithTimeout(bg, 500*time.Millisecond)
				defer cancel()
				if h, err := b.Mutex("k").Resume(ctx, ticket); err == nil { // the place was confirmed meanwhile
					ok(t, h.Release(bg))
					return
				}
				long, stop := context.WithTimeout(bg, time.Minute)
				defer stop()
				h, err := b.Mutex("k").Resume(long, ticket)
				if err != nil {
					time.Sleep(time.Second)
					other, err2 := a.Mutex("k").Resume(bg, ticket)
					t.Errorf("again: %v; elsewhere a second later: %v", err, err2)
					if other != nil {
						_ = other.Release(bg)
					}
					return
				}
				ok(t, h.Release(bg))
			})
		})
	}
}

// A job that is delivered three times.
func TestTaking_ResumedThrice(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b, net := s.two(t)
		ticket := detached(t, a, time.Hour)
		net.OnRequest(takeText, 1, faultnet.Late(200*time.Millisecond))
		type result struct {
			h   *anteroom.Hold
			err error
			at  time.Duration
		}
		results := make(chan result, 3)
		start := time.Now()
		ctx, cancel := context.WithTimeout(bg, 30*time.Second)
		defer cancel()
		for range 3 {
			go func() {
				h, err := b.Mutex("k").Resume(ctx, ticket)
				results <- result{h, err, time.Since(start)}
			}()
			time.Sleep(10 * time.Millisecond)
		}
		var in *anteroom.Hold
		for range 3 {
			r := <-results
			t.Log(r.h != nil, r.err, r.at)
			if r.h != nil {
				in = r.h
			}
			if r.at > 5*time.Second {
				t.Errorf("Resume waited %v for a holder", r.at)
			}
		}
		if in != nil {
			ok(t, in.Release(bg))
		}
	})
}

// Seize comes while a Resume is in dispute.
func TestTaking_SeizeBehindAResume(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{})
		net := s.network()
		net.PromptMessages()
		net.Latency(5*time.Millisecond, 0, 1)
		b, _ := manager(t, s.clientOver(net), anteroom.Config{})
		warmForce(t, a, b)
		dead := deadTicket(t, a)
		h := acquire(t, b.Mutex("k"))
		time.Sleep(time.Second)
		go func() {
			_, err := b.Mutex("k").Resume(bg, dead)
			t.Logf("resume: %v", err)
		}()
		time.Sleep(3 * time.Millisecond)
		ctx, cancel := context.WithTimeout(bg, 30*time.Second)
		defer cancel()
		start := time.Now()
		seized, err := b.Mutex("k").Seize(ctx)
		if took := time.Since(start); err != nil || took > time.Second {
			t.Errorf("Seize took %v: %v", took, err)
		}
		if seized != nil {
			_ = seized.Release(bg)
		}
		_ = h.Release(bg)
	})
}

// The old hold, which is lost unnoticed, is released while Redis is asked.
func TestTaking_HandedOffMeanwhile(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		b, a, net := s.two(t)
		old := acquire(t, a.Mutex("k"))
		time.Sleep(time.Second)
		net.HalfOpen(faultnet.PubSub)
		seized := seize(t, b)
		ticket := must[anteroom.Ticket](t)(seized.Detach(bg, 10*time.Minute))
		net.OnRequest(old.Holder(), 1, faultnet.Late(300*time.Millisecond))
		time.AfterFunc(50*time.Millisecond, func() { t.Logf("old: %v", old.Release(bg)) })
		ctx, cancel := context.WithTimeout(bg, time.Minute)
		defer cancel()
		h, err := a.Mutex("k").Resume(ctx, ticket)
		if err != nil {
			time.Sleep(time.Second)
			again, err2 := b.Mutex("k").Resume(bg, ticket)
			t.Errorf("%v; elsewhere the same ticket: %v", err, err2)
			if again != nil {
				_ = again.Release(bg)
			}
		}
		if h != nil {
			_ = h.Release(bg)
		}
	})
}

// Somebody has made the key persistent; the question of a Resume ends it.
func TestTaking_AQuestionEndsNoKey(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		rdb := s.client()
		a, b, _ := s.two(t)
		dead := deadTicket(t, a)
		h := acquire(t, a.Mutex("k"))
		time.Sleep(time.Second)
		rdb.Persist(bg, "k")
		_, err := a.Mutex("k").Resume(bg, dead)
		t.Logf("resume: %v", err)
		time.Sleep(50 * time.Millisecond)
		other, err := b.Mutex("k").TryAcquire(bg)
		if err == nil && h.Err() == nil {
			t.Errorf("two holders")
		}
		if other != nil {
			_ = other.Release(bg)
		}
		_ = h.Release(bg)
	})
}

// The same by a forged message about a fixed lease.
func TestTaking_AForgedMessageEndsNoKey(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		rdb := s.client()
		a, b, _ := s.two(t)
		h := acquire(t, a.Mutex("k"), anteroom.Lease(time.Hour))
		rdb.Persist(bg, "k")
		id, n, _ := lettucecompat.ParseField(h.Holder())
		s.Publish("anteroom:client:"+id, forgedNotice("k", n))
		time.Sleep(50 * time.Millisecond)
		other, err := b.Mutex("k").TryAcquire(bg)
		if err == nil && h.Err() == nil {
			t.Errorf("two holders")
		}
		if other != nil {
			_ = other.Release(bg)
		}
		_ = h.Release(bg)
	})
}

// Two commands that take are under way, and the first answer ends the wait for both.
func TestTaking_TwoCommandsUnderWay(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, c, _ := s.two(t)
		net := s.network()
		rdb, hook := s.clientOver(net), &slowOnce{text: takeArgs, d: 50 * time.Millisecond}
		rdb.AddHook(hook)
		b, _ := manager(t, rdb, anteroom.Config{})
		warmForce(t, a, b)
		h := acquire(t, a.Mutex("k"))
		ctx, cancel := context.WithCancel(bg)
		defer cancel()
		s.waiting(t, ctx, c.Mutex("k")) // place 0
		ticket := must[anteroom.Ticket](t)(h.Detach(bg, time.Hour))
		s.settle()
		hook.armed.Store(true)
		net.OnRequest(takeText, 1, faultnet.Late(500*time.Millisecond)) // the second one, since the first waits in the hook
		time.AfterFunc(20*time.Millisecond, cancel)
		short, stop := context.WithTimeout(bg, 58*time.Millisecond)
		defer stop()
		resumed, err := b.Mutex("k").Resume(short, ticket)
		t.Logf("%v", err)
		if resumed != nil {
			ok(t, resumed.Release(bg))
			return
		}
		time.Sleep(3 * time.Second)
		resumed, err = a.Mutex("k").Resume(bg, ticket)
		if err != nil {
			t.Errorf("the ticket: %v; Redis has %v", err, s.holders("k"))
			return
		}
		ok(t, resumed.Release(bg))
	})
}

// The answers to Detach are lost, the ticket is resumed, and then Detach is repeated.
func TestTaking_AResumedTicketIsNoLoss(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		net := s.network()
		a, events := manager(t, s.clientOver(net), anteroom.Config{})
		b, _ := manager(t, s.client(), anteroom.Config{})
		h := acquire(t, a.Mutex("k"))
		time.Sleep(time.Second)
		net.HoldReplies()
		ticket, err := h.Detach(bg, time.Hour)
		t.Logf("detach: %v, ticket %v", err, ticket != "")
		resumed := resume(t, b, ticket)
		net.Heal()
		time.Sleep(5 * time.Second)
		if lost := events.of(observe.EventLost); len(lost) > 0 {
			t.Errorf("a loss is reported of what was detached and resumed: %v %s", lost[0].Reason, lost[0].Text)
		}
		ok(t, resumed.Err())
		ok(t, resumed.Release(bg))
	})
}

// What a ticket brought goes back, the answer is lost, the ticket is resumed elsewhere, and the release is repeated.
func TestTaking_WhatGoesBackIsNoLoss(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{})
		net := s.network()
		b, events := manager(t, s.clientOver(net), anteroom.Config{})
		warmForce(t, a, b)
		ticket := detached(t, a, time.Hour)
		net.OnRequest(takeText, 1, faultnet.Late(300*time.Millisecond))
		ctx, cancel := context.WithTimeout(bg, 100*time.Millisecond)
		defer cancel()
		_, err := b.Mutex("k").Resume(ctx, ticket)
		t.Logf("%v", err)
		net.OnRequest("ticket.", 1, faultnet.Late(time.Second)) // the release that leaves it to the ticket
		time.Sleep(400 * time.Millisecond)
		net.OnRequest("ticket.", 1, faultnet.Lost)
		t.Log(s.holders("k"))
		resumed, err := a.Mutex("k").Resume(bg, ticket)
		t.Logf("elsewhere: %v", err)
		time.Sleep(5 * time.Second)
		if lost := events.of(observe.EventLost); len(lost) > 0 {
			t.Errorf("a loss is reported of what nobody has owned: %v %s", lost[0].Reason, lost[0].Text)
		}
		if resumed != nil {
			ok(t, resumed.Release(bg))
		}
	})
}

// A flood of forged messages about a fixed lease.
func TestTaking_AFloodOfMessages(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		counts := newCounter()
		a, _ := manager(t, s.client(), anteroom.Config{Observer: hooks(counts)})
		h := acquire(t, a.Mutex("k"), anteroom.Lease(time.Hour))
		id, n, _ := lettucecompat.ParseField(h.Holder())
		before := counts.get("command/extend")
		for range 500 {
			s.Publish("anteroom:client:"+id, forgedNotice("k", n))
		}
		time.Sleep(time.Second)
		if asked := counts.get("command/extend") - before; asked > 50 {
			t.Errorf("%d questions for 500 messages", asked)
		}
		ok(t, h.Release(bg))
	})
}

// A forged message, which Redis has disproved, and a fixed lease on the same grant after that.
func TestTaking_ADisprovedMessageIsForgotten(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, events := manager(t, s.client(), anteroom.Config{})
		h := acquire(t, a.Mutex("k"))
		time.Sleep(time.Second)
		id, n, _ := lettucecompat.ParseField(h.Holder())
		s.Publish("anteroom:client:"+id, forgedNotice("k", n))
		s.settle()
		got := make(chan *anteroom.Hold, 1)
		go func() { got <- acquire(t, a.Mutex("k"), anteroom.Lease(time.Minute)) }()
		s.settle()
		ok(t, h.Release(bg))
		next := <-got
		if lost := events.of(observe.EventLost); len(lost) > 0 {
			t.Errorf("lost: %v", lost[0].Reason)
		}
		ok(t, next.Release(bg))
	})
}

// The watchdog and a resumed hold with a fixed lease.
func TestTaking_AResumedFixedLeaseIsHealthy(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{})
		b, events := manager(t, s.client(), anteroom.Config{})
		ticket := detached(t, a, time.Hour)
		h := must[*anteroom.Hold](t)(b.Mutex("k").Resume(bg, ticket, anteroom.Lease(5*time.Minute)))
		time.Sleep(4 * time.Minute)
		ok(t, h.Err())
		for _, kind := range []observe.EventKind{observe.EventAlert, observe.EventRecovery} {
			if e := events.of(kind); len(e) > 0 {
				t.Errorf("%v: %+v", kind, e[0])
			}
		}
		ok(t, h.Release(bg))
	})
}

// The context of a Resume ends while Redis is asked about its ticket, beside an owner who has released meanwhile: nobody asks for the
// lock.
func TestTaking_AQuestionWithoutAnAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		counts, net := newCounter(), s.network()
		a, _ := manager(t, s.clientOver(net), anteroom.Config{Observer: hooks(counts)})
		dead := deadTicket(t, a)
		h := acquire(t, a.Mutex("k"))
		time.Sleep(500 * time.Millisecond) // it is renewed
		before := counts.get("command/acquire")
		net.OnRequest("ticket.", 1, faultnet.Swallowed)
		time.AfterFunc(100*time.Millisecond, func() { ok(t, h.Release(bg)) })
		ctx, cancel := context.WithTimeout(bg, 500*time.Millisecond)
		defer cancel()
		if _, err := a.Mutex("k").Resume(ctx, dead); !errors.Is(err, anteroom.ErrUnavailable) || net.Waiting() != 0 {
			t.Errorf("%v; traps left: %d", err, net.Waiting())
		}
		time.Sleep(time.Second)
		if asked := counts.get("command/acquire") - before; asked != 0 {
			t.Errorf("asked for the lock %d times", asked)
		}
	})
}

// A dispute while Redis refuses immediately.
func TestTaking_AsksWithGrowingPauses(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		counts := newCounter()
		net := s.network()
		a, _ := manager(t, s.clientOver(net), anteroom.Config{Observer: hooks(counts)})
		b, _ := manager(t, s.client(), anteroom.Config{})
		warmForce(t, a, b)
		dead := deadTicket(t, b)
		h := acquire(t, a.Mutex("k"), anteroom.Lease(time.Hour))
		net.Refuse()
		net.CloseAll()
		before := counts.get("command/status")
		ctx, cancel := context.WithTimeout(bg, 20*time.Second)
		defer cancel()
		_, err := a.Mutex("k").Resume(ctx, dead)
		t.Logf("%v; %d questions", err, counts.get("command/status")-before)
		if !errors.Is(err, anteroom.ErrUnavailable) {
			t.Error(err)
		}
		if n := counts.get("command/status") - before; n < 5 || n > 100 {
			t.Errorf("%d questions in 20 s", n)
		}
		net.Heal()
		_ = h.Release(bg)
	})
}
