package anteroom_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/internal/faultnet"
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// forger has a waiter that waits in line for a lock which a field of another client holds in
// Redis: the test calls it, or pretends to.
func forger(t *testing.T, s *embedded, cfg anteroom.LockConfig, opts ...anteroom.AcquireOption) (m *anteroom.Manager, sent *traffic, got <-chan *anteroom.Hold, at spot) {
	t.Helper()
	rdb, sent := s.client(), &traffic{}
	rdb.AddHook(sent)
	m, _ = manager(t, rdb, anteroom.Config{})
	cfg.Key = "k"
	s.HSet("k", "other:1700000000000000", "1")
	s.SetTTL("k", time.Hour)
	got = s.waiting(t, bg, mutex(t, m, cfg), opts...)
	time.Sleep(100 * time.Millisecond)
	synctest.Wait()
	sent.take()
	return m, sent, got, s.spots("k")[0]
}

// A call is entered without a command, and its deadline counts from before the command that it names was sent.
func TestLine_ACallIsEnteredWithoutACommand(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, sent, got, at := forger(t, s, anteroom.LockConfig{})
		s.give(at, 2*time.Second)
		start := time.Now()
		s.sayCalled(at, 0)
		h := isIn(t, got)
		if n := sent.take(); n != 0 {
			t.Errorf("%d commands", n)
		}
		if !h.Deadline().Before(start.Add(2*time.Second - 200*time.Millisecond)) {
			t.Errorf("deadline %v after the call, of a lease of 2s that began before it", h.Deadline().Sub(start))
		}
		// The first renewal makes the lease whole.
		time.Sleep(3 * time.Second)
		if err := h.Err(); err != nil || s.TTL("k") < 20*time.Second {
			t.Errorf("three seconds later: %v, %v left in Redis", err, s.TTL("k"))
		}
		ok(t, h.Release(bg))
		anteroom.NothingLeft(t, m)
	})
}

// A call without the place's secret word is no call, and one that names another command than the place's last is not
// believed: Redis is asked, which decides.
func TestLine_AnOldOrForgedCallLetsNobodyIn(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, sent, got, _ := forger(t, s, anteroom.LockConfig{})
		call := func(what string, change func(*spot), asks bool) {
			t.Helper()
			for sent.take() == 0 { // the next confirmation is due in a second
				time.Sleep(10 * time.Millisecond)
			}
			s.settle()
			at := s.spots("k")[0]
			change(&at)
			sent.take()
			s.sayCalled(at, 0)
			isOut(t, got)
			if n := sent.take(); n > 1 || (n == 1) != asks {
				t.Errorf("%s: %d commands; asks: %v", what, n, asks)
			}
		}
		call("another word", func(p *spot) { p.word = "guessed" }, false)
		call("no word", func(p *spot) { p.word = "-" }, false)
		call("0", func(p *spot) { p.n = 0 }, true)
		call("the number before", func(p *spot) { p.n-- }, true)
		call("the number after", func(p *spot) { p.n++ }, true)
		call("a much later number", func(p *spot) { p.n = lettucecompat.LastNumber }, true)
		before := s.spots("k")[0]
		call("what was confirmed since", func(p *spot) { p.n = before.n }, true)
		// It is stopped, and is called in the end.
		now := s.spots("k")[0]
		if before.seq != now.seq {
			t.Errorf("had place %v, has %v", before, now)
		}
		s.give(now, 2*time.Second)
		s.sayCalled(now, 0)
		ok(t, isIn(t, got).Release(bg))
		s.nothing(t, "k")
		anteroom.NothingLeft(t, m)
	})
}

// Near or past its deadline a call is not entered: the waiter asks. The field is there in one
// case, and has been given to another client in the other.
func TestLine_ALateCallAsks(t *testing.T) {
	for _, gone := range []bool{false, true} {
		bubble(t, func(t *testing.T, s *embedded) {
			net := s.network()
			m, _ := manager(t, s.clientOver(net), anteroom.Config{})
			other, _ := manager(t, s.client(), anteroom.Config{})
			h := acquire(t, other.Mutex("k"))
			got := s.waiting(t, bg, m.Mutex("k"))
			time.Sleep(100 * time.Millisecond)
			net.BlackHole() // the process is stopped, as far as others can see
			time.Sleep(10 * time.Millisecond)
			ok(t, h.Release(bg)) // calls it
			if gone {
				time.Sleep(2100 * time.Millisecond)
				h = acquire(t, other.Mutex("k"))
			} else {
				time.Sleep(1500 * time.Millisecond)
			}
			net.Heal()
			time.Sleep(300 * time.Millisecond)
			synctest.Wait()
			if gone {
				isOut(t, got)
				if !h.Held() || s.holders("k")[0] != h.Holder() {
					t.Error("the other one does not hold any more")
				}
				ok(t, h.Release(bg))
				time.Sleep(3 * time.Second)
			}
			next := isIn(t, got)
			if fields := s.holders("k"); !next.Held() || len(fields) != 1 || fields[0] != next.Holder() {
				t.Errorf("%v held: %v; in Redis %v", next, next.Held(), fields)
			}
			ok(t, next.Release(bg))
			s.nothing(t, "k")
		})
	}
}

