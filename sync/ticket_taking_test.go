package anteroom_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/faultnet"
	anteroom "github.com/anteroom/anteroom/sync"
)

// warmForce makes the server know force.lua: Seize of a free lock does not send it.
func warmForce(t *testing.T, a, b *anteroom.Manager) {
	h := acquire(t, a.Mutex("warm"))
	s := must[*anteroom.Hold](t)(b.Mutex("warm").Seize(bg))
	_ = h.Release(bg)
	ok(t, s.Release(bg))
}

// two returns two Managers, and the network of the second one, which has its own faults. The server knows force.lua.
func (s *embedded) two(t *testing.T) (a, b *anteroom.Manager, net *faultnet.Network) {
	net = s.network()
	a, _ = manager(t, s.client(), anteroom.Config{})
	b, _ = manager(t, s.clientOver(net), anteroom.Config{})
	warmForce(t, a, b)
	return a, b, net
}

// detached leaves k, which m acquires, to a ticket for d.
func detached(t *testing.T, m *anteroom.Manager, d time.Duration) anteroom.Ticket {
	t.Helper()
	return must[anteroom.Ticket](t)(acquire(t, m.Mutex("k")).Detach(bg, d))
}

// resume resumes the ticket for k, or ends the test.
func resume(t *testing.T, m *anteroom.Manager, ticket anteroom.Ticket) *anteroom.Hold {
	t.Helper()
	return must[*anteroom.Hold](t)(m.Mutex("k").Resume(bg, ticket))
}

// deadTicket returns a ticket for k that was resumed and released.
func deadTicket(t *testing.T, m *anteroom.Manager) anteroom.Ticket {
	t.Helper()
	ticket := detached(t, m, time.Minute)
	ok(t, resume(t, m, ticket).Release(bg))
	return ticket
}

// seize seizes k, or ends the test.
func seize(t *testing.T, m *anteroom.Manager) *anteroom.Hold {
	t.Helper()
	return must[*anteroom.Hold](t)(m.Mutex("k").Seize(bg))
}

// A process that waits in line already takes the lock immediately, wherever its place is.
func TestTaking_SeizeBesideAWaiterOfItsProcess(t *testing.T) {
	for _, ahead := range []int{0, 1, 5, 14} {
		t.Run(fmt.Sprint(ahead), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				a, _ := manager(t, s.client(), anteroom.Config{})
				h := acquire(t, a.Mutex("k"))
				ctx, cancel := context.WithCancel(bg)
				defer cancel()
				for range ahead {
					m, _ := manager(t, s.client(), anteroom.Config{})
					s.waiting(t, ctx, m.Mutex("k"))
				}
				b, _ := manager(t, s.client(), anteroom.Config{})
				s.waiting(t, ctx, b.Mutex("k"))
				start := time.Now()
				seized := seize(t, b)
				if took := time.Since(start); took > 100*time.Millisecond {
					t.Errorf("Seize took %v", took)
				}
				cancel()
				ok(t, seized.Release(bg))
				_ = h.Release(bg)
			})
		})
	}
}

func TestTaking_ShortSeizeBesideAWaiter(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{})
		h := acquire(t, a.Mutex("k"))
		ctx, cancel := context.WithCancel(bg)
		defer cancel()
		b, _ := manager(t, s.client(), anteroom.Config{})
		s.waiting(t, ctx, b.Mutex("k"))
		short, stop := context.WithTimeout(bg, 500*time.Millisecond)
		defer stop()
		seized, err := b.Mutex("k").Seize(short)
		if err != nil {
			t.Errorf("with a Redis that answers immediately: %v", err)
		} else {
			ok(t, seized.Release(bg))
		}
		cancel()
		_ = h.Release(bg)
	})
}

// Who has the lock by Lock keeps it until it unlocks, and nobody of another process comes in between.
func TestTaking_SeizeLeavesALockToItsGoroutine(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, other, _ := s.two(t)
		mu := m.Mutex("k")
		mu.Lock()
		third := s.waiting(t, bg, other.Mutex("k"))
		got := make(chan *anteroom.Hold)
		go func() { got <- must[*anteroom.Hold](t)(mu.Seize(bg)) }()
		s.settle()
		time.Sleep(time.Second)
		var h *anteroom.Hold
		select {
		case h = <-third:
			t.Errorf("another process has the lock (%v) while the goroutine by Lock has not unlocked, and Seize has nothing", h.Err())
		default:
		}
		mu.Unlock()
		ok(t, (<-got).Release(bg))
		if h == nil {
			h = <-third
		}
		_ = h.Release(bg)
	})
}

