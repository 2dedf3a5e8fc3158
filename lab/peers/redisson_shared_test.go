package peers

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
)

const (
	noOwner  = "readers have no identity: RUnlock is anybody's, as with sync.RWMutex, and only a Hold is asked whether it holds"
	noNumber = "the number of permits is part of the configuration, not a value in Redis that anybody sets, adds to or drains"
	unearned = "what nobody has acquired cannot be released"
)

func (r rig) rw() *anteroom.RWMutex { return r.RWMutex("lock") }

// read and write acquire as a Hold.
func (r rig) read(ctx context.Context, opts ...anteroom.AcquireOption) *anteroom.Hold {
	h, err := r.rw().RAcquire(ctx, opts...)
	check(r.T, err)
	return h
}

func (r rig) write(ctx context.Context, opts ...anteroom.AcquireOption) *anteroom.Hold {
	h, err := r.rw().Acquire(ctx, opts...)
	check(r.T, err)
	return h
}

func (r rig) locked(is bool) { r.Helper(); r.want("as locked as that", r.info().Locked == is) }

// left is how many of so many units nobody has, once what is under way has come.
func (r rig) left(all int64) int64 {
	time.Sleep(20 * time.Millisecond) // units that nobody uses linger for 10 ms
	for _, h := range r.info().Holders {
		all -= h.Count
	}
	return all
}

// together has goroutines of each client take units of "lock", with no more than all of them at once, and counts.
func (r rig) together(clients, goroutines, rounds int, work time.Duration, all int64, take func(*anteroom.Manager) (units int64, leave func())) int {
	var wg sync.WaitGroup
	var n, inside atomic.Int64
	for i := range clients {
		m := r.Manager.Manager
		if i > 0 {
			m = r.other()
		}
		for range goroutines {
			wg.Go(func() {
				for range rounds {
					units, leave := take(m)
					r.want("no more than there are", inside.Add(units) <= all)
					time.Sleep(work)
					n.Add(1)
					inside.Add(-units)
					leave()
				}
			})
		}
	}
	wg.Wait()
	return int(n.Load())
}

const all = 1 << 20

// either reads or writes.
func either(m *anteroom.Manager) (int64, func()) {
	if rw := m.RWMutex("lock"); rand.IntN(2) == 0 {
		rw.Lock()
		return all, rw.Unlock
	} else {
		rw.RLock()
		return 1, rw.RUnlock
	}
}

// permits takes up to n of them.
func permits(of int64, n func() int64) func(*anteroom.Manager) (int64, func()) {
	return func(m *anteroom.Manager) (int64, func()) {
		s, units := m.Semaphore("lock", of).Weighted(), n()
		if err := s.Acquire(context.Background(), units); err != nil {
			panic(err)
		}
		return units, func() { s.Release(units) }
	}
}

func one() int64 { return 1 }

