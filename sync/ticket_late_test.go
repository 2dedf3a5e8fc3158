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

// resumes demands that m resumes the ticket within a second.
func resumes(t *testing.T, m *anteroom.Manager, ticket anteroom.Ticket) {
	t.Helper()
	ctx, cancel := context.WithTimeout(bg, time.Second)
	defer cancel()
	h, err := m.Mutex("k").Resume(ctx, ticket)
	if err != nil {
		t.Errorf("the ticket: %v", err)
		return
	}
	ok(t, h.Release(bg))
}

// The answer that grants the lock to a waiter of the process is late: meanwhile another process has seized and detached it. What
// was granted before is no reason to refuse the ticket.
func TestTaking_ALateGrantRefusesNoTicket(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		b, a, net := s.two(t)
		net.OnRequest("anteroom:line:{k}", 1, faultnet.Late(500*time.Millisecond))
		waiter := make(chan *anteroom.Hold, 1)
		go func() { waiter <- acquire(t, a.Mutex("k")) }()
		time.Sleep(100 * time.Millisecond)
		ticket := must[anteroom.Ticket](t)(seize(t, b).Detach(bg, time.Hour))
		resumes(t, a, ticket)
		ok(t, (<-waiter).Release(bg))
	})
}

// The same, and the waiter has the lock already, but not yet its note. It was lost without a message, as in a failover.
func TestTaking_ALateOwnerRefusesNoTicket(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		b, a, net := s.two(t)
		ok(t, acquire(t, a.Mutex("warm"), anteroom.Note("n")).Release(bg))
		net.OnRequest("\r\n$4\r\nnote\r\n", 1, faultnet.Late(500*time.Millisecond))
		waiter := make(chan *anteroom.Hold, 1)
		go func() { waiter <- acquire(t, a.Mutex("k"), anteroom.Note("n")) }()
		time.Sleep(100 * time.Millisecond)
		s.Del("k")
		ticket := detached(t, b, time.Hour)
		resumes(t, a, ticket)
		_ = (<-waiter).Release(bg)
	})
}

// Another process seizes the lock before the answer arrives that gives it to this one. The message about that comes first, and is
// not forgotten.
func TestTaking_SeizedBeforeItsAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{})
		net := s.network()
		b, events := manager(t, s.clientOver(net), anteroom.Config{})
		warmForce(t, a, b)
		ticket := detached(t, a, time.Hour)
		net.OnRequest(takeText, 1, faultnet.Late(500*time.Millisecond))
		seized := make(chan *anteroom.Hold, 1)
		time.AfterFunc(100*time.Millisecond, func() { seized <- seize(t, a) })
		h := resume(t, b, ticket)
		s.settle()
		if err := h.Err(); !errors.Is(err, anteroom.ErrLost) {
			t.Errorf("the owner was not notified: %v", err)
		}
		if lost := events.of(observe.EventLost); len(lost) != 1 || lost[0].Reason != observe.LostForced {
			t.Errorf("reported: %+v", lost)
		}
		_, _ = h.Release(bg), (<-seized).Release(bg)
	})
}

// Resume and then Seize come behind an owner whose note is on its way. The ticket is worth nothing, so the lock is taken from that
// owner for the second one.
func TestTaking_SeizeAfterAResumeThatGivesUp(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		b, a, net := s.two(t)
		dead := deadTicket(t, b)
		ok(t, acquire(t, a.Mutex("warm"), anteroom.Note("n")).Release(bg))
		net.OnRequest("\r\n$4\r\nnote\r\n", 1, faultnet.Late(500*time.Millisecond))
		owner := make(chan *anteroom.Hold, 1)
		go func() { owner <- acquire(t, a.Mutex("k"), anteroom.Note("n")) }()
		time.Sleep(100 * time.Millisecond)
		refused := make(chan error, 1)
		go func() { _, err := a.Mutex("k").Resume(bg, dead); refused <- err }()
		time.Sleep(100 * time.Millisecond)
		ctx, cancel := context.WithTimeout(bg, 10*time.Second)
		defer cancel()
		seized, err := a.Mutex("k").Seize(ctx)
		if err != nil {
			t.Errorf("Seize: %v", err)
		} else {
			ok(t, seized.Release(bg))
		}
		if err := <-refused; !errors.Is(err, anteroom.ErrNotHeld) {
			t.Errorf("Resume: %v", err)
		}
		_ = (<-owner).Release(bg)
	})
}

// Nobody waits any more when the command that takes has had no answer: the place is not left before it is known what it did.
func TestTaking_FirstItMustBeKnown(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b, net := s.two(t)
		ticket := detached(t, a, time.Hour)
		net.OnRequest(takeText, 1, faultnet.Lost)
		net.OnRequest("\r\np 1 1\r\n", 1, faultnet.Swallowed)
		ctx, cancel := context.WithTimeout(bg, 10*time.Millisecond)
		defer cancel()
		if _, err := b.Mutex("k").Resume(ctx, ticket); !errors.Is(err, anteroom.ErrUnavailable) {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		resumes(t, a, ticket)
	})
}

// The first answer to Detach is lost, and the time of the ticket is over when it is repeated: the hold had lasted.
func TestTaking_ATicketWhoseTimeIsOverIsNoLoss(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		net := s.network()
		a, events := manager(t, s.clientOver(net), anteroom.Config{})
		h := acquire(t, a.Mutex("k"))
		time.Sleep(time.Second)
		net.OnRequest("ticket.", 1, faultnet.Late(3*time.Second))
		_, err := h.Detach(bg, 200*time.Millisecond)
		if errors.Is(err, anteroom.ErrLost) || len(events.of(observe.EventLost)) > 0 {
			t.Errorf("%v; reported: %+v", err, events.of(observe.EventLost))
		}
	})
}