// Two goroutines of one process resume at the same time, as where a job is delivered twice: one is in.
func TestTaking_ResumedTwiceInOneProcess(t *testing.T) {
	for _, stale := range []bool{false, true} {
		t.Run(fmt.Sprintf("stale %v", stale), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				a, b, net := s.two(t)
				old := deadTicket(t, a)
				ticket := detached(t, a, time.Hour)
				s.settle()
				net.OnRequest(takeText, 1, faultnet.Late(200*time.Millisecond))
				type result struct {
					h   *anteroom.Hold
					err error
				}
				results := make(chan result, 2)
				resume := func(t anteroom.Ticket) {
					h, err := b.Mutex("k").Resume(bg, t)
					results <- result{h, err}
				}
				go resume(ticket)
				time.Sleep(50 * time.Millisecond)
				second := ticket
				if stale {
					second = old
				}
				go resume(second)
				in := 0
				for range 2 {
					r := <-results
					t.Logf("%v %v", r.h != nil, r.err)
					if r.h != nil {
						in++
						defer func() { _ = r.h.Release(bg) }()
					}
				}
				if in != 1 {
					t.Errorf("%d of two Resumes are in, want 1; Redis has %v", in, s.holders("k"))
				}
			})
		})
	}
}

// Who gives up before the answer has not been refused.
func TestTaking_ResumeWithoutAnAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b, net := s.two(t)
		ticket := detached(t, a, time.Minute)
		net.OnRequest(takeText, 100, faultnet.Swallowed)
		ctx, cancel := context.WithTimeout(bg, 700*time.Millisecond)
		defer cancel()
		_, err := b.Mutex("k").Resume(ctx, ticket)
		if !errors.Is(err, anteroom.ErrUnavailable) {
			t.Errorf("Redis did not answer the one command that counts: %v", err)
		}
		net.Heal()
	})
}

// slowOnce holds up the first command that contains text, before it is sent.
type slowOnce struct {
	redis.Hook
	text  string
	d     time.Duration
	armed atomic.Bool
	after func()
}

func (c *slowOnce) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *slowOnce) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		hit := strings.Contains(fmt.Sprint(cmd.Args()...), c.text) && c.armed.CompareAndSwap(true, false)
		if hit && c.d > 0 {
			time.Sleep(c.d)
		}
		err := next(ctx, cmd)
		if hit && c.after != nil {
			c.after()
			return errors.New("connection reset by peer")
		}
		return err
	}
}

func (c *slowOnce) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// A neighbour in line gives up while the command that resumes is on its way: the place is confirmed under another number.
func TestTaking_ResumeBesideAConfirmation(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, c, _ := s.two(t)
		rdb, hook := s.client(), &slowOnce{text: takeArgs, d: 50 * time.Millisecond}
		rdb.AddHook(hook)
		b, _ := manager(t, rdb, anteroom.Config{})
		warmForce(t, a, b)
		h := acquire(t, a.Mutex("k"))
		ctx, cancel := context.WithCancel(bg)
		defer cancel()
		s.waiting(t, ctx, c.Mutex("k")) // place 0
		ticket := must[anteroom.Ticket](t)(h.Detach(bg, time.Minute))
		s.settle()
		hook.armed.Store(true)
		time.AfterFunc(20*time.Millisecond, cancel)
		resumed, err := b.Mutex("k").Resume(bg, ticket)
		if err != nil {
			t.Errorf("%v; Redis has %v", err, s.holders("k"))
			resumed, err = a.Mutex("k").Resume(bg, ticket)
			t.Logf("a second Resume of the same ticket: %v", err)
		}
		if resumed != nil {
			ok(t, resumed.Release(bg))
		}
	})
}

// The answer is lost, and Redis is unreachable for three seconds after that.
func TestTaking_ResumeAndAShortOutage(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{})
		net := s.network()
		rdb := s.clientOver(net)
		hook := &slowOnce{text: takeArgs, after: func() {
			net.Refuse()
			net.CloseAll()
			time.AfterFunc(3*time.Second, net.Heal)
		}}
		rdb.AddHook(hook)
		b, _ := manager(t, rdb, anteroom.Config{})
		warmForce(t, a, b)
		ticket := detached(t, a, 10*time.Minute)
		hook.armed.Store(true)
		ctx, cancel := context.WithTimeout(bg, time.Minute)
		defer cancel()
		resumed, err := b.Mutex("k").Resume(ctx, ticket)
		if err != nil {
			t.Errorf("a ticket for ten minutes is worth nothing after an outage of three seconds: %v; Redis has %v", err, s.holders("k"))
			return
		}
		ok(t, resumed.Release(bg))
	})
}

