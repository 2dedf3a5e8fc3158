package library_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/anteroom/anteroom/internal/testredis"
	"github.com/anteroom/anteroom/lab/bench/library"
	anteroom "github.com/anteroom/anteroom/sync"
)

// keyOf is the key in Redis that a library gives the lock of that name.
func keyOf(lib, name string) string {
	if lib == library.Rueidislock {
		return "rueidislock:0:" + name
	}
	return name
}

// manager returns a Manager with a client of its own, as another process has.
func manager(t *testing.T, addr string) *anteroom.Manager {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	m, err := anteroom.NewManager(rdb, anteroom.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(m.CloseWithin(10*time.Second), rdb.Close()); err != nil {
			t.Error(err)
		}
	})
	return m
}

// fleet is some programs that count on one counter, which nothing but their locks protects.
type fleet struct {
	t        *testing.T
	inside   atomic.Int32
	overlaps atomic.Int32
	count    atomic.Int32
	made     chan int // the member that has had a turn
	stop     map[int]func()
}

// turn is what a member does under the lock.
func (f *fleet) turn() {
	if f.inside.Add(1) != 1 {
		f.overlaps.Add(1)
	}
	count := f.count.Load()
	time.Sleep(time.Millisecond) // the work
	f.count.Store(count + 1)
	f.inside.Add(-1)
}

// join replaces member i by one that has its turns by once. Who leaves has its last turn to the end: a context that ends
// inside takes the lock from a holder of rueidislock, though it is still at work.
func (f *fleet) join(i int, once func(ctx context.Context) error) {
	f.leave(i)
	ctx, cancel := context.WithCancel(f.t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			if err := once(f.t.Context()); err != nil {
				f.t.Errorf("member %d: %v", i, err)
				return
			}
			select {
			case f.made <- i:
			case <-ctx.Done():
			}
			time.Sleep(2 * time.Millisecond) // something else
		}
	})
	f.stop[i] = func() { cancel(); done.Wait() }
}

func (f *fleet) leave(i int) {
	if stop := f.stop[i]; stop != nil {
		stop()
	}
}

// proceed returns when every member has had some turns since the call.
func (f *fleet) proceed() {
	f.t.Helper()
	const each = 2
	missing := map[int]int{}
	for i := range f.stop {
		missing[i] = each
	}
	limit := time.After(time.Minute)
	for len(missing) > 0 {
		select {
		case i := <-f.made:
			if missing[i]--; missing[i] <= 0 {
				delete(missing, i)
			}
		case <-limit:
			f.t.Fatalf("no turn within a minute: turns missing by member %v", missing)
		}
	}
}

// asking is rueidislock without client-side caching: its waiters ask every TryNextAfter.
type asking struct{ locker rueidislock.Locker }

func openAsking(addr string) (library.Client, error) {
	l, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true, DisableCache: true},
		KeyMajority:  1, TryNextAfter: 50 * time.Millisecond,
	})
	return asking{l}, err
}

func (a asking) Handle(name string) library.Handle { return &askingLock{locker: a.locker, name: name} }

func (a asking) Close() error { a.locker.Close(); return nil }

type askingLock struct {
	locker  rueidislock.Locker
	name    string
	release context.CancelFunc
}

func (l *askingLock) Lock(ctx context.Context) (err error) {
	_, l.release, err = l.locker.WithContext(ctx, l.name)
	return err
}

func (l *askingLock) Unlock() error { l.release(); return nil }

// isHash: redislock does not wait for a lock of ours. It says that it cannot read it, and its caller has to ask again.
func isHash(err error) bool { return err != nil && strings.HasPrefix(err.Error(), "WRONGTYPE") }

