package anteroom_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/internal/faultnet"
	anteroom "github.com/anteroom/anteroom/sync"
)

// crew is a process with several goroutines that want the lock k for its work, one after the
// other, for as long as ctx lives.
func crew(ctx context.Context, mu *anteroom.Mutex, size int, work func()) (done func()) {
	ends := make(chan struct{})
	for range size {
		go func() {
			for {
				h, err := mu.Acquire(ctx)
				if err != nil {
					break
				}
				work()
				_ = h.Release(bg)
			}
			ends <- struct{}{}
		}()
	}
	return func() {
		for range size {
			<-ends
		}
	}
}

// In a steady state a turn is one command: it releases, calls, and stands again. A process that
// is alone goes on with its turn. Afterwards nothing is left.
func TestLine_ATurnIsOneCommand(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		ctx, cancel := context.WithCancel(bg)
		defer cancel()
		var managers []*anteroom.Manager
		var ends []func()
		var sent []*traffic
		var turns [3]atomic.Int64
		last := -1 // guarded by the lock
		for i := range 3 {
			rdb, c := s.client(), &traffic{}
			rdb.AddHook(c)
			m, _ := manager(t, rdb, anteroom.Config{})
			managers, sent = append(managers, m), append(sent, c)
			mu := mutex(t, m, anteroom.LockConfig{Key: "k", MaxHandoffs: 4, MaxHandoffTime: time.Second})
			ends = append(ends, crew(ctx, mu, 8, func() {
				if last != i { // nobody else is in here
					last = i
					turns[i].Add(1)
				}
				time.Sleep(time.Millisecond)
			}))
		}
		time.Sleep(2 * time.Second)
		for i := range turns {
			turns[i].Store(0)
			sent[i].take()
		}
		time.Sleep(20 * time.Second)
		for i := range turns {
			// Beside the turns there are confirmations, and renewals of what is held for as long.
			if n, had := sent[i].take(), turns[i].Load(); had < 100 || float64(n) > 1.2*float64(had)+20 {
				t.Errorf("process %d: %d commands for %d turns", i, n, had)
			}
		}
		if a, b, c := turns[0].Load(), turns[1].Load(), turns[2].Load(); max(a, b, c) > min(a, b, c)+2 {
			t.Errorf("turns %d, %d, %d, want the same for all", a, b, c)
		}
		cancel()
		for _, end := range ends {
			end()
		}
		time.Sleep(time.Second)
		synctest.Wait()
		s.nothing(t, "k")
		for _, m := range managers {
			anteroom.NothingWanted(t, m)
		}
	})
}

// The answer to the end of a turn is lost, whatever it has done: the waiters here come in again,
// nobody is in beside another, and nothing is left once the last command can have arrived.
func TestLine_TheEndOfATurnWithoutAnAnswer(t *testing.T) {
	for name, fate := range map[string]faultnet.Fate{
		"done":     faultnet.Lost,
		"not done": faultnet.Swallowed,
		"late":     faultnet.Late(4 * time.Second),
	} {
		for _, leave := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				bubble(t, func(t *testing.T, s *embedded) {
					net := s.network()
					a, _ := manager(t, s.clientOver(net), anteroom.Config{})
					b, _ := manager(t, s.client(), anteroom.Config{})
					s.turns(t, a)
					mu := mutex(t, a, anteroom.LockConfig{Key: "k", MaxHandoffs: 1, MaxHandoffTime: time.Hour})
					first := acquire(t, mu)
					ctx, cancel := context.WithCancel(bg)
					defer cancel()
					here := make(chan *anteroom.Hold, 3)
					for range 3 {
						go func() {
							if h, err := mu.Acquire(ctx); err == nil {
								here <- h
							}
						}()
					}
					s.settle()
					there := s.waiting(t, bg, b.Mutex("k"))
					time.Sleep(time.Second)
					ok(t, first.Release(bg)) // a hand-off
					second := <-here
					net.OnRequest("releaseTime", 1, fate)
					_ = second.Release(bg) // the budget is over
					if leave {
						cancel()
					}
					h := <-there
					ok(t, h.Release(bg))
					if !leave {
						ok(t, (<-here).Release(bg))
						ok(t, (<-here).Release(bg))
					}
					time.Sleep(2 * time.Minute)
					synctest.Wait()
					s.nothing(t, "k")
					anteroom.NothingWanted(t, a)
					anteroom.NothingWanted(t, b)
				})
			})
		}
	}
}