// The answer to the command that takes the lock is lost, with and without a waiter of the process.
func TestTaking_ALostAnswerToAnEffectiveTake(t *testing.T) {
	for name, fate := range map[string]faultnet.Fate{"done": faultnet.Lost, "not done": faultnet.Swallowed, "late": faultnet.Late(1500 * time.Millisecond)} {
		for _, waits := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, waits %v", name, waits), func(t *testing.T) {
				bubble(t, func(t *testing.T, s *embedded) {
					cfg := anteroom.Config{Defaults: anteroom.LockConfig{Fencing: true}}
					a, _ := manager(t, s.client(), cfg)
					net := s.network()
					b, _ := manager(t, s.clientOver(net), cfg)
					warmForce(t, a, b)
					h := acquire(t, a.Mutex("k"))
					ctx, cancel := context.WithCancel(bg)
					defer cancel()
					if waits {
						s.waiting(t, ctx, b.Mutex("k"))
					}
					ticket := must[anteroom.Ticket](t)(h.Detach(bg, time.Minute))
					s.settle()
					net.OnRequest(takeText, 1, fate)
					resumed := resume(t, b, ticket)
					if net.Waiting() != 0 {
						t.Error("the trap was not sprung")
					}
					if tokenOf(resumed) != tokenOf(h) {
						t.Errorf("token %d, after Detach of %d", tokenOf(resumed), tokenOf(h))
					}
					time.Sleep(time.Minute)
					ok(t, resumed.Err())
					cancel()
					ok(t, resumed.Release(bg))
				})
			})
		}
	}
}

// A goroutine of this process has lost the lock and not unlocked it: that does not spoil the ticket.
func TestTaking_ResumeBesideALostLock(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b, _ := s.two(t)
		a.Mutex("k").Lock()
		ticket := must[anteroom.Ticket](t)(seize(t, b).Detach(bg, time.Minute))
		s.settle()
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		if _, err := a.Mutex("k").Resume(ctx, ticket); errors.Is(err, anteroom.ErrNotHeld) {
			resumed, err2 := b.Mutex("k").Resume(bg, ticket)
			t.Errorf("%v; elsewhere the same ticket is resumed: %v", err, err2)
			if resumed != nil {
				_ = resumed.Release(bg)
			}
		}
		a.Mutex("k").Unlock()
	})
}

// Who watches learns of it by a message.
func TestTaking_WatchHearsOfSeize(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, a, _ := s.two(t)
		b, _ := manager(t, s.client(), anteroom.Config{})
		h := acquire(t, a.Mutex("k"))
		time.Sleep(3 * time.Second) // its whole lease
		ctx, stop := context.WithTimeout(bg, time.Minute)
		defer stop()
		got := make(chan *anteroom.Hold, 1)
		at := time.Now().Add(time.Second)
		time.AfterFunc(time.Second, func() { got <- seize(t, b) })
		for info, err := range m.Watch(ctx, "k") {
			ok(t, err)
			if info.Holders[0].Client == b.ClientID() {
				break
			}
		}
		if took := time.Since(at); took > time.Second {
			t.Errorf("Watch reports another holder after %v", took)
		}
		_, _ = h.Release(bg), (<-got).Release(bg)
	})
}

// A caller whose context ends is free within one time limit of a command, whatever Redis does: in it the locks that it has had
// are released.
func TestTaking_AcquireAllIsFreeAfterOneTimeLimit(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		other, _ := manager(t, s.client(), anteroom.Config{})
		net := s.network()
		m, _ := manager(t, s.clientOver(net), anteroom.Config{})
		taken := acquire(t, other.Mutex("z"))
		ctx, cancel := context.WithCancel(bg)
		defer cancel()
		ended := make(chan time.Time, 1)
		go func() { _, _ = m.AcquireAll(ctx, "a", "b", "z"); ended <- time.Now() }()
		time.Sleep(500 * time.Millisecond)
		net.BlackHole()
		at := time.Now()
		cancel()
		if took := (<-ended).Sub(at); took > time.Second+10*time.Millisecond {
			t.Errorf("it returned %v after the end of its context", took)
		}
		net.Heal()
		ok(t, taken.Release(bg))
	})
}