var readWrite = scenarios{
	"testInCluster": onCluster, "testHoldCount": noOwner, "testUnlockFail": noOwner,
	"testIsHeldByCurrentThread": noOwner, "testIsHeldByCurrentThreadOtherThread": noOwner,
	"testForceUnlock": "a forced release is of the key, whoever reads or writes",
	"testReadLockExpiration": func(r rig) {
		begin := time.Now()
		for _, d := range []time.Duration{9100, 2800} {
			go func() {
				h := r.read(r.Context(), anteroom.Lease((d+900)*time.Millisecond))
				time.Sleep(d * time.Millisecond)
				check(r.T, h.Release(r.Context()))
			}()
			time.Sleep(300 * time.Millisecond)
		}
		r.write(r.Context(), anteroom.Lease(10*time.Second))
		r.want("after the first reader", time.Since(begin) >= 9100*time.Millisecond && time.Since(begin) < 9200*time.Millisecond)
	},
	"testReadLockIsLocked": func(r rig) { r.read(r.write(r.Context()).Context()); r.locked(true) },
	"testReadLockExpirationRenewal": func(r rig) {
		r.want("all", r.together(1, 10, 5, 35*time.Second, all, func(m *anteroom.Manager) (int64, func()) {
			h, err := m.RWMutex("lock").RAcquire(r.Context())
			check(r.T, err)
			return 1, func() { check(r.T, h.Release(r.Context())) }
		}) == 50)
	},
	"testName": func(r rig) {
		rw := r.RWMutex("{test}:abc:key")
		r.want("all", r.together(1, 10, 10, 0, all, func(*anteroom.Manager) (int64, func()) { rw.RLock(); return 1, rw.RUnlock }) == 100)
	},
	"testWriteLockExpiration": func(r rig) {
		r.write(r.write(r.Context(), anteroom.Lease(10*time.Second)).Context())
		elsewhere(func() { r.want("refused", !r.rw().TryLockFor(3*time.Second)) })
	},
	"testReadLockLeaseTimeoutDiffThreadsWRR": func(r rig) {
		begin := time.Now()
		r.write(r.Context(), anteroom.Lease(10*time.Second))
		var wg sync.WaitGroup
		wg.Go(r.rw().RLock)
		wg.Go(r.rw().RLock)
		wg.Wait()
		r.want("both within 11 s", time.Since(begin) < 11*time.Second)
	},
	"testReadLockLeaseTimeoutDiffThreadsRRW": func(r rig) {
		r.read(r.Context(), anteroom.Lease(10*time.Second))
		time.Sleep(5 * time.Second)
		check(r.T, r.read(r.Context(), anteroom.Lease(10*time.Second)).Release(r.Context()))
		begin := time.Now()
		r.write(r.Context(), anteroom.Wait(10*time.Second))
		r.want("within 6 s", time.Since(begin) < 6*time.Second)
	},
	"testReadLockLeaseTimeout": func(r rig) {
		r.read(r.Context(), anteroom.Lease(4*time.Second))
		time.Sleep(3 * time.Second)
		check(r.T, r.read(r.Context(), anteroom.Lease(4*time.Second)).Release(r.Context()))
		time.Sleep(2 * time.Second)
		r.want("free", r.rw().TryLock())
	},
	"testWR": func(r rig) {
		w := r.write(r.Context())
		check(r.T, r.read(w.Context()).Release(r.Context()))
		r.locked(true)
		check(r.T, w.Release(r.Context()))
		r.locked(false)
	},
	"testWriteRead": func(r rig) {
		r.rw().Lock()
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() { r.rw().RLock(); time.Sleep(800 * time.Millisecond); r.rw().RUnlock() })
			time.Sleep(100 * time.Millisecond)
		}
		begin := time.Now()
		r.rw().Unlock()
		wg.Wait()
		r.want("all at once", time.Since(begin) < time.Second)
	},
	"testWriteReadReentrancy": func(r rig) { // what outlives the write lock is Downgrade
		w := r.write(r.Context())
		check(r.T, r.read(w.Context()).Release(r.Context()))
		elsewhere(func() { r.want("refused", !r.rw().TryRLock()) })
		check(r.T, w.Downgrade())
		r.want("it reads", !r.rw().TryLock() && r.rw().TryRLock())
		r.rw().RUnlock()
		check(r.T, w.Release(r.Context()))
		r.want("free", r.rw().TryLock())
		r.rw().Unlock()
	},
	"testWriteLock": func(r rig) {
		w := r.write(r.Context())
		inner := r.write(w.Context())
		for _, m := range []*anteroom.Manager{r.Manager.Manager, r.other()} {
			elsewhere(func() { r.want("refused", !m.RWMutex("lock").TryRLock()) })
		}
		check(r.T, inner.Release(r.Context()))
		r.want("held", w.Held())
		check(r.T, w.Release(r.Context()))
		for _, m := range []*anteroom.Manager{r.Manager.Manager, r.other()} {
			r.want("readers", m.RWMutex("lock").TryRLock())
		}
		r.want("no writer", !r.rw().TryLock())
	},
	"testMultiRead": func(r rig) {
		one := r.read(r.Context())
		r.want("no writer", !r.rw().TryLock())
		go func() { r.rw().RLock(); time.Sleep(time.Second); r.rw().RUnlock() }()
		time.Sleep(50 * time.Millisecond)
		check(r.T, one.Release(r.Context()))
		r.want("no writer beside the other", !r.rw().TryLock() && !one.Held())
		time.Sleep(2 * time.Second) // the last to leave an open gate says nothing, which is noticed within a second
		r.locked(false)
		for range 2 {
			r.want("a writer", r.rw().TryLock())
			r.locked(true)
			r.rw().Unlock()
			time.Sleep(20 * time.Millisecond)
			r.locked(false)
		}
	},
	"testReadWriteTTL": func(r rig) {
		w := r.write(r.Context())
		r.read(w.Context())
		for i := range 10 {
			time.Sleep(5 * time.Second)
			r.want("renewed", r.info().TTL > 19*time.Second)
			if i == 4 {
				check(r.T, w.Downgrade())
			}
		}
	},
	"testExpireRead": func(r rig) {
		begin, one := time.Now(), r.read(r.Context(), anteroom.Lease(2*time.Second))
		elsewhere(func() { defer r.rw().RUnlock(); r.rw().RLock() })
		r.want("beside it", time.Since(begin) < 2050*time.Millisecond)
		check(r.T, one.Release(r.Context()))
	},
	"testExpireWrite": func(r rig) {
		begin, one := time.Now(), r.write(r.Context(), anteroom.Lease(2*time.Second))
		elsewhere(func() { defer r.rw().Unlock(); r.rw().Lock() })
		r.want("had by another after 2 s", time.Since(begin) < 2050*time.Millisecond)
		r.want("an error of the release", errors.Is(one.Release(r.Context()), anteroom.ErrLost))
	},
	"testAutoExpire": func(r rig) {
		other := r.other()
		elsewhere(other.RWMutex("lock").Lock)
		time.Sleep(15 * time.Second)
		_ = other.CloseWithin(time.Millisecond)
		r.locked(true)
		time.Sleep(31 * time.Second)
		r.locked(false)
	},
	"testIsLocked": readLocked, "testIsLockedOtherThread": readLocked,
	"testLockUnlock": func(r rig) {
		for range 2 {
			func() { defer r.rw().RUnlock(); r.rw().RLock() }()
		}
	},
	"testReentrancy": func(r rig) {
		r.want("a reader", r.rw().TryRLock())
		r.want("another one", r.rw().TryRLock())
		r.rw().RUnlock()
		elsewhere(func() { r.want("another lock", r.RWMutex("lock1").TryRLock()) })
		r.rw().RUnlock()
	},
	"testConcurrency_SingleInstance":    func(r rig) { r.want("all", r.together(1, 15, 1, 0, all, either) == 15) },
	"testConcurrencyLoop_MultiInstance": func(r rig) { r.want("all", r.together(16, 1, 100, 10*time.Millisecond, all, either) == 1600) },
	"testConcurrency_MultiInstance":     func(r rig) { r.want("all", r.together(100, 1, 1, 0, all, either) == 100) },
}

