package peers

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/locktest"
)

// rig is a client of Redisson's tests, and its lock "lock".
type rig struct {
	*testing.T
	*locktest.Manager
	mu    *anteroom.Mutex
	other func() *anteroom.Manager // a new client
}

// scenarios are what tests of that name do: a func(rig), or why the test does not apply.
type scenarios map[string]any

// play runs them in virtual time. Each may end while it holds locks.
func (s scenarios) play(t *testing.T, cfg anteroom.Config) {
	applied := 0
	for name, what := range s {
		scenario, applies := what.(func(rig))
		if !applies {
			t.Logf("%s does not apply: %s", name, what)
			continue
		}
		applied++
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lt := locktest.NewManager(t, cfg, locktest.AllowLeaks())
				scenario(rig{t, lt, lt.Mutex("lock"), func() *anteroom.Manager { return lt.Another(cfg).Manager }})
			})
		})
	}
	t.Logf("%d of %d apply", applied, len(s))
}

func (r rig) want(what string, is bool) {
	r.Helper()
	if !is {
		r.Errorf("not so: %s", what)
	}
}

func (r rig) info() anteroom.Info {
	info, err := r.Inspect(context.Background(), "lock")
	check(r.T, err)
	return info
}

func (r rig) acquire(opts ...anteroom.AcquireOption) *anteroom.Hold {
	hold, err := r.mu.Acquire(context.Background(), opts...)
	check(r.T, err)
	return hold
}

// elsewhere runs f on another goroutine.
func elsewhere(f func()) {
	var wg sync.WaitGroup
	wg.Go(f)
	wg.Wait()
}

func lock(mu *anteroom.Mutex) bool { mu.Lock(); return true }

// crowd has goroutines of each client take the locks "0", "1" … in rounds, and returns how often they did.
func (r rig) crowd(clients, goroutines, rounds, locks int, work time.Duration, take func(*anteroom.Mutex) bool) int {
	var wg sync.WaitGroup
	var n atomic.Int64
	inside := make([]atomic.Bool, locks)
	for i := range clients {
		m := r.Manager.Manager
		if i > 0 {
			m = r.other()
		}
		for j := range goroutines {
			wg.Go(func() {
				for k := range rounds {
					at := (j + k) % locks
					mu := m.Mutex(fmt.Sprint(at))
					if !take(mu) {
						continue
					}
					r.want("alone, and held", !inside[at].Swap(true) && mu.Held())
					time.Sleep(work)
					n.Add(1)
					inside[at].Store(false)
					mu.Unlock()
				}
			})
		}
	}
	wg.Wait()
	return int(n.Load())
}

// inOrder has eight goroutines lock, one after the other.
func (r rig) inOrder(every time.Duration, take, work func()) {
	var wg sync.WaitGroup
	order := make(chan int, 8)
	for i := range 8 {
		time.Sleep(every)
		wg.Go(func() { take(); order <- i; work() })
	}
	wg.Wait()
	for i := range 8 {
		r.want("in order of arrival", <-order == i)
	}
}

// drift has three threads try for the lock, and another one wait that is interrupted.
func drift(times int, wait, work time.Duration) func(rig) {
	return func(r rig) {
		var wg sync.WaitGroup
		for range 3 {
			time.Sleep(50 * time.Millisecond)
			wg.Go(func() {
				for range times / 3 {
					if hold, err := r.mu.Acquire(r.Context(), anteroom.Wait(wait), anteroom.Lease(30*time.Second)); err == nil {
						time.Sleep(work)
						_ = hold.Release(r.Context())
					}
				}
			})
		}
		ctx, interrupt := context.WithTimeout(r.Context(), time.Second)
		defer interrupt()
		wg.Go(func() { _, _ = r.mu.Acquire(ctx, anteroom.Lease(30*time.Second)) })
		wg.Wait()
		_, err := r.ForceRelease(r.Context(), "lock")
		r.want("nobody holds it or waits", err == nil && !r.info().Locked && r.info().InLine == 0)
		r.want("it is free immediately", r.other().Mutex("lock").TryLock())
	}
}

// held tries every question about a lock that is held, and is not.
func held(r rig) {
	for i, f := range []func(){func() {}, r.mu.Lock, r.mu.Unlock, r.mu.Lock, r.mu.Lock, r.mu.Unlock, r.mu.Unlock} {
		f()
		n := []int{0, 1, 0, 1, 2, 1, 0}[i]
		r.want("held here", r.mu.Holds() == n && r.mu.Held() == (n > 0))
		elsewhere(func() { r.want("locked, and not held there", r.info().Locked == (n > 0) && !r.mu.Held()) })
	}
}