// TestFleet_ChangesOver: a fleet that uses another library is replaced program by program, under load. No two
// programs are ever inside, and each of them has its turns at every step. In the end it is replaced once more, by
// programs without StringHolders.
func TestFleet_ChangesOver(t *testing.T) {
	s := testredis.Start(t)
	for _, name := range library.Peers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lib, err := library.For(name, library.Long)
			if err != nil {
				t.Fatal(err)
			}
			if name == library.Rueidislock {
				// Our releases do not wake its waiters: it has to ask by itself, see docs/migrating.md.
				lib.Open = openAsking
			}
			f := &fleet{t: t, made: make(chan int), stop: map[int]func(){}}
			const members = 3
			for i := range members {
				h := open(t, lib, s.Addr()).Handle("stock:" + name)
				f.join(i, func(ctx context.Context) error {
					err := lock(ctx, lib, h)
					for isHash(err) && ctx.Err() == nil {
						time.Sleep(20 * time.Millisecond)
						err = lock(ctx, lib, h)
					}
					if err != nil {
						return err
					}
					f.turn()
					return h.Unlock()
				})
			}
			f.proceed()
			for _, both := range []bool{true, false} {
				for i := range members {
					mu, err := manager(t, s.Addr()).NewMutex(anteroom.LockConfig{Key: keyOf(name, "stock:"+name), StringHolders: both})
					if err != nil {
						t.Fatal(err)
					}
					f.join(i, func(ctx context.Context) error {
						return mu.Do(ctx, func(context.Context) error { f.turn(); return nil })
					})
					f.proceed()
				}
			}
			for i := range members {
				f.leave(i)
			}
			if n := f.overlaps.Load(); n > 0 {
				t.Errorf("%d times two were inside", n)
			}
			if n := f.count.Load(); n < members*(2*members+1)*2 {
				t.Errorf("the counter is %d", n)
			}
		})
	}
}

// TestFleet_PeersFindOurLockTaken: what the other libraries do to a key that we hold: they are refused, a release of
// what they had before fails, and our lock stays.
func TestFleet_PeersFindOurLockTaken(t *testing.T) {
	s := testredis.Start(t)
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr()})
	defer rdb.Close()
	ctx := t.Context()
	// had is a lock of the peer that has ended by itself; try takes another.
	peers := map[string]func(t *testing.T) (release, try func() error){
		library.Redsync: func(t *testing.T) (func() error, func() error) {
			rs := redsync.New(goredis.NewPool(rdb))
			mu := rs.NewMutex("k-" + library.Redsync)
			if err := mu.Lock(); err != nil {
				t.Fatal(err)
			}
			return func() error { _, err := mu.Unlock(); return err }, rs.NewMutex(mu.Name()).TryLock
		},
		library.Redislock: func(t *testing.T) (func() error, func() error) {
			c, key := redislock.New(rdb), "k-"+library.Redislock
			l, err := c.Obtain(ctx, key, time.Minute, nil)
			if err != nil {
				t.Fatal(err)
			}
			return func() error { return l.Release(ctx) }, func() error { _, err := c.Obtain(ctx, key, time.Minute, nil); return err }
		},
		library.Rueidislock: func(t *testing.T) (func() error, func() error) {
			l, err := rueidislock.NewLocker(rueidislock.LockerOption{
				ClientOption: rueidis.ClientOption{InitAddress: []string{s.Addr()}, ForceSingleClient: true}, KeyMajority: 1,
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(l.Close)
			had, release, err := l.WithContext(ctx, "k-"+library.Rueidislock)
			if err != nil {
				t.Fatal(err)
			}
			return func() error { release(); return context.Cause(had) }, func() error {
				_, _, err := l.TryWithContext(ctx, "k-"+library.Rueidislock)
				return err
			}
		},
	}
	for name, open := range peers {
		t.Run(name, func(t *testing.T) {
			release, try := open(t)
			key := keyOf(name, "k-"+name)
			if n, err := rdb.Del(ctx, key).Result(); n != 1 || err != nil { // as if its lease had ended
				t.Fatalf("it has no key %q: %v", key, err)
			}
			mu, err := manager(t, s.Addr()).NewMutex(anteroom.LockConfig{Key: key, StringHolders: true})
			if err != nil {
				t.Fatal(err)
			}
			hold, err := mu.Acquire(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if err := try(); err == nil {
				t.Error("it got the lock that we hold")
			} else {
				t.Logf("refused: %v", err)
			}
			t.Logf("the release of what it had before: %v", release())
			if err := hold.Release(ctx); err != nil {
				t.Errorf("our release: %v", err)
			}
		})
	}
}
