package anteroom_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/foreign"
	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
)

// beside has a foreign client want the lock k on each message of sub, beside two processes that always
// want it. It returns how many turns the foreign client has had, and how many they have.
func beside(t *testing.T, s *testredis.Server, sub func(*redis.Client) *redis.PubSub) (its, ours int) {
	t.Helper()
	rdb := s.Client(t)
	other := foreign.Client{RDB: rdb, Holder: "server1-thread-1"}
	ctx, cancel := context.WithTimeout(bg, 4*time.Second)
	defer cancel()
	ps := sub(rdb)
	defer ps.Close()
	must[any](t)(ps.Receive(bg))
	var inside atomic.Int32
	work := func() {
		if inside.Add(1) != 1 {
			t.Error("two are in")
		}
		time.Sleep(time.Millisecond)
		inside.Add(-1)
	}
	last := -1 // guarded by the lock
	var ends []func()
	for i := range 2 {
		m, _ := manager(t, s.Client(t), anteroom.Config{})
		ends = append(ends, crew(ctx, mutex(t, m, anteroom.LockConfig{Key: "k", MaxHandoffs: 4}), 2, func() {
			if last != i {
				last = i
				ours++
			}
			work()
		}))
	}
	for ctx.Err() == nil {
		if m, err := ps.ReceiveTimeout(ctx, time.Second); err != nil {
			continue
		} else if m, is := m.(*redis.Message); !is || strings.Contains(m.Payload, other.Holder) {
			continue // its own: it would be first each time
		}
		if got := must[bool](t)(other.Run(bg, foreign.Lock, "k", time.Minute)); !got {
			continue
		}
		last = -1
		its++
		work()
		must[bool](t)(other.Run(bg, foreign.Unlock, "k", time.Minute))
		ok(t, other.Publish(bg, "k"))
	}
	for _, end := range ends {
		end()
	}
	t.Logf("turns: %d of the foreign client, %d of ours", its, ours)
	return its, ours
}

// A foreign client that listens for releases gets about the part of one process more. One that listens by a pattern, as
// a monitor does, is not counted.
func TestLine_ForeignClientsGetTheirShare_Lab(t *testing.T) {
	t.Parallel()
	// A machine that is busy may keep the foreign client away from its turns for a while, so it has several tries.
	for range 5 {
		its, ours := beside(t, testredis.Start(t), func(c *redis.Client) *redis.PubSub { return c.Subscribe(bg, "lock:release:k") })
		if ours >= 50 && its*8 >= ours && its <= 2*ours {
			return
		}
	}
	t.Error("it has not had its share in any try")
}

// Beside foreign clients, of whom each has the lock for one owner at a time, a turn is short: one of another
// process comes after one owner.
func TestLine_BesideForeignClientsATurnIsShort(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{})
		b, _ := manager(t, s.client(), anteroom.Config{})
		s.HSet("k", "server1-thread-123", "1")
		s.SetTTL("k", time.Hour)
		var order string // guarded by the lock
		var wg sync.WaitGroup
		wait := func(m *anteroom.Manager, name string) {
			wg.Go(func() {
				h := acquire(t, m.Mutex("k"))
				order += name
				ok(t, h.Release(bg))
			})
			s.settle()
		}
		for range 6 {
			wait(a, "a")
		}
		wait(b, "b")
		time.Sleep(100 * time.Millisecond)
		s.Del("k")
		s.Publish("lock:release:k", "")
		wg.Wait()
		if order != "abaaaaa" {
			t.Errorf("order %q", order)
		}
	})
}
