package anteroom_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/faultnet"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// Seize of a lock that a Hold of its own process has gives the lock to the first in line, and takes it from that one:
// an owner that had waited for its turn comes in, and is lost.
func TestTaking_SeizeFromItsOwnProcessSparesWhoWaits(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{})
		b, events := manager(t, s.client(), anteroom.Config{})
		warmForce(t, a, b)
		h := acquire(t, a.Mutex("k"))
		there := s.waiting(t, bg, b.Mutex("k"))
		seized := seize(t, a)
		s.settle()
		select {
		case got := <-there:
			t.Errorf("a bystander was let in by Seize: %v", got.Err())
		default:
		}
		if lost := events.of(observe.EventLost); len(lost) > 0 {
			t.Errorf("the bystander's process reports a loss: %v", lost[0].Reason)
		}
		ok(t, seized.Release(bg))
		_ = h.Release(bg)
	})
}

// The answer to the command that brings the note of a resumed hold is lost: the ticket is spent and the lock given back,
// and Resume says that the ticket was worth nothing.
func TestTaking_ResumeWithANoteAndOneLostAnswer(t *testing.T) {
	for name, opt := range map[string]anteroom.AcquireOption{"note": anteroom.Note("x"), "lease": anteroom.Lease(time.Minute)} {
		for fateName, fate := range map[string]faultnet.Fate{"done": faultnet.Lost, "not done": faultnet.Swallowed} {
			t.Run(name+" "+fateName, func(t *testing.T) {
				bubble(t, func(t *testing.T, s *embedded) {
					a, c, _ := s.two(t)
					net := s.network()
					b, _ := manager(t, s.clientOver(net), anteroom.Config{})
					warmForce(t, a, b)
					w := acquire(t, b.Mutex("warm2"), anteroom.Note("x"), anteroom.Lease(time.Minute))
					ok(t, w.Release(bg))
					h := acquire(t, a.Mutex("k"))
					ticket := must[anteroom.Ticket](t)(h.Detach(bg, 10*time.Minute))
					there := s.waiting(t, bg, c.Mutex("k"))
					s.settle()
					if name == "note" {
						net.OnRequest("\r\n$4\r\nnote\r\n", 1, fate)
					} else {
						net.OnRequest("\r\n$5\r\n60000\r\n", 1, fate)
					}
					ctx, cancel := context.WithTimeout(bg, time.Minute)
					defer cancel()
					start := time.Now()
					resumed, err := b.Mutex("k").Resume(ctx, ticket, opt)
					if err != nil {
						t.Errorf("after %v: %v", time.Since(start), err)
						select {
						case got := <-there:
							t.Errorf("another process has the lock: %v", got.Err())
							_ = got.Release(bg)
						default:
						}
						return
					}
					ok(t, resumed.Release(bg))
					ok(t, (<-there).Release(bg))
				})
			})
		}
	}
}

// The first command of Detach does not arrive, and the lock is gone when it is repeated: Detach returns a ticket that is
// worth nothing, and no error.
func TestTaking_DetachOfALockThatIsGoneAtTheRepetition(t *testing.T) {
	t.Run("deleted", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *embedded) {
			a, b, _ := s.two(t)
			s.turns(t, a)
			h := acquire(t, a.Mutex("k"))
			time.Sleep(10 * time.Second)
			s.net.OnRequest("ticket.", 1, faultnet.Swallowed)
			time.AfterFunc(500*time.Millisecond, func() { s.Del("k") }) // as in a failover
			ticket, err := h.Detach(bg, time.Minute)
			resumed, err2 := b.Mutex("k").Resume(bg, ticket)
			if err == nil && err2 != nil {
				t.Errorf("Detach: no error; Resume immediately: %v", err2)
			}
			if resumed != nil {
				_ = resumed.Release(bg)
			}
		})
	})
	t.Run("deleted, and repeated after the deadline", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *embedded) {
			a, _, _ := s.two(t)
			h := acquire(t, a.Mutex("k"), anteroom.Lease(10*time.Second))
			time.Sleep(time.Until(h.Deadline()) - 10*time.Millisecond)
			s.net.OnRequest("ticket.", 1, faultnet.Swallowed)
			time.AfterFunc(5*time.Millisecond, func() { s.Del("k") })
			if _, err := h.Detach(bg, time.Minute); !errors.Is(err, anteroom.ErrLost) {
				t.Errorf("%v, want a loss: the ticket's time is not over, and nothing is there", err)
			}
		})
	})
	t.Run("young, CommandTimeout 3 s", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *embedded) {
			a, _ := manager(t, s.client(), anteroom.Config{CommandTimeout: 3 * time.Second})
			b, _ := manager(t, s.client(), anteroom.Config{})
			s.turns(t, a)
			h := acquire(t, a.Mutex("k"))
			there := s.waiting(t, bg, b.Mutex("k"))
			s.net.OnRequest("ticket.", 1, faultnet.Swallowed)
			ticket, err := h.Detach(bg, time.Minute)
			if err == nil {
				select {
				case got := <-there:
					t.Errorf("Detach: no error (ticket %v); another process has the lock: %v", ticket != "", got.Err())
				default:
				}
			}
			t.Log(err)
		})
	})
}