// Those who waited here give up while the turn ends: the place that it has taken goes.
func TestLine_AllGiveUpWhileATurnEnds(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		l := &late{Client: s.client(), at: make(chan struct{}), let: make(chan struct{})}
		a, _ := manager(t, l, anteroom.Config{})
		b, _ := manager(t, s.client(), anteroom.Config{})
		mu := mutex(t, a, anteroom.LockConfig{Key: "k", MaxHandoffs: 1, MaxHandoffTime: time.Millisecond})
		first := acquire(t, mu)
		ctx, cancel := context.WithCancel(bg)
		gone := make(chan struct{})
		go func() { _, _ = mu.Acquire(ctx); close(gone) }()
		s.settle()
		there := s.waiting(t, bg, b.Mutex("k"))
		time.Sleep(time.Second)
		l.armed.Store(true)
		go func() { _ = first.Release(bg) }()
		<-l.at
		cancel()
		<-gone
		close(l.let)
		h := isIn(t, there)
		s.settle()
		if spots := s.spots("k"); len(spots) != 0 {
			t.Errorf("places: %v", spots)
		}
		ok(t, h.Release(bg))
		s.nothing(t, "k")
		anteroom.NothingWanted(t, a)
	})
}

// Whoever is called while it gives up passes the lock on to the next one, with no delay.
func TestLine_ACalledOneThatHasGivenUpCallsTheNext(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		net := s.network()
		a, _ := manager(t, s.client(), anteroom.Config{})
		b, _ := manager(t, s.clientOver(net), anteroom.Config{})
		c, _ := manager(t, s.client(), anteroom.Config{})
		h := acquire(t, a.Mutex("k"))
		ctx, cancel := context.WithCancel(bg)
		called := s.waiting(t, ctx, b.Mutex("k"))
		next := s.waiting(t, bg, c.Mutex("k"))
		time.Sleep(100 * time.Millisecond)
		net.Delay(50 * time.Millisecond)
		ok(t, h.Release(bg))
		cancel() // its message is on the way
		start := time.Now()
		h = <-next
		if took := time.Since(start); took > 300*time.Millisecond {
			t.Errorf("in after %v", took)
		}
		if _, in := <-called; in {
			t.Error("who had given up is in")
		}
		ok(t, h.Release(bg))
		time.Sleep(time.Second)
		s.nothing(t, "k")
		anteroom.NothingWanted(t, b)
	})
}

// A called one that is killed costs the others a call lease and a confirmation at most, not its
// whole lease.
func TestLine_ACalledOneThatIsKilledCostsACallLease(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		net := s.network()
		a, _ := manager(t, s.client(), anteroom.Config{})
		b, _ := manager(t, s.clientOver(net), anteroom.Config{})
		c, _ := manager(t, s.client(), anteroom.Config{})
		h := acquire(t, a.Mutex("k"))
		ctx, cancel := context.WithCancel(bg)
		defer cancel()
		_ = s.waiting(t, ctx, b.Mutex("k"))
		next := s.waiting(t, bg, c.Mutex("k"))
		time.Sleep(time.Second)
		net.BlackHole()
		ok(t, h.Release(bg))
		start := time.Now()
		h = <-next
		if took := time.Since(start); took > 4100*time.Millisecond {
			t.Errorf("in after %v", took)
		}
		ok(t, h.Release(bg))
		net.Heal()
	})
}

// The watchdog's or somebody's ForceRelease lets the first in line in at once.
func TestLine_AForcedReleaseCallsTheNext(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{})
		b, _ := manager(t, s.client(), anteroom.Config{})
		h := acquire(t, a.Mutex("k"))
		got := s.waiting(t, bg, b.Mutex("k"))
		time.Sleep(100 * time.Millisecond)
		if was, err := a.ForceRelease(bg, "k"); !was || err != nil {
			t.Fatal(was, err)
		}
		next := isIn(t, got)
		if h.Held() {
			t.Error("the other one still holds")
		}
		_ = h.Release(bg)
		ok(t, next.Release(bg))
		s.nothing(t, "k")
	})
}

// A caller with another lease becomes the first here while its process stands: it gets the lease
// that it has asked for, and the lock is never left to nobody.
func TestLine_OtherTermsAtTheHead(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{})
		b, _ := manager(t, s.client(), anteroom.Config{})
		h := acquire(t, a.Mutex("k"))
		ctx, cancel := context.WithCancel(bg)
		defer cancel()
		_ = s.waiting(t, ctx, b.Mutex("k"))
		fixed := make(chan *anteroom.Hold, 1)
		go func() { h, _ := b.Mutex("k").Acquire(bg, anteroom.Lease(5*time.Second)); fixed <- h }()
		time.Sleep(100 * time.Millisecond)
		cancel()
		s.settle()
		start := time.Now()
		ok(t, h.Release(bg))
		h = <-fixed
		if took := time.Since(start); took > 100*time.Millisecond {
			t.Errorf("in after %v", took)
		}
		if left := s.TTL("k"); left < 4*time.Second || left > 5*time.Second {
			t.Errorf("a lease of %v", left)
		}
		ok(t, h.Release(bg))
		time.Sleep(time.Second)
		s.nothing(t, "k")
		anteroom.NothingWanted(t, b)
	})
}
