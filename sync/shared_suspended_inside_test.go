package anteroom

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// The machine was suspended until Redis had ended the lease of the units, and nobody has noticed: the next one comes in by units
// that Redis has given anew.
func TestShared_ASuspension(t *testing.T) {
	ctx := context.Background()
	for name, v := range map[string]struct {
		first, next func(m *Manager) (release func())
	}{
		"a reader": {readLocks, readLocks},
		"a reader with a Hold": {readLocks, func(m *Manager) func() {
			h, _ := m.RWMutex("k").RAcquire(ctx)
			return func() { _ = h.Release(ctx) }
		}},
		"permits": {weighted, weighted},
		"permits with a Hold": {weighted, func(m *Manager) func() {
			h, _ := m.Semaphore("k", 9).Acquire(ctx, 1)
			return func() { _ = h.Release(ctx) }
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, s := insideServer(t, Config{})
				defer func() { _ = m.Close(ctx) }()
				var asleep atomic.Int64
				m.leases.Stop()
				suspendable(m, &asleep)
				m.leases.Start()
				v.first(m)() // units stay for a moment
				keep := []func(){v.first(m), v.first(m)}
				time.Sleep(2 * time.Second) // it has its whole lease
				for _, leaves := range keep[1:] {
					leaves()
				}
				number := func() string {
					n, _, _ := strings.Cut(s.HGet("k", m.ClientID()), " ")
					return n
				}
				before := number()
				if before == "" {
					t.Fatal("Redis has no units")
				}
				asleep.Store(int64(time.Hour))
				s.FastForward(time.Hour)
				in := make(chan func())
				go func() { in <- v.next(m) }()
				synctest.Wait()
				select {
				case leaves := <-in:
					if now := number(); now == before || now == "" {
						t.Error("it came in by units that Redis has ended")
					}
					leaves()
				default: // it waits until those who have lost them have left
				}
				keep[0]()
				synctest.Wait()
				select {
				case leaves := <-in:
					leaves()
				default:
				}
			})
		})
	}
}

func readLocks(m *Manager) func() {
	rw := m.RWMutex("k")
	rw.RLock()
	return rw.RUnlock
}

func weighted(m *Manager) func() {
	w := m.Semaphore("k", 9).Weighted()
	_ = w.Acquire(context.Background(), 1)
	return func() { w.Release(1) }
}

// The watchdog stops the renewal of one Hold after a suspension, before anything has noticed that: nobody comes in by what is over.
func TestShared_StopRenewingAfterASuspension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		m, _ := insideServer(t, Config{})
		defer func() { _ = m.CloseWithin(time.Second) }()
		var asleep atomic.Int64
		m.leases.Stop()
		suspendable(m, &asleep)
		m.leases.Start()
		h, err := m.RWMutex("k").RAcquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		leaves := readLocks(m)
		time.Sleep(2 * time.Second) // it has its whole lease
		k := h.t.owner.Held().Key()
		if !k.Join() {
			t.Fatal("the gate is closed: the test shows nothing")
		}
		k.Leave(1, 0)
		m.leases.Stop()
		m.dog.Stop()
		asleep.Store(int64(time.Hour))
		time.Sleep(20 * time.Millisecond) // who joins reads a clock that is as old as 10 ms
		h.t.owner.StopRenewing()
		if k.Join() {
			t.Error("a reader comes in by a lease that is over")
			k.Leave(1, 0)
		}
		leaves()
		m.leases.Start()
		_ = h.Release(ctx)
	})
}