const (
	onCluster = "package conformance does it on a Cluster"
	inner     = "it calls methods inside Redisson, for the timeouts of its queue"
)

// both are tests of RedissonLockTest and of RedissonFairLockTest.
var both = scenarios{
	"testTryLockWait": func(r rig) {
		r.other().Mutex("lock").Lock()
		begin := time.Now()
		r.want("refused after three seconds", !r.mu.TryLockFor(3*time.Second) && time.Since(begin) == 3*time.Second)
	},
	"testForceUnlock": func(r rig) {
		r.mu.Lock()
		_, err := r.ForceRelease(r.Context(), "lock")
		r.want("unlocked", err == nil && !r.info().Locked)
	},
	"testExpire": func(r rig) {
		begin, hold := time.Now(), r.acquire(anteroom.Lease(2*time.Second))
		elsewhere(func() { lock(r.mu); r.mu.Unlock() })
		r.want("had by another after 2 s", time.Since(begin) < 2020*time.Millisecond)
		r.want("an error of the release", errors.Is(hold.Release(r.Context()), anteroom.ErrLost))
	},
	"testAutoExpire": func(r rig) {
		other := r.other()
		elsewhere(other.Mutex("lock").Lock)
		time.Sleep(15 * time.Second)
		_ = other.CloseWithin(time.Millisecond)
		r.want("locked", r.info().Locked)
		time.Sleep(30 * time.Second)
		r.want("unlocked", !r.info().Locked)
	},
	"testGetHoldCount": held, "testIsHeldByCurrentThread": held, "testIsHeldByCurrentThreadOtherThread": held,
	"testIsLocked": held, "testIsLockedOtherThread": held,
	"testUnlockFail": func(r rig) {
		go func() {
			r.mu.Lock()
			time.Sleep(time.Second)
			r.mu.Unlock()
		}()
		time.Sleep(400 * time.Millisecond)
		defer func() {
			err, _ := recover().(error)
			r.want("a panic", errors.Is(err, anteroom.ErrNotHeld))
			time.Sleep(time.Second)
		}()
		r.mu.Unlock()
	},
	"testReentrancy": func(r rig) {
		for range 2 {
			r.want("locked", r.mu.TryLock())
		}
		r.mu.Unlock()
		elsewhere(func() { r.want("not for another", !r.mu.TryLock()) })
		r.mu.Unlock()
	},
	"testLockUnlock":                    func(r rig) { r.want("twice", r.crowd(1, 1, 2, 1, 0, lock) == 2) },
	"testConcurrency_SingleInstance":    func(r rig) { r.want("all", r.crowd(1, 15, 1, 1, 0, lock) == 15) },
	"testConcurrency_MultiInstance":     func(r rig) { r.want("all", r.crowd(100, 1, 1, 1, 0, lock) == 100) },
	"testConcurrencyLoop_MultiInstance": func(r rig) { r.want("all", r.crowd(16, 1, 100, 1, 10*time.Millisecond, lock) == 1600) },
}

var plain = scenarios{
	"testInCluster": onCluster, "testLockFailoverInCluster": onCluster,
	"testSubscriptionsPerConnection": func(r rig) {
		r.want("all", r.crowd(1, 32, 156, 5, 10*time.Millisecond, lock) == 32*156)
		info, err := r.Inspect(r.Context(), "0")
		r.want("nobody listens any more", err == nil && info.Subscribers == 0)
	},
	"testSinglePubSub": func(r rig) {
		r.want("all", r.crowd(1, 4, 2, 2, 0, func(mu *anteroom.Mutex) bool { return mu.TryLockFor(100 * time.Millisecond) }) == 8)
	},
	"testConcurrencyTryLockUnLock": func(r rig) { r.want("some", r.crowd(1, 16, 1000, 1, 0, (*anteroom.Mutex).TryLock) > 0) },
	"testLockIsNotRenewedAfterInterruptedTryLock": func(r rig) {
		ctx, interrupt := context.WithCancel(r.Context())
		go func() { _, _ = r.mu.TryDo(ctx, func(context.Context) error { return nil }) }()
		interrupt()
		time.Sleep(45 * time.Second)
		r.want("unlocked", !r.info().Locked)
	},
	"testRedisFailed": func(r rig) {
		r.Down()
		time.Sleep(3 * time.Second)
		_, err := r.mu.Acquire(r.Context(), anteroom.Wait(5*time.Second), anteroom.Lease(10*time.Second))
		r.want("an error that says so", errors.Is(err, anteroom.ErrUnavailable))
	},
	"testRemainTimeToLive2": func(r rig) {
		hold := r.acquire(anteroom.Lease(10 * time.Second))
		for range 2 {
			check(r.T, r.mu.Do(hold.Context(), func(context.Context) error { return nil }))
		}
		r.want("its lease", r.info().TTL > 9*time.Second && r.info().TTL <= 10*time.Second)
	},
	"testLockUninterruptibly": func(r rig) { r.want("both", r.crowd(1, 2, 1, 1, time.Minute, lock) == 2) }, // Lock has no context
	"testRemainTimeToLive": func(r rig) {
		hold := r.acquire(anteroom.Lease(time.Hour))
		r.want("an hour", r.info().TTL > time.Hour-10*time.Millisecond)
		r.want("no more", hold.Release(r.Context()) == nil && !r.info().Locked)
		r.mu.Lock()
		time.Sleep(100 * time.Millisecond) // the first renewal
		r.want("the default", r.info().TTL > 30*time.Second-20*time.Millisecond)
		r.mu.Unlock()
	},
	"testLockListener": func(r rig) {
		next, remove := iter.Pull2(r.Watch(r.Context(), "lock"))
		defer remove()
		hears := func(locked bool) {
			for info, err, more := next(); info.Locked != locked; info, err, more = next() {
				r.want("it hears", err == nil && more)
			}
		}
		for _, expires := range []bool{false, true} {
			hold := r.acquire(anteroom.Lease(5*time.Second), anteroom.Note("heard of"))
			hears(true)
			if !expires {
				check(r.T, hold.Release(r.Context()))
			}
			hears(false)
		}
	},
}

