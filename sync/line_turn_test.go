package anteroom_test

import (
	"context"
	"sync"
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

// In a steady state a turn is one command: it releases, calls, and waits again. A process that
// is alone continues its turn. Afterwards nothing is left.
func TestLine_ATurnIsOneCommand_Lab(t *testing.T) {
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
		time.Sleep(4 * time.Second)
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
			anteroom.NothingLeft(t, m)
		}
	})
}

// budget has several owners of m pass through k, one behind the other and each for a millisecond, with a turn of two of
// them, and returns what m sends meanwhile.
func budget(t *testing.T, m *anteroom.Manager, sent *traffic, owners int) int {
	t.Helper()
	mu := mutex(t, m, anteroom.LockConfig{Key: "k", Fair: true, MaxHandoffs: 1, MaxHandoffTime: time.Hour})
	h := acquire(t, mu)
	done := make(chan struct{})
	for range owners {
		go func() {
			h := acquire(t, mu)
			time.Sleep(time.Millisecond)
			ok(t, h.Release(bg))
			done <- struct{}{}
		}()
	}
	synctest.Wait()
	sent.take()
	ok(t, h.Release(bg))
	for range owners - 1 { // the last one releases
		<-done
	}
	n := sent.take()
	<-done
	return n
}

// Where nobody waits elsewhere a turn continues beyond its budget without a command. A client that comes into line is announced,
// also where the message of that is lost, and then the turn ends with its budget.
func TestLine_ATurnContinuesWhileTheLineIsEmpty(t *testing.T) {
	for _, unsubscribed := range []bool{false, true} {
		bubble(t, func(t *testing.T, s *embedded) {
			net := s.network()
			rdb, sent := s.client(), &traffic{}
			rdb.AddHook(sent)
			a, _ := manager(t, listenElsewhere{rdb, s.clientOver(net)}, anteroom.Config{})
			b, _ := manager(t, s.client(), anteroom.Config{})
			s.turns(t, a)
			if n := budget(t, a, sent, 50); n != 0 {
				t.Errorf("%d commands for hand-offs while nobody is in line", n)
			}
			ctx, cancel := context.WithCancel(bg)
			mu := mutex(t, a, anteroom.LockConfig{Key: "k", Fair: true, MaxHandoffs: 2, MaxHandoffTime: time.Hour})
			end := crew(ctx, mu, 4, func() { time.Sleep(10 * time.Millisecond) })
			time.Sleep(3 * time.Second)
			if unsubscribed {
				net.Refuse()
				net.Reset(faultnet.PubSub)
				s.settle()
			}
			start := time.Now()
			h := acquire(t, b.Mutex("k"))
			if took, most := time.Since(start), 50*time.Millisecond; took > most && !unsubscribed || took > 1100*time.Millisecond {
				t.Errorf("unsubscribed %v: in after %v", unsubscribed, took)
			}
			ok(t, h.Release(bg))
			cancel()
			end()
			time.Sleep(5 * time.Second)
			s.nothing(t, "k")
			anteroom.NothingLeft(t, a)
		})
	}
}

// What ends a turn where somebody waits: so many hand-offs, or so much time.
func TestLine_ATurnEndsWithItsBudget(t *testing.T) {
	for name, c := range map[string]struct {
		cfg  anteroom.LockConfig
		want string
	}{
		"MaxHandoffs":    {anteroom.LockConfig{Key: "k", Fair: true, MaxHandoffs: 3, MaxHandoffTime: time.Hour}, "aaaabaa"},
		"MaxHandoffTime": {anteroom.LockConfig{Key: "k", Fair: true, MaxHandoffs: 100, MaxHandoffTime: 15 * time.Millisecond}, "aabaaaa"},
		"no hand-offs":   {anteroom.LockConfig{Key: "k", Fair: true, MaxHandoffs: -1}, "abaaaaa"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				a, _ := manager(t, s.client(), anteroom.Config{})
				b, _ := manager(t, s.client(), anteroom.Config{})
				c2, _ := manager(t, s.client(), anteroom.Config{})
				var order string // guarded by the lock
				var all sync.WaitGroup
				enter := func(mu *anteroom.Mutex, who string) {
					all.Go(func() {
						h := acquire(t, mu)
						order += who
						time.Sleep(10 * time.Millisecond)
						ok(t, h.Release(bg))
					})
					s.settle()
				}
				first := acquire(t, c2.Mutex("k"))
				for range 6 {
					enter(mutex(t, a, c.cfg), "a")
				}
				enter(b.Mutex("k"), "b")
				ok(t, first.Release(bg))
				all.Wait()
				if order != c.want {
					t.Errorf("order %s, want %s", order, c.want)
				}
				s.settle()
				s.nothing(t, "k")
			})
		})
	}
}