func readLocked(r rig) {
	for _, f := range []func(){func() {}, r.rw().RLock, r.rw().RUnlock} {
		f()
		is := len(r.Snapshot()) > 0 && r.Snapshot()[0].Used > 0
		elsewhere(func() { r.locked(is) })
	}
}

// blocking acquires n of five permits while others are released, one in each half second.
func blocking(first func(rig)) func(rig) {
	return func(r rig) {
		s := r.Semaphore("lock", 5).Weighted()
		check(r.T, s.Acquire(r.Context(), 3))
		r.want("two are left", r.left(5) == 2)
		first(r)
		begin := time.Now()
		go func() {
			for range 2 {
				time.Sleep(500 * time.Millisecond)
				s.Release(1)
			}
		}()
		check(r.T, s.Acquire(r.Context(), 4))
		r.want("after a second, and none is left", time.Since(begin) >= time.Second && time.Since(begin) < 1100*time.Millisecond && r.left(5) == 0)
	}
}

// onePermit is acquired again when another goroutine, or the end of its lease, has given it back.
func onePermit(after time.Duration, expires bool) func(rig) {
	return func(r rig) {
		s, begin := r.Semaphore("lock", 1), time.Now()
		var opts []anteroom.AcquireOption
		if expires {
			opts = append(opts, anteroom.Lease(after))
		}
		first, err := s.Acquire(r.Context(), 1, opts...)
		check(r.T, err)
		there := r.other().Semaphore("lock", 1) // its own process would wait
		_, err = there.TryAcquire(r.Context(), 1)
		r.want("refused", errors.Is(err, anteroom.ErrNotAcquired) && r.left(1) == 0)
		if !expires {
			time.AfterFunc(after-time.Since(begin), func() { _ = first.Release(r.Context()) })
		}
		elsewhere(func() {
			_, err := s.Acquire(r.Context(), 1)
			check(r.T, err)
		})
		_, err = there.TryAcquire(r.Context(), 1)
		r.want("when it was free, and then refused", time.Since(begin) >= after && time.Since(begin) < after+50*time.Millisecond && errors.Is(err, anteroom.ErrNotAcquired) && r.left(1) == 0)
		r.want("the first hold is over", errors.Is(first.Release(r.Context()), anteroom.ErrLost) == expires)
	}
}

