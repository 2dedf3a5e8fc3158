package anteroom

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/queue"
)

// The machine is suspended while a lock lingers, and nobody has noticed when the next one locks it: that one has a new grant.
func TestLinger_ASuspension(t *testing.T) {
	for name, lock := range map[string]func(mu *Mutex) (*Hold, error){
		"Acquire":    func(mu *Mutex) (*Hold, error) { return mu.Acquire(context.Background()) },
		"TryAcquire": func(mu *Mutex) (*Hold, error) { return mu.TryAcquire(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, s := insideServer(t, Config{})
				defer func() { _ = m.Close(context.Background()) }()
				var asleep atomic.Int64
				m.leases.Stop()
				suspendable(m, &asleep)
				m.leases.Start()
				mu, err := m.NewMutex(LockConfig{Key: "k", Linger: time.Minute})
				if err != nil {
					t.Fatal(err)
				}
				pass(mu) // the subscription begins
				synctest.Wait()
				first, err := mu.Acquire(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second) // it has its whole lease
				if err := first.Release(context.Background()); err != nil {
					t.Error(err)
				}
				asleep.Store(int64(31 * time.Second))
				s.FastForward(31 * time.Second)
				next, err := lock(mu)
				if err != nil {
					t.Fatal(err)
				}
				if err := next.Err(); errors.Is(err, ErrLost) || !s.Exists("k") {
					t.Errorf("it has a lock that is lost: %v", err)
				}
				_ = next.Release(context.Background())
			})
		})
	}
}

// What lingers is not renewed, and the watchdog accuses nobody of that: nor while the next owner is coming in.
func TestLinger_BetweenTwoOwnersNobodyIsAccused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, _ := insideServer(t, Config{})
		defer func() { _ = m.Close(context.Background()) }()
		mu, err := m.NewMutex(LockConfig{Key: "k", Linger: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		pass(mu) // the subscription begins
		synctest.Wait()
		pass(mu)
		k := mu.find()
		g := k.Held()
		isFixed := func(when string) {
			if f, listed := facts(g, g.Current(), m.leases.Now()); !listed || !f.Fixed {
				t.Errorf("%s: %t %+v", when, listed, f)
			}
		}
		isFixed("it lingers")
		next := &queue.Stay{Need: 1, Kind: queue.NoNotify}
		if in, _, err := k.Queue().Acquire(&queue.Waiter{Stay: next}); !in {
			t.Fatal("it does not linger", err)
		}
		isFixed("the next owner is in the queue, and not yet one of the grant")
		k.Queue().Release(next, queue.Linger)
	})
}

// Where nothing can linger, a lost message delays nobody for as long as Linger either.
func TestLinger_HasNoEffect(t *testing.T) {
	m, _ := insideServer(t, Config{Dialect: DialectRedisson})
	defer func() { _ = m.Close(context.Background()) }()
	for name, cfg := range map[string]LockConfig{
		"MinHold": {MinHold: time.Second}, "a fixed lease": {RenewalTime: -1}, "no hand-offs": {MaxHandoffs: -1}, "Redisson's tokens": {Fencing: true},
	} {
		cfg.Key, cfg.Linger = "k", 10*time.Second
		mu, err := m.NewMutex(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if d := mu.settings.lock.Linger; d != 0 {
			t.Errorf("%s: it lingers for %v", name, d)
		}
	}
}