// A waiter that comes again, since its note was not confirmed, is behind who takes the lock.
func TestTaking_SeizeBehindOneThatComesAgain(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b, net := s.two(t)
		// W is granted the lock, and the answer that brings its note is lost; meanwhile another process gets in line.
		net.OnRequest("\r\n$4\r\nnote\r\n", 1, faultnet.Swallowed)
		ctx, cancel := context.WithCancel(bg)
		defer cancel()
		done := make(chan *anteroom.Hold, 1)
		go func() { h, _ := b.Mutex("k").Acquire(ctx, anteroom.Note("w")); done <- h }()
		s.settle()
		there := make(chan *anteroom.Hold, 1)
		go func() { there <- acquire(t, a.Mutex("k")) }()
		s.settle()
		start := time.Now()
		late := time.AfterFunc(20*time.Second, cancel)
		defer late.Stop()
		limit, stop := context.WithTimeout(bg, 40*time.Second)
		defer stop()
		seized, err := b.Mutex("k").Seize(limit)
		if took := time.Since(start); took > 5*time.Second || err != nil {
			t.Errorf("Seize took %v: %v", took, err)
		}
		cancel()
		if seized != nil {
			_ = seized.Release(bg)
		}
		if h := <-done; h != nil {
			_ = h.Release(bg)
		}
		_ = (<-there).Release(bg)
	})
}

// inside starts an Acquire that waits in its process only: that has the lock, or a place already.
func (s *embedded) inside(t *testing.T, mu *anteroom.Mutex) <-chan *anteroom.Hold {
	got := make(chan *anteroom.Hold, 1)
	go func() { got <- must[*anteroom.Hold](t)(mu.Acquire(bg)) }()
	s.settle()
	return got
}

// Who resumes gives up before the answer: what its ticket has brought is for no neighbour in its process, and goes back to
// the ticket.
func TestTaking_WhatATicketBroughtIsForNobodyElse(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, c, _ := s.two(t)
		net := s.network()
		rdb := s.clientOver(net)
		hook := &slowOnce{text: takeArgs, after: func() {
			net.Refuse()
			net.CloseAll()
			time.AfterFunc(time.Second, net.Heal)
		}}
		rdb.AddHook(hook)
		b, _ := manager(t, rdb, anteroom.Config{})
		warmForce(t, a, b)
		h := acquire(t, a.Mutex("k"))
		first := s.waiting(t, bg, c.Mutex("k"))
		ticket := must[anteroom.Ticket](t)(h.Detach(bg, time.Hour))
		neighbour := s.waiting(t, bg, b.Mutex("k"))
		hook.armed.Store(true)
		ctx, cancel := context.WithTimeout(bg, 500*time.Millisecond)
		defer cancel()
		if _, err := b.Mutex("k").Resume(ctx, ticket); !errors.Is(err, anteroom.ErrUnavailable) {
			t.Fatalf("its answer is lost: %v", err)
		}
		time.Sleep(2 * time.Second)
		select {
		case <-neighbour:
			t.Fatal("a neighbour has what the ticket brought")
		default:
		}
		ok(t, resume(t, b, ticket).Release(bg))
		ok(t, (<-first).Release(bg))
		ok(t, (<-neighbour).Release(bg))
	})
}

// A detached hold passes to no waiter of its process.
func TestTicket_NotHandedOn(t *testing.T) {
	for _, fair := range []bool{false, true} {
		bubble(t, func(t *testing.T, s *embedded) {
			cfg := anteroom.Config{Defaults: anteroom.LockConfig{Fair: fair}}
			a, _ := manager(t, s.client(), cfg)
			b, _ := manager(t, s.client(), cfg)
			h := acquire(t, a.Mutex("k"))
			neighbour := s.inside(t, a.Mutex("k"))
			ticket := must[anteroom.Ticket](t)(h.Detach(bg, time.Minute))
			time.Sleep(time.Second)
			select {
			case <-neighbour:
				t.Fatal("a waiter of the process has what was left to the ticket")
			default:
			}
			ok(t, resume(t, b, ticket).Release(bg))
			ok(t, (<-neighbour).Release(bg))
		})
	}
}

// A try that is refused reads the note of a hold that is just being detached. For the race detector.
func TestTicket_DetachedBesideATry(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		for range 20 {
			h := acquire(t, m.Mutex("k"), anteroom.Note("a"))
			tried := make(chan error)
			go func() {
				_, err := m.Mutex("k").TryAcquire(bg)
				tried <- err
			}()
			ticket := must[anteroom.Ticket](t)(h.Detach(bg, time.Minute))
			if err := <-tried; !errors.Is(err, anteroom.ErrNotAcquired) {
				t.Fatal(err)
			}
			ok(t, resume(t, m, ticket).Release(bg))
		}
	})
}