var semaphore = scenarios{
	"testAcquireAfterAddPermits": noNumber, "testTrySetPermits": noNumber, "testAddPermits": noNumber, "testReducePermits": noNumber,
	"testDrainPermits": noNumber, "testAcquireWithoutSetPermits": unearned, "testReleaseWithoutPermits": unearned,
	"testZero":             "nothing is acquired by asking for none: ErrConfig",
	"testBlockingAcquire":  onePermit(time.Second, false),
	"testBlockingNAcquire": blocking(func(rig) {}),
	"testTryNAcquire":      blocking(func(r rig) { r.want("refused", !r.other().Semaphore("lock", 5).Weighted().TryAcquire(4)) }),
	"testReleaseAcquire": func(r rig) {
		s := r.Semaphore("lock", 10).Weighted()
		for _, n := range []int64{1, 5} {
			check(r.T, s.Acquire(r.Context(), n))
			r.want("so many less", r.left(10) == 10-n)
			s.Release(n)
			r.want("all", r.left(10) == 10)
		}
	},
	"testConcurrency_SingleInstance": func(r rig) { r.want("all", r.together(1, 15, 1, 0, 1, permits(1, one)) == 15) },
	"testConcurrencyLoopMax_MultiInstance": func(r rig) {
		const most = 1 << 29 // of a Semaphore; in Java the greatest int
		r.want("all", r.together(4, 1, 10, 10*time.Millisecond, most, permits(most, func() int64 {
			return []int64{1, most}[rand.IntN(2)]
		})) == 40)
	},
	"testConcurrencyLoop_MultiInstance":       func(r rig) { r.want("all", r.together(16, 1, 100, 10*time.Millisecond, 1, permits(1, one)) == 1600) },
	"testConcurrency_MultiInstance_1_permits": func(r rig) { r.want("all", r.together(30, 1, 1, 0, 1, permits(1, one)) == 30) },
}

var expirable = scenarios{
	"testTrySetPermits": noNumber, "testAddPermits": noNumber, "testReleaseWithoutPermits": unearned,
	"testUpdateLeaseTime":  "the units of a process are renewed together; the option Lease ends one Hold",
	"testNotExistent":      func(r rig) { r.locked(false) },
	"testExpire":           onePermit(2*time.Second, true),
	"testExpireTryAcquire": onePermit(2*time.Second, true),
	"testBlockingAcquire":  onePermit(time.Second, false),
	"testTryAcquire":       onePermit(500*time.Millisecond, false),
	"testAvailablePermits": func(r rig) {
		s := r.Semaphore("lock", 2)
		take := func() error {
			_, err := s.Acquire(r.Context(), 1, anteroom.Wait(200*time.Millisecond), anteroom.Lease(time.Second))
			return err
		}
		for range 2 {
			r.want("one", take() == nil)
		}
		r.want("no more", take() != nil && r.left(2) == 0)
		time.Sleep(1100 * time.Millisecond)
		r.want("one more", take() == nil)
		time.Sleep(1100 * time.Millisecond)
		r.want("both are back", r.left(2) == 2)
	},
	"testConcurrency_SingleInstance":    func(r rig) { r.want("all", r.together(1, 100, 1, 0, 1, permits(1, one)) == 100) },
	"testConcurrencyLoop_MultiInstance": semaphore["testConcurrencyLoop_MultiInstance"],
}

// TestRedisson_Shared has the tests of Redisson for RReadWriteLock, RSemaphore and RPermitExpirableSemaphore.
func TestRedisson_Shared(t *testing.T) {
	for class, tests := range map[string]scenarios{
		"RedissonReadWriteLockTest": readWrite, "RedissonSemaphoreTest": semaphore, "RedissonPermitExpirableSemaphoreTest": expirable,
	} {
		t.Run(class, func(t *testing.T) { tests.play(t, anteroom.Config{}) })
	}
}
