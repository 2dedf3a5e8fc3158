package anteroom_test

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// nothingLeft waits for the clean-up and fails if the key is still there.
func (s *embedded) nothingLeft(t *testing.T, key string, within time.Duration) {
	t.Helper()
	start := time.Now()
	for s.Exists(key) {
		if time.Since(start) > within {
			keys, _ := s.HKeys(key)
			t.Fatalf("%s is still there after %v: %v", key, within, keys)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestSync_I5_CancelledAcquireReturnsImmediatelyWhileRedisHangs(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		mu := m.Mutex("k")
		ok(t, acquire(t, mu).Release(bg)) // connections are made
		s.net.BlackHole()
		ctx, cancel := context.WithTimeout(bg, 123*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err := mu.Acquire(ctx)
		if d := time.Since(start); d != 123*time.Millisecond {
			t.Fatalf("returned after %v", d)
		}
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, anteroom.ErrNotAcquired) && errors.Is(err, anteroom.ErrUnavailable) {
			t.Fatalf("%v", err)
		}
		time.Sleep(400 * time.Millisecond)
		s.net.Heal() // the acquire arrives now
		time.Sleep(100 * time.Millisecond)
		s.nothingLeft(t, "k", 2*time.Second)
		time.Sleep(time.Minute)
		if s.Exists("k") || len(m.Snapshot()) != 0 {
			t.Fatalf("left behind: %+v", m.Snapshot())
		}
	})
}

func TestAnswerOfAnAcquireIsLost(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, rec := manager(t, s.client(), anteroom.Config{})
		mu := m.Mutex("k")
		ok(t, acquire(t, mu).Release(bg))
		synctest.Wait()
		s.net.CutReplies(1, 0) // Redis grants, and the answer never comes
		h := acquire(t, mu)    // the repeat gives it back, and is granted anew
		if n, _ := s.HKeys("k"); len(n) != 1 || s.HGet("k", h.Holder()) != "1" {
			t.Fatalf("fields %v", n)
		}
		ok(t, h.Release(bg))
		if s.Exists("k") {
			t.Fatal("one release is not enough")
		}
		time.Sleep(5 * time.Second) // an outage is over when nothing has failed for a while
		if len(rec.of(observe.EventUnavailable)) != 1 || len(rec.of(observe.EventAvailable)) != 1 {
			t.Fatalf("events %+v", rec.events)
		}
	})
}

func TestAnswerOfAnAcquireComesLaterThanTheTimeout(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		mu := m.Mutex("k")
		pass(m.Mutex("warm"))
		s.net.Delay(20 * time.Millisecond)
		var wg sync.WaitGroup
		for range 2 { // both connections are open then: the second one passes the first
			wg.Go(func() { pass(m.Mutex(rand.Text())) })
			time.Sleep(10 * time.Millisecond)
		}
		wg.Wait()
		s.net.Heal()
		synctest.Wait()
		s.net.HoldReplies() // Redis grants, the answer hangs
		executed, start := s.CommandCount(), time.Now()
		if _, err := mu.TryAcquire(bg); !errors.Is(err, anteroom.ErrUnavailable) || !errors.Is(err, anteroom.ErrUnknown) {
			t.Fatalf("%v", err)
		}
		if d := time.Since(start); d != time.Second {
			t.Fatalf("TryAcquire ended after %v, want CommandTimeout", d)
		}
		synctest.Wait() // the clean-up's release is under way, and this one does not share its round trip
		var e *anteroom.Error
		if _, err := mu.TryAcquire(bg); !errors.As(err, &e) || e.Outcome != observe.OutcomeUnknown {
			t.Fatalf("%+v", e)
		}
		if s.CommandCount() < executed+2 {
			t.Fatal("the fault did not do what the test wants: the attempts have not come to Redis")
		}
		s.net.Heal()
		s.nothingLeft(t, "k", 5*time.Second)
	})
}

func TestAcquireWaitsThroughAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, rec := manager(t, s.client(), anteroom.Config{})
		s.net.Refuse()
		s.net.CloseAll()
		mu := m.Mutex("k")
		ctx, cancel := context.WithTimeout(bg, 3*time.Second)
		defer cancel()
		_, err := mu.Acquire(ctx)
		if !errors.Is(err, anteroom.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, anteroom.ErrNotAcquired) {
			t.Fatalf("%v", err)
		}
		if mu.TryLock() {
			t.Fatal("locked without Redis")
		}
		time.AfterFunc(10*time.Second, s.net.Heal)
		pass(mu)
		synctest.Wait()
		if n := len(rec.of(observe.EventUnavailable)); n == 0 || n > 3 {
			t.Fatalf("%d events for one outage", n)
		}
	})
}

// The first part of the promise: Redis keeps its state, and the holder is notified
// before Redis can grant the lock to anybody else.
func TestSync_I2_ExpiryIsNotifiedBeforeAnybodyElseGetsIt(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		mine, theirs := s.network(), s.network()
		a, rec := manager(t, s.clientOver(mine), anteroom.Config{})
		b, _ := manager(t, s.clientOver(theirs), anteroom.Config{})
		h := acquire(t, a.Mutex("k"))
		lock := a.Mutex("l")
		lock.Lock()
		notices := make(chan time.Time, 1)
		granted := make(chan time.Duration, 2) // after it was notified
		go func() { <-h.Context().Done(); notices <- time.Now() }()
		time.Sleep(12 * time.Second)
		mine.BlackHole()
		rival := func(key string) <-chan time.Time {
			granted := make(chan time.Time, 1)
			go func() {
				h := acquire(t, b.Mutex(key))
				granted <- time.Now()
				ok(t, h.Release(bg))
			}()
			return granted
		}
		go func() {
			at := <-rival("k")
			granted <- at.Sub(<-notices)
		}()
		l := rival("l")
		for lock.Held() {
			time.Sleep(time.Millisecond)
		}
		toldAt := time.Now()
		granted <- (<-l).Sub(toldAt)
		for range 2 {
			if d := <-granted; d < 1400*time.Millisecond {
				t.Fatalf("granted to a rival %v after the holder was notified, want the margin", d)
			}
		}
		synctest.Wait()
		for _, ev := range rec.of(observe.EventLost) {
			if ev.Reason != observe.LostDeadline || ev.Err == nil {
				t.Fatalf("%+v", ev)
			}
		}
		if n := len(rec.of(observe.EventRenewalFailing)); n != 2 {
			t.Fatalf("%d events for failing renewals, want one a lock", n)
		}
		mine.Heal()
		lock.Unlock()
		if err := h.Release(bg); !errors.Is(err, anteroom.ErrLost) {
			t.Fatalf("%v", err)
		}
	})
}

// The second part: a key that is removed under its holder.
func TestPromise_RemovalIsNoticedWithinItsBound(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, rec := manager(t, s.client(), anteroom.Config{})
		for _, remove := range []func(string){
			func(key string) { s.Del(key) },
			func(string) { s.FlushAll() },
			func(key string) { s.Del(key); _ = s.Set(key, "something else") },
			func(key string) { s.Del(key); s.HSet(key, "foreign", "1") },
		} {
			h := acquire(t, m.Mutex("k"))
			time.Sleep(2300 * time.Millisecond)
			start := time.Now()
			remove("k")
			<-h.Context().Done()
			if d := time.Since(start); d > 5*time.Second+time.Second {
				t.Fatalf("notified after %v", d)
			}
			if err := h.Release(bg); !errors.Is(err, anteroom.ErrLost) {
				t.Fatalf("%v", err)
			}
			s.Del("k")
		}
		synctest.Wait()
		for _, ev := range rec.of(observe.EventLost) {
			if ev.Reason != observe.LostGone {
				t.Fatalf("%+v", ev)
			}
		}
	})
}

