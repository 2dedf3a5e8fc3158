package anteroom_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// logCase is one thing that happens to a lock and what a user reads about it: a row of the
// table in docs/reference/log-records.md.
type logCase struct {
	name  string // the row's first cell
	kind  observe.EventKind
	locks anteroom.LockConfig
	run   func(t *testing.T, s *embedded, m *anteroom.Manager, mu *anteroom.Mutex)
}

// never keeps the watchdog out of a case that is not about it.
const never = time.Hour

// held acquires mu in a context of its own, and keeps the Hold until the end of the case.
func held(t *testing.T, mu *anteroom.Mutex, opts ...anteroom.AcquireOption) *anteroom.Hold {
	h := acquire(t, mu, opts...)
	t.Cleanup(func() { runtime.KeepAlive(h) })
	return h
}

// Ten seconds after the grant all that surrounds it is done.
const aWhile = 10 * time.Second

var logCases = []logCase{
	{"removed; a renewal finds it", observe.EventLost, anteroom.LockConfig{WatchdogPeriod: never}, func(t *testing.T, s *embedded, _ *anteroom.Manager, mu *anteroom.Mutex) {
		held(t, mu)
		s.Del("order:42")
		time.Sleep(aWhile)
	}},
	{"removed; the watchdog finds it", observe.EventLost, anteroom.LockConfig{WatchdogPeriod: time.Second, RenewalTime: 14 * time.Second}, func(t *testing.T, s *embedded, _ *anteroom.Manager, mu *anteroom.Mutex) {
		held(t, mu)
		time.Sleep(5 * time.Second)
		s.Del("order:42")
		time.Sleep(3 * time.Second)
	}},
	{"removed; its release finds it", observe.EventLost, anteroom.LockConfig{WatchdogPeriod: never}, func(t *testing.T, s *embedded, _ *anteroom.Manager, mu *anteroom.Mutex) {
		h := held(t, mu)
		time.Sleep(time.Second)
		s.Del("order:42")
		_ = h.Release(bg)
	}},
	{"Redis is unreachable for a lease", observe.EventLost, anteroom.LockConfig{}, func(t *testing.T, s *embedded, _ *anteroom.Manager, mu *anteroom.Mutex) {
		held(t, mu)
		time.Sleep(aWhile)
		s.net.Refuse()
		s.net.CloseAll()
		time.Sleep(40 * time.Second)
	}},
	{"Redis accepts and does not answer", observe.EventLost, anteroom.LockConfig{}, func(t *testing.T, s *embedded, _ *anteroom.Manager, mu *anteroom.Mutex) {
		held(t, mu)
		time.Sleep(aWhile)
		s.net.BlackHole()
		time.Sleep(40 * time.Second)
		s.net.Heal()
	}},
	{"a fixed lease ends", observe.EventLost, anteroom.LockConfig{}, func(t *testing.T, _ *embedded, _ *anteroom.Manager, mu *anteroom.Mutex) {
		held(t, mu, anteroom.Lease(5*time.Second))
		time.Sleep(aWhile)
	}},
	{"held longer than `MaxHold`", observe.EventLost, anteroom.LockConfig{MaxHold: 20 * time.Second}, func(t *testing.T, _ *embedded, _ *anteroom.Manager, mu *anteroom.Mutex) {
		held(t, mu)
		time.Sleep(2 * time.Minute)
	}},
	{"the same with `RecoverRelease`", observe.EventLost, anteroom.LockConfig{MaxHold: 20 * time.Second, Recovery: anteroom.RecoverRelease}, func(t *testing.T, _ *embedded, _ *anteroom.Manager, mu *anteroom.Mutex) {
		held(t, mu)
		time.Sleep(time.Minute)
	}},
	{"`ForceRelease`", observe.EventLost, anteroom.LockConfig{}, func(t *testing.T, _ *embedded, m *anteroom.Manager, mu *anteroom.Mutex) {
		held(t, mu)
		time.Sleep(time.Second)
		_, err := m.ForceRelease(bg, mu.Key())
		ok(t, err)
	}},
	{"`Close` under a hold", observe.EventLost, anteroom.LockConfig{}, func(t *testing.T, _ *embedded, m *anteroom.Manager, mu *anteroom.Mutex) {
		held(t, mu)
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		if m.Close(ctx) == nil {
			t.Error("Close did not mind the hold")
		}
	}},
	{"Redis is unreachable, the lock is not lost yet", observe.EventRenewalFailing, anteroom.LockConfig{}, func(t *testing.T, s *embedded, _ *anteroom.Manager, mu *anteroom.Mutex) {
		held(t, mu)
		time.Sleep(aWhile)
		s.net.Refuse()
		s.net.CloseAll()
		time.Sleep(15 * time.Second)
		s.net.Heal()
	}},
	{"a release has no answer", observe.EventReleaseFailed, anteroom.LockConfig{}, releaseInABlackHole},
	{"nor has it for a whole lease", observe.EventReleaseGivenUp, anteroom.LockConfig{}, releaseInABlackHole},
	{"`Unlock` of a lost lock", observe.EventUnlockLost, anteroom.LockConfig{WatchdogPeriod: never}, func(_ *testing.T, s *embedded, _ *anteroom.Manager, mu *anteroom.Mutex) {
		mu.Lock()
		s.Del("order:42")
		time.Sleep(aWhile)
		mu.Unlock()
	}},
	{"acquire fails", observe.EventUnavailable, anteroom.LockConfig{}, func(_ *testing.T, s *embedded, _ *anteroom.Manager, mu *anteroom.Mutex) {
		s.net.Refuse()
		mu.TryLock()
	}},
	{"a key of another type", observe.EventMisconfigured, anteroom.LockConfig{}, func(t *testing.T, s *embedded, _ *anteroom.Manager, mu *anteroom.Mutex) {
		ok(t, s.Set("order:42", "data"))
		mu.TryLock()
	}},
	{"and does no more", observe.EventAvailable, anteroom.LockConfig{}, func(_ *testing.T, s *embedded, _ *anteroom.Manager, mu *anteroom.Mutex) {
		s.net.Refuse()
		go func() { time.Sleep(time.Second); s.net.Heal() }()
		pass(mu)
		time.Sleep(5 * time.Second) // nothing has failed for a while
	}},
	{"somebody else writes the key", observe.EventAlert, anteroom.LockConfig{WatchdogPeriod: time.Second}, func(t *testing.T, s *embedded, _ *anteroom.Manager, mu *anteroom.Mutex) {
		h := held(t, mu)
		s.HSet("order:42", "somebody", "1")
		time.Sleep(5 * time.Second)
		s.HDel("order:42", "somebody")
		ok(t, h.Release(bg))
	}},
	{"what the watchdog did about `MaxHold`", observe.EventRecovery, anteroom.LockConfig{MaxHold: 20 * time.Second}, func(t *testing.T, _ *embedded, _ *anteroom.Manager, mu *anteroom.Mutex) {
		h := held(t, mu)
		time.Sleep(26100 * time.Millisecond) // and not when the watchdog looks at what is held
		ok(t, h.Release(bg))
	}},
	{"the machine slept", observe.EventClockJump, anteroom.LockConfig{}, func(_ *testing.T, _ *embedded, m *anteroom.Manager, _ *anteroom.Mutex) {
		m.ClockJumped(90 * time.Second)
	}},
	{"this process was stopped or starved", observe.EventSelfLate, anteroom.LockConfig{}, func(_ *testing.T, _ *embedded, m *anteroom.Manager, _ *anteroom.Mutex) {
		m.WasLate(12 * time.Second)
	}},
}

// releaseInABlackHole releases a lock while Redis does not answer, until it is given up.
func releaseInABlackHole(t *testing.T, s *embedded, _ *anteroom.Manager, mu *anteroom.Mutex) {
	h := held(t, mu)
	time.Sleep(time.Second)
	s.net.BlackHole()
	_ = h.Release(context.Background())
	time.Sleep(time.Minute)
	synctest.Wait()
	s.net.Heal()
}