// Detach at the very deadline, before the loss is concluded, as after a stop of the process.
func TestTaking_DetachAtTheDeadline(t *testing.T) {
	seen := 0
	for range 20 {
		bubble(t, func(t *testing.T, s *embedded) {
			a, b, _ := s.two(t)
			h := acquire(t, a.Mutex("k"), anteroom.Lease(10*time.Second))
			time.Sleep(time.Until(h.Deadline()))
			ticket, err := h.Detach(bg, time.Minute)
			if err == nil {
				resumed, err2 := b.Mutex("k").Resume(bg, ticket)
				if err2 != nil {
					seen++
					t.Logf("Detach: no error; Resume immediately: %v", err2)
				}
				if resumed != nil {
					_ = resumed.Release(bg)
				}
			}
		})
	}
	if seen > 0 {
		t.Errorf("%d of 20 tickets were worth nothing, without an error", seen)
	}
}

// A ticket comes back to the process that had the lock before, which has not heard yet that it was seized.
func TestTaking_ResumeWhereTheOldHoldIsBelievedIn(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		b, a, net := s.two(t)
		old := acquire(t, a.Mutex("k"))
		net.HalfOpen(faultnet.PubSub)
		seized := seize(t, b)
		ticket := must[anteroom.Ticket](t)(seized.Detach(bg, 10*time.Minute))
		ctx, cancel := context.WithTimeout(bg, 10*time.Millisecond) // soon Redis would say of the key itself that it has changed
		defer cancel()
		h, err := a.Mutex("k").Resume(ctx, ticket)
		ok(t, err)
		_, _ = h.Release(bg), old.Release(bg)
	})
}

// A hold of a fixed lease, which nobody need release, is seized by another process, which releases soon: the lock is free, and
// who waits in the first process does not take it.
func TestTaking_AFixedLeaseThatWasSeizedStallsItsProcess(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b, _ := s.two(t)
		old := acquire(t, a.Mutex("k"), anteroom.Lease(time.Hour))
		ok(t, seize(t, b).Release(bg))
		s.settle()
		t.Logf("the old hold: %v; Redis has %v", old.Err(), s.holders("k"))
		start := time.Now()
		ctx, cancel := context.WithTimeout(bg, 10*time.Minute)
		defer cancel()
		h, err := a.Mutex("k").Acquire(ctx)
		if took := time.Since(start); took > time.Minute {
			t.Errorf("a free lock was not taken for %v: %v", took, err)
		}
		if h != nil {
			ok(t, h.Release(bg))
		}
		_ = old.Release(bg)
	})
}

// The watchdog takes what is left of a ticket's time for a key that lives for too long.
func TestTaking_TheWatchdogAccusesAResumedHold(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{})
		b, events := manager(t, s.client(), anteroom.Config{})
		ticket := detached(t, a, 10*time.Minute)
		h := resume(t, b, ticket)
		time.Sleep(3 * time.Minute)
		ok(t, h.Err())
		for _, kind := range []observe.EventKind{observe.EventAlert, observe.EventRecovery} {
			if e := events.of(kind); len(e) > 0 {
				t.Errorf("%v: %+v", kind, e[0])
			}
		}
		ok(t, h.Release(bg))
	})
}

// A process begins to close while its Resume waits for the answer: the ticket is spent and the lock free.
func TestTaking_CloseBesideResume(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b, net := s.two(t)
		ticket := detached(t, a, 10*time.Minute)
		net.OnRequest(takeText, 1, faultnet.Late(300*time.Millisecond))
		time.AfterFunc(100*time.Millisecond, func() { _ = b.CloseWithin(5 * time.Second) })
		h, err := b.Mutex("k").Resume(bg, ticket)
		if h != nil {
			ok(t, h.Release(bg))
			return
		}
		time.Sleep(time.Second)
		again, err2 := a.Mutex("k").Resume(bg, ticket)
		if err2 != nil {
			t.Errorf("%v; elsewhere the same ticket: %v; Redis has %v", err, err2, s.holders("k"))
		} else {
			ok(t, again.Release(bg))
		}
		time.Sleep(5 * time.Second)
	})
}

// A hash of more than 64 counts is a lock for all that ask, and Seize leaves its holders in place.
func TestTaking_SeizeOfAHashOfManyFields(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		for i := range 65 {
			s.HSet("k", fmt.Sprintf("somebody:%d", i), "1")
		}
		ctx, cancel := context.WithTimeout(bg, 5*time.Second)
		defer cancel()
		h, err := m.Mutex("k").Seize(ctx)
		if err == nil && len(s.holders("k")) > 1 {
			t.Errorf("seized, beside %d others", len(s.holders("k"))-1)
		}
		if h != nil {
			_ = h.Release(bg)
		}
	})
}