var fair = scenarios{
	"testAcquireFailedTimeoutDrift_Descrete": inner, "testLockAcquiredBooleanTimeoutDrift_Descrete": inner,
	"testLockAcquiredTimeoutDrift_Descrete": inner, "testAbandonedTimeoutDrift_Descrete": inner,
	"testNameMapper":                   "Anteroom maps no names",
	"testWaitTimeoutDrift":             drift(50, 500*time.Millisecond, 10*time.Second),
	"testLockAcquiredTimeoutDrift":     drift(3, 3*time.Second, 100*time.Millisecond),
	"testFirstThreadDeathTimeoutDrift": drift(10, 3*time.Second, 100*time.Millisecond),
	"testLeaseTimeout": func(r rig) {
		r.inOrder(100*time.Millisecond, func() { r.acquire(anteroom.Wait(10*time.Second), anteroom.Lease(time.Second)) }, func() {})
	},
	"testConcurrency_MultiInstance_Ordering": func(r rig) {
		r.inOrder(10*time.Millisecond, r.mu.Lock, func() { time.Sleep(time.Second); r.mu.Unlock() })
	},
	"testMultipleLocks": func(r rig) {
		begin := time.Now()
		r.want("all within three minutes", r.crowd(1, 500, 1, 1, 200*time.Millisecond, lock) == 500 && time.Since(begin) < 3*time.Minute)
	},
	"testTryLockNonDelayed": func(r rig) {
		go func() { r.mu.Lock(); time.Sleep(time.Second); r.mu.Unlock() }()
		time.Sleep(200 * time.Millisecond)
		r.want("not by the second", !r.mu.TryLockFor(200*time.Millisecond))
		r.want("locked when it is free", r.mu.TryLockFor(time.Second))
	},
	"testAcquireFailedNotCalledOnRedisTimeout": func(r rig) {
		r.acquire(anteroom.Lease(10 * time.Second))
		var wg sync.WaitGroup
		for _, lease := range []time.Duration{10 * time.Second, time.Second} {
			wg.Go(func() { r.acquire(anteroom.Wait(time.Minute), anteroom.Lease(lease)) })
			time.Sleep(100 * time.Millisecond)
		}
		r.Down()
		time.Sleep(20 * time.Second)
		r.Up()
		wg.Wait()
		r.want("nobody waits", r.info().InLine == 0)
	},
}

// TestRedisson has the tests of Redisson 4.7.0 for RLock and RFencedLock.
func TestRedisson(t *testing.T) {
	for class, tests := range map[string]scenarios{"RedissonLockTest": plain, "RedissonFairLockTest": fair} {
		maps.Copy(tests, both)
		t.Run(class, func(t *testing.T) {
			tests.play(t, anteroom.Config{Defaults: anteroom.LockConfig{Reentrant: true, Fair: class == "RedissonFairLockTest"}})
		})
	}
	t.Run("RedissonFencedLockTest", func(t *testing.T) {
		scenarios{"testTokenIncrease": func(r rig) { // from the clock on, and not from 1
			last := int64(0)
			for range 5 {
				hold := r.acquire()
				token, _ := hold.Token()
				r.want("a larger token", token > last && hold.Release(r.Context()) == nil)
				last = token
			}
		}}.play(t, anteroom.Config{Defaults: anteroom.LockConfig{Fencing: true}})
	})
}