func TestSync_I6_AFailedReleaseEndsRenewal(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, rec := manager(t, s.client(), anteroom.Config{})
		mu := m.Mutex("k")
		h := acquire(t, mu)
		s.net.BlackHole()
		ctx, cancel := context.WithTimeout(bg, 1500*time.Millisecond)
		defer cancel()
		start := time.Now()
		err := h.Release(ctx)
		if !errors.Is(err, anteroom.ErrUnknown) || time.Since(start) != 1500*time.Millisecond {
			t.Fatalf("after %v: %v", time.Since(start), err)
		}
		mu2 := m.Mutex("l")
		time.Sleep(40 * time.Second) // the lease has ended meanwhile: nobody renewed it
		s.net.CloseAll()
		s.net.Heal()
		time.Sleep(2 * time.Second)
		if s.Exists("k") {
			t.Fatalf("the lock is still in Redis, TTL %v", s.TTL("k"))
		}
		if len(rec.of(observe.EventReleaseFailed)) != 1 || len(rec.of(observe.EventReleaseGivenUp)) != 1 {
			t.Fatalf("events %+v", rec.events)
		}
		ok(t, acquire(t, mu2).Release(bg))
		if len(m.Snapshot()) != 0 {
			t.Fatalf("left behind %+v", m.Snapshot())
		}
	})
}

func TestAReleaseWhoseAnswerIsLost(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, rec := manager(t, s.client(), anteroom.Config{})
		h := acquire(t, m.Mutex("k"))
		synctest.Wait()
		s.net.CutReplies(1, 0)
		ok(t, h.Release(bg)) // the repeat finds nothing: it was released, in time
		if s.Exists("k") {
			t.Fatal("still locked")
		}
		synctest.Wait()
		if len(rec.of(observe.EventLost)) != 0 || len(rec.of(observe.EventReleaseFailed)) != 1 {
			t.Fatalf("events %+v", rec.events)
		}
	})
}

// The clean-up of an attempt that nobody wants any more comes after the attempt itself, which arrives late, several times.
// What arrives after the clean-up stays for K, 2 s, and not for a lease.
func TestSync_I4_CleanUpOvertakenByTheLateAcquire(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		mu := mutex(t, m, anteroom.LockConfig{Key: "k", LeaseTime: 30 * time.Second})
		ok(t, acquire(t, mu).Release(bg))
		s.net.BlackHole()
		ctx, cancel := context.WithTimeout(bg, 1900*time.Millisecond)
		defer cancel()
		if _, err := mu.Acquire(ctx); err == nil {
			t.Fatal("acquired through a black hole")
		}
		s.net.Heal() // three acquires and a clean-up arrive in some order
		time.Sleep(50 * time.Millisecond)
		start := time.Now()
		h := acquire(t, mu)
		if d := time.Since(start); d > 2*time.Second {
			t.Fatalf("waited %v for our own leftover", d)
		}
		ok(t, h.Release(bg))
		s.nothingLeft(t, "k", 4*time.Second)
	})
}

// TestUnlockDoesNotHangInAnOutage: it is free after CommandTimeout. On a client that
// does not mind deadlines it may be the one caller that has trusted Redis' last answer, and
// wait for the client's ReadTimeout.
func TestUnlockDoesNotHangInAnOutage(t *testing.T) {
	for _, tc := range []struct {
		name   string
		client func(s *embedded) *redis.Client
		held   time.Duration // for so long before
		limit  time.Duration
	}{
		{"mindful client", (*embedded).mindfulClient, 0, time.Second},
		{"default client", (*embedded).client, 0, 5*time.Second + 100*time.Millisecond},
		{"default client after a while", (*embedded).client, 2 * time.Second, time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				m, _ := manager(t, tc.client(s), anteroom.Config{})
				mu := m.Mutex("k")
				mu.Lock()
				time.Sleep(tc.held)
				s.net.BlackHole()
				start := time.Now()
				mu.Unlock()
				if d := time.Since(start); d < time.Second || d > tc.limit {
					t.Fatalf("Unlock took %v, want at most %v", d, tc.limit)
				}
				s.net.Heal()
				s.nothingLeft(t, "k", 3*time.Second)
			})
		})
	}
}