// Redis is unreachable for two minutes when a resumed hold is released: the lock is free after that, though its ticket had an hour.
func TestTaking_AResumedHoldIsReleasedAfterAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b, net := s.two(t)
		h := must[*anteroom.Hold](t)(b.Mutex("k").Resume(bg, detached(t, a, time.Hour)))
		net.Refuse()
		net.CloseAll()
		_ = h.Release(bg)
		time.Sleep(2 * time.Minute)
		net.Heal()
		time.Sleep(5 * time.Second)
		ok(t, must[*anteroom.Hold](t)(a.Mutex("k").TryAcquire(bg)).Release(bg))
	})
}

// Redis does not answer when a ticket is resumed: who waits in the process is handed the lock meanwhile.
func TestTaking_ResumeDisturbsNoHandOff(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		net := s.network()
		a, _ := manager(t, s.clientOver(net), anteroom.Config{})
		dead := deadTicket(t, a)
		s.settle() // what a key knows of others counts only from the subscription on
		h := acquire(t, a.Mutex("k"))
		time.Sleep(500 * time.Millisecond)
		neighbour := s.inside(t, a.Mutex("k"))
		net.BlackHole()
		refused := make(chan error, 1)
		go func() { _, err := a.Mutex("k").Resume(bg, dead); refused <- err }()
		s.settle()
		ok(t, h.Release(bg))
		next := <-neighbour
		net.Heal()
		if err := <-refused; !errors.Is(err, anteroom.ErrNotHeld) {
			t.Error(err)
		}
		ok(t, next.Release(bg))
	})
}

// The answer that brings a short fixed lease to a resumed hold comes when that is over already: the ticket still counts.
func TestTaking_ALeaseThatIsOverCostsNoTicket(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b, net := s.two(t)
		ok(t, acquire(t, b.Mutex("warm"), anteroom.Lease(time.Second)).Release(bg))
		ticket := detached(t, a, time.Hour)
		net.OnRequest("\r\n$3\r\n200\r\n", 1, faultnet.Late(300*time.Millisecond))
		start := time.Now()
		h, err := b.Mutex("k").Resume(bg, ticket, anteroom.Lease(200*time.Millisecond))
		t.Log(time.Since(start), net.Waiting(), s.holders("k"), err)
		if err != nil {
			t.Error(err)
			resumes(t, a, ticket)
			return
		}
		ok(t, h.Release(bg))
	})
}

// What a ticket has brought is lost before anybody owned it: it goes back to the ticket all the same.
func TestTaking_WhatIsLostBeforeAnybodyOwnsIt(t *testing.T) {
	for name, closes := range map[string]bool{"the lease is over": false, "the Manager is closed": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				a, _ := manager(t, s.client(), anteroom.Config{})
				net := s.network()
				b, _ := manager(t, s.clientOver(net), anteroom.Config{CommandTimeout: 3 * time.Second})
				warmForce(t, a, b)
				ok(t, acquire(t, b.Mutex("warm"), anteroom.Note("n")).Release(bg))
				ticket := detached(t, a, time.Hour)
				net.OnRequest("\r\nlate\r\n", 1, faultnet.Late(2900*time.Millisecond))
				ctx, cancel := context.WithTimeout(bg, 10*time.Second)
				defer cancel()
				if closes {
					time.AfterFunc(100*time.Millisecond, func() { _ = b.CloseWithin(time.Second) })
				}
				opts := []anteroom.AcquireOption{anteroom.Note("late")}
				if !closes {
					opts = append(opts, anteroom.Lease(200*time.Millisecond))
				}
				if h, err := b.Mutex("k").Resume(ctx, ticket, opts...); err == nil {
					ok(t, h.Release(bg))
					return
				}
				time.Sleep(10 * time.Second)
				resumes(t, a, ticket)
			})
		})
	}
}

// MinHold prolongs a ticket, so a Detach that finds the lock gone says so for as long.
func TestTaking_DetachWhereMinHoldOutlastsTheTicket(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{})
		s.turns(t, a)
		h := acquire(t, mutex(t, a, anteroom.LockConfig{Key: "k", MinHold: time.Minute}))
		s.net.OnRequest("ticket.", 1, faultnet.Swallowed)
		time.AfterFunc(500*time.Millisecond, func() { s.Del("k") }) // as in a failover
		if _, err := h.Detach(bg, 200*time.Millisecond); !errors.Is(err, anteroom.ErrLost) {
			t.Errorf("a ticket for a lock that is gone: %v", err)
		}
	})
}

// The command that takes the lock from a ticket does not arrive, and another process seizes the lock. Then what may have been
// taken is not there, and neither is its mark: the place is, and goes.
func TestTaking_APlaceBesideATicketThatIsGone(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b, net := s.two(t)
		ticket := detached(t, a, time.Hour)
		net.OnRequest(takeText, 1, faultnet.Swallowed)
		ctx, cancel := context.WithTimeout(bg, 300*time.Millisecond)
		defer cancel()
		resumed := make(chan error, 1)
		go func() { _, err := b.Mutex("k").Resume(ctx, ticket); resumed <- err }()
		for net.Waiting() > 0 {
			time.Sleep(time.Millisecond)
		}
		h := seize(t, a)
		if err := <-resumed; err == nil {
			t.Error("resumed")
		}
		time.Sleep(3 * time.Second)
		if left := s.spots("k"); len(left) > 0 {
			t.Errorf("left in line: %v", left)
		}
		ok(t, h.Release(bg))
	})
}
