package library_test

import (
	"context"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/internal/testredis"
	"github.com/anteroom/anteroom/lab/bench/library"
	anteroom "github.com/anteroom/anteroom/sync"
)

// TestMain is I3 for all tests: what they leave running fails them.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// each calls f for every library, those of Redis on one server.
func each(t *testing.T, f func(t *testing.T, addr string, lib library.Library)) {
	t.Helper()
	s := testredis.Start(t)
	for _, name := range library.All() {
		lib, err := library.For(name, library.Short)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.ReplaceAll(name, "/", "-"), func(t *testing.T) { f(t, s.Addr(), lib) })
	}
}

func open(t *testing.T, lib library.Library, addr string) library.Client {
	t.Helper()
	c, err := lib.Open(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// again is how long to wait before a peer is asked once more.
const again = 3 * time.Second

// lock locks, by Anteroom at the first attempt. A peer is asked again if it has not returned for long: rueidislock
// now and then leaves a waiter asleep whose lock was released, for good if nobody else uses the key. That is not what
// is tested here.
func lock(ctx context.Context, lib library.Library, h library.Handle) error {
	for slices.Contains(library.Peers(), lib.Name) && ctx.Err() == nil {
		try, cancel := context.WithTimeout(ctx, again)
		err := h.Lock(try)
		late := try.Err() != nil
		if err == nil || !late {
			// rueidislock's lock ends with the context with which it was acquired.
			context.AfterFunc(ctx, cancel)
			return err
		}
		cancel()
	}
	return h.Lock(ctx)
}

// TestLibraries_Exclude: no increment of a counter is lost that is read and written in two steps, by goroutines of
// two clients if the library is for several processes.
func TestLibraries_Exclude(t *testing.T) {
	each(t, func(t *testing.T, addr string, lib library.Library) {
		clients := []library.Client{open(t, lib, addr)}
		if !lib.Local {
			clients = append(clients, open(t, lib, addr))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		const goroutines, times = 4, 15
		var counter atomic.Int64
		var all sync.WaitGroup
		for i := range goroutines {
			h := clients[i%len(clients)].Handle("exclude:" + lib.Name)
			all.Go(func() {
				for range times {
					if err := lock(ctx, lib, h); err != nil {
						t.Error(err)
						return
					}
					n := counter.Load()
					runtime.Gosched()
					counter.Store(n + 1)
					if err := h.Unlock(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		if all.Wait(); counter.Load() != goroutines*times {
			t.Errorf("%d of %d increments", counter.Load(), goroutines*times)
		}
	})
}

// TestLibraries_EndWithTheirContext is I2. A lock that is free again can be acquired again.
func TestLibraries_EndWithTheirContext(t *testing.T) {
	without := []string{library.Anteroom, library.AnteroomDefaults, library.AnteroomFair, library.Mutex}
	each(t, func(t *testing.T, addr string, lib library.Library) {
		if slices.Contains(without, lib.Name) {
			t.Skip("its Lock takes no context")
		}
		c := open(t, lib, addr)
		held, waits := c.Handle("ctx:"+lib.Name), c.Handle("ctx:"+lib.Name)
		if err := held.Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		if waits.Lock(ctx) == nil {
			t.Fatal("two hold the lock")
		}
		if err := held.Unlock(); err != nil {
			t.Error(err)
		}
		if err := waits.Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := waits.Unlock(); err != nil {
			t.Error(err)
		}
	})
}

// TestFor: every library describes itself. Its version is not available to a test (I4 is TestProgram's).
func TestFor(t *testing.T) {
	for _, name := range append(library.All(), library.Nothing) {
		for _, kind := range []library.Kind{library.Alone, library.Short, library.Long} {
			lib, err := library.For(name, kind)
			if err != nil {
				t.Fatal(err)
			}
			if lib.Settings == "" || lib.Name != name || lib.Open == nil || !lib.Local && len(lib.Sends) == 0 {
				t.Errorf("%s: %+v", name, lib)
			}
		}
	}
	if _, err := library.For("no such", library.Alone); err == nil {
		t.Error("a library that there is not")
	}
}

// TestEvalsha_IsAnteroomsLock: what the bare scripts lock is locked for Anteroom.
func TestEvalsha_IsAnteroomsLock(t *testing.T) {
	s := testredis.Start(t)
	lib, err := library.For(library.Evalsha, library.Alone)
	if err != nil {
		t.Fatal(err)
	}
	c := open(t, lib, s.Addr())
	m, err := anteroom.NewManager(s.Client(t), anteroom.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	h, mu := c.Handle("k"), m.Mutex("k")
	if err := h.Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	if mu.TryLock() {
		t.Fatal("Anteroom has a lock that the scripts hold")
	}
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr()})
	defer rdb.Close()
	if ttl := rdb.PTTL(t.Context(), "k").Val(); ttl < time.Second || ttl > 2*time.Second {
		t.Errorf("its lease is %v, not the 2s that Anteroom begins with", ttl)
	}
	if err := h.Unlock(); err != nil {
		t.Fatal(err)
	}
	if h.Unlock() == nil {
		t.Error("unlocked twice")
	}
	if !mu.TryLock() {
		t.Fatal("the scripts have not released the lock")
	}
	mu.Unlock()
}

// TestCandidates: each has a name of its own and locks.
func TestCandidates(t *testing.T) {
	s := testredis.Start(t)
	names := map[string]bool{}
	for _, lib := range library.Candidates() {
		if names[lib.Name] {
			t.Errorf("two are called %s", lib.Name)
		}
		names[lib.Name] = true
		h := open(t, lib, s.Addr()).Handle("candidate:" + lib.Name)
		if err := h.Lock(t.Context()); err != nil {
			t.Error(lib.Name, err)
		} else if err := h.Unlock(); err != nil {
			t.Error(lib.Name, err)
		}
	}
}