// What a call by itself does not give has to be asked for: a fixed lease, and a token that a process without Fencing could
// not make.
func TestLine_WhatACallDoesNotGiveIsAskedFor(t *testing.T) {
	for name, cfg := range map[string]anteroom.LockConfig{"a token": {Fencing: true}, "fixed": {}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				var opts []anteroom.AcquireOption
				if name == "fixed" {
					opts = append(opts, anteroom.Lease(10*time.Second))
				}
				m, sent, got, at := forger(t, s, cfg, opts...)
				s.give(at, 2*time.Second)
				s.sayCalled(at, 0)
				h := isIn(t, got)
				if n := sent.take(); n < 1 || n > 2 { // a script that the server does not know is sent once more
					t.Errorf("%d commands to be in with what it wants, want one", n)
				}
				if left := s.TTL("k"); name == "fixed" && left < 9*time.Second {
					t.Errorf("%v left of the lease", left)
				}
				if cfg.Fencing && tokenOf(h) == 0 {
					t.Error("no token")
				}
				ok(t, h.Release(bg))
				anteroom.NothingLeft(t, m)
			})
		})
	}
}

// Tokens come with a call, and grow across both ways of learning that the lock is ours.
func TestLine_TokensGrowAcrossCalls(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		cfg := anteroom.LockConfig{Key: "k", Fencing: true}
		var managers []*anteroom.Manager
		var nets []*faultnet.Network
		for range 3 {
			net := s.network()
			m, _ := manager(t, s.clientOver(net), anteroom.Config{})
			managers, nets = append(managers, m), append(nets, net)
		}
		h, last := acquire(t, mutex(t, managers[0], cfg)), int64(0)
		for i := 1; i < 30; i++ {
			m := i % len(managers)
			got := s.waiting(t, bg, mutex(t, managers[m], cfg))
			if i%4 == 3 {
				nets[m].Reset(faultnet.PubSub) // its message is lost
			}
			if token := tokenOf(h); token <= last {
				t.Fatalf("turn %d: token %d after %d", i, token, last)
			} else {
				last = token
			}
			time.Sleep(time.Duration(i%3) * 700 * time.Millisecond)
			ok(t, h.Release(bg))
			start := time.Now()
			select {
			case h = <-got:
			case <-time.After(time.Minute):
				t.Fatalf("turn %d: nobody in after %v: in Redis %v, %v", i, time.Since(start), s.holders("k"), s.spots("k"))
			}
		}
		ok(t, h.Release(bg))
	})
}

// A call grants the lock for two seconds. A hold that lasts has its whole lease soon after it was
// called: an outage that begins a quarter of a second later, and is longer than two seconds, loses nothing.
func TestLine_ACalledHoldSurvivesAnOutageSoon(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		net := s.network()
		m, _ := manager(t, s.clientOver(net), anteroom.Config{})
		other, _ := manager(t, s.client(), anteroom.Config{})
		h := acquire(t, other.Mutex("k"))
		got := s.waiting(t, bg, m.Mutex("k"))
		time.Sleep(20*time.Second + 700*time.Millisecond) // its last confirmation is some time ago
		ok(t, h.Release(bg))
		called := isIn(t, got)
		time.Sleep(250 * time.Millisecond)
		net.BlackHole()
		time.Sleep(10 * time.Second)
		net.Heal()
		time.Sleep(5 * time.Second)
		ok(t, called.Err())
		ok(t, called.Release(bg))
	})
}

// The renewal check does not take the age of the command that a call names for a late renewal.
func TestLine_ACalledHoldIsNotLate(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, rec := manager(t, s.client(), anteroom.Config{Defaults: anteroom.LockConfig{WatchdogPeriod: 10 * time.Millisecond}})
		cfg := anteroom.LockConfig{
			Key: "k", LeaseTime: 6 * time.Second, RenewalTime: 100 * time.Millisecond,
			WatchdogPeriod: 10 * time.Millisecond, AlertThreshold: 1,
		}
		other, _ := manager(t, s.client(), anteroom.Config{})
		h := acquire(t, other.Mutex("k"))
		got := s.waiting(t, bg, mutex(t, m, cfg))
		time.Sleep(3*time.Second + 750*time.Millisecond) // the last confirmation is 0.75 s old
		ok(t, h.Release(bg))
		called := isIn(t, got)
		time.Sleep(time.Second)
		ok(t, called.Release(bg))
		for _, e := range rec.of(observe.EventAlert) {
			t.Error(e)
		}
	})
}
