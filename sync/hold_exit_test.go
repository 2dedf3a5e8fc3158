package anteroom

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/sync/observe"
)

// A process that was stopped past its deadline learns from the release itself that the
// lock was lost, also where nobody has reported it yet, others of it wait, and holds before
// were so short that the lock would pass on immediately.
func TestExit_AStoppedOwnerLearnsItFromItsRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := insideServer(t, Config{})
		defer func() { _ = m.Close(context.Background()) }()
		mu, err := m.NewMutex(LockConfig{Key: "k", Fair: true})
		if err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		in, leave, left := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		go func() {
			h, err := mu.Acquire(context.Background())
			if err != nil {
				left <- err
				return
			}
			close(in)
			<-leave
			left <- h.Release(context.Background())
		}()
		synctest.Wait()
		var others sync.WaitGroup
		others.Go(func() { pass(mu) })
		synctest.Wait()
		mu.Unlock()
		<-in
		// The process is stopped: nothing of it runs, and Redis ends the lease.
		m.dog.Stop()
		m.leases.Stop()
		time.Sleep(31 * time.Second)
		s.FastForward(31 * time.Second)
		close(leave)
		if err := <-left; !errors.Is(err, ErrLost) {
			t.Errorf("Release: %v, want ErrLost", err)
		}
		m.leases.Start()
		others.Wait()
	})
}

// The machine is suspended between two hand-offs. The monotonic clock stops, so the
// hold seems to have taken no time, and nobody has noticed yet: not the renewal loop, whose
// timer stopped as well. Its owner learns from the release, or from any question before
// it, that the lock was lost, and the lock does not pass on.
func TestExit_ASuspensionWithinAHold(t *testing.T) {
	for name, ask := range map[string]func(h *Hold) error{
		"by its release": func(h *Hold) error { return h.Release(context.Background()) },
		"by a question":  (*Hold).Err,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, s := insideServer(t, Config{})
				defer func() { _ = m.Close(context.Background()) }()
				var asleep atomic.Int64
				m.leases.Stop()
				suspendable(m, &asleep)
				m.leases.Start()
				mu, err := m.NewMutex(LockConfig{Key: "k", Fair: true})
				if err != nil {
					t.Fatal(err)
				}
				first, err := mu.Acquire(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				owners := make(chan *Hold)
				for range 2 {
					go func() {
						h, err := mu.Acquire(context.Background())
						if err != nil {
							t.Error(err)
						}
						owners <- h
					}()
					synctest.Wait()
				}
				if err := first.Release(context.Background()); err != nil {
					t.Error(err)
				}
				second := <-owners // by the first hand-off
				asleep.Store(int64(31 * time.Second))
				s.FastForward(31 * time.Second)
				if err := ask(second); !errors.Is(err, ErrLost) {
					t.Errorf("%v, want ErrLost", err)
				}
				_ = second.Release(context.Background())
				third := <-owners
				if third.Holder() == second.Holder() {
					t.Error("the lost lock was passed on")
				}
				if err := third.Release(context.Background()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Any goroutine may ask for a lock that is NotReentrant, also while it passes from one
// owner to the next, and several may try to unlock it.
func TestExit_OthersReadWhileTheLockPassesOn(t *testing.T) {
	m := insideManager(t, Config{})
	defer func() { _ = m.Close(context.Background()) }()
	mu, err := m.NewMutex(LockConfig{Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	var owners, lookers sync.WaitGroup
	over := make(chan struct{})
	lookers.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
				mu.Held()
				mu.Holds()
			}
		}
	})
	for range 4 {
		owners.Go(func() {
			for range 500 {
				pass(mu)
			}
		})
	}
	owners.Wait()
	close(over)
	lookers.Wait()
}

// Of several goroutines that unlock together as many succeed as there are owners, and the
// others are notified of their mistake.
func TestExit_ManyUnlockTogether(t *testing.T) {
	m := insideManager(t, Config{Observer: &observe.Observer{}}) // one that is called
	defer func() { _ = m.Close(context.Background()) }()
	mu, err := m.NewMutex(LockConfig{Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	const owners, tries = 3, 6
	for range 100 {
		var wg, locked sync.WaitGroup
		var left atomic.Int32
		mu.Lock()
		for range owners - 1 {
			locked.Go(mu.Lock) // and somebody else unlocks
		}
		for range tries {
			wg.Go(func() {
				defer func() {
					if p := recover(); p != nil && !errors.Is(p.(error), ErrNotHeld) {
						t.Error(p)
					}
				}()
				mu.Unlock()
				left.Add(1)
			})
		}
		wg.Wait()
		for left.Load() < owners {
			for mu.Holds() == 0 {
				runtime.Gosched()
			}
			mu.Unlock()
			left.Add(1)
		}
		locked.Wait()
		if mu.Holds() != 0 || left.Load() > owners {
			t.Fatalf("%d have left of %d, and it is held %d times", left.Load(), owners, mu.Holds())
		}
	}
}

// pass takes the lock and passes it on.
func pass(mu *Mutex) {
	mu.Lock()
	defer mu.Unlock()
}