// TestOnlyLockAndUnlockTrustASilentRedis: on a client that does not mind deadlines Do and
// those that only try are free after CommandTimeout all the same. TestReleaseIsBounded has
// Hold.Release.
func TestOnlyLockAndUnlockTrustASilentRedis(t *testing.T) {
	for name, call := range map[string]func(m *anteroom.Manager, hang func()){
		"Do": func(m *anteroom.Manager, hang func()) {
			_ = m.Mutex("k").Do(bg, func(context.Context) error { hang(); return nil })
		},
		"TryLock":    func(m *anteroom.Manager, hang func()) { hang(); m.Mutex("k").TryLock() },
		"TryAcquire": func(m *anteroom.Manager, hang func()) { hang(); _, _ = m.Mutex("k").TryAcquire(bg) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				m, _ := manager(t, s.client(), anteroom.Config{CommandTimeout: time.Second})
				pass(m.Mutex("warm"))
				start := time.Now()
				call(m, s.net.BlackHole)
				if took := time.Since(start); took > time.Second {
					t.Errorf("took %v, want at most CommandTimeout", took)
				}
				s.net.Heal()
				s.nothingLeft(t, "k", 15*time.Second)
			})
		})
	}
}

// A release of an earlier grant that arrives late, or is sent again, finds nothing
// of the grant that came after it.
func TestSync_I3_AnEarlierGrantsCommandsNeverTouchALaterOne(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		rdb := s.client()
		m, _ := manager(t, rdb, anteroom.Config{ClientID: "me"})
		mu := m.Mutex("k")
		first := acquire(t, mu)
		ok(t, first.Release(bg))
		second := acquire(t, mu)
		if first.Holder() == second.Holder() {
			t.Fatal("two grants share a field")
		}
		wire, err := lettucecompat.New(rdb, lettucecompat.Options{ClientID: m.ClientID()})
		ok(t, err)
		defer wire.Close()
		_, n, _ := lettucecompat.ParseField(first.Holder())
		release := lettucecompat.Command{Key: "k", N: n + 1, Since: n, Have: lettucecompat.HaveUnit, Units: 1, Terms: &lettucecompat.Terms{}}
		if r := wire.Do(bg, release); r.Outcome != lettucecompat.OutcomeOK || r.Word != lettucecompat.WordVoid {
			t.Fatalf("a late release: %+v", r)
		}
		late := wire.Renew(bg, []lettucecompat.Renewal{{Key: "k", Field: first.Holder(), Lease: time.Hour}}, 0)
		if late[0].Outcome != lettucecompat.OutcomeGone || s.TTL("k") > 30*time.Second {
			t.Fatalf("a late renewal: %+v", late)
		}
		if !second.Held() || s.HGet("k", second.Holder()) != "1" {
			t.Fatal("the later grant was touched")
		}
		ok(t, second.Release(bg))
	})
}

// Many waiters, all cancelled while Redis hangs: all are free immediately, nothing is left.
func TestManyCancelledWaiters(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		mu := m.Mutex("k")
		h := acquire(t, mu)
		s.net.BlackHole()
		ctx, cancel := context.WithCancel(bg)
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				if _, err := mu.Acquire(ctx); !errors.Is(err, context.Canceled) {
					t.Errorf("%v", err)
				}
			})
		}
		synctest.Wait()
		start := time.Now()
		cancel()
		wg.Wait()
		if d := time.Since(start); d != 0 {
			t.Fatalf("the last returned after %v", d)
		}
		s.net.Heal()
		ok(t, h.Release(bg))
		s.nothingLeft(t, "k", time.Second)
	})
}
