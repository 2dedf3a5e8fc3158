package anteroom_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// The series that a renewed lease shows: it falls, and jumps back at each renewal.
func TestTTLFallsAndJumpsBackAtEachRenewal(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		mu := mutex(t, m, anteroom.LockConfig{Key: "k", LeaseTime: 3 * time.Second})
		h := acquire(t, mu)
		var series []time.Duration
		for range 60 {
			time.Sleep(100 * time.Millisecond)
			series = append(series, s.TTL("k"))
		}
		jumps := 0
		for i := 1; i < len(series); i++ {
			switch d := series[i-1] - series[i]; {
			case d > 0 && d <= 200*time.Millisecond: // falls
			case series[i] > 2850*time.Millisecond:
				jumps++
			default:
				t.Fatalf("from %v to %v", series[i-1], series[i])
			}
		}
		// A renewal each second: the first up to a fifth earlier.
		if jumps < 5 || jumps > 7 || slices.Min(series) < 1900*time.Millisecond {
			t.Fatalf("%d jumps, lowest %v: %v", jumps, slices.Min(series), series)
		}
		if h.TTL() < 1800*time.Millisecond || !h.Held() {
			t.Fatalf("TTL() = %v", h.TTL())
		}
		ok(t, h.Release(bg))
		time.Sleep(5 * time.Second)
		if s.Exists("k") {
			t.Fatal("renewed after the release")
		}
	})
}

func TestAFixedLeaseEndsByItself(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, rec := manager(t, s.client(), anteroom.Config{})
		mu := m.Mutex("k")
		start := time.Now()
		h := acquire(t, mu, anteroom.Lease(5*time.Second))
		if ttl := s.TTL("k"); ttl != 5*time.Second {
			t.Fatalf("TTL %v", ttl)
		}
		<-h.Context().Done()
		if d := time.Since(start); d != 5*time.Second-250*time.Millisecond {
			t.Fatalf("notified after %v, want the lease less its margin", d)
		}
		if !s.Exists("k") {
			t.Fatal("deleted before its lease ended")
		}
		synctest.Wait()
		if ev := rec.of(observe.EventLost); len(ev) != 1 || ev[0].Reason != observe.LostFixed {
			t.Fatalf("events %+v", ev)
		}
		time.Sleep(time.Second)
		if s.Exists("k") {
			t.Fatal("still there after its lease")
		}
		if err := h.Release(bg); !errors.Is(err, anteroom.ErrLost) {
			t.Fatalf("late release: %v", err)
		}
		// The same by configuration.
		fixed := mutex(t, m, anteroom.LockConfig{Key: "f", LeaseTime: 2 * time.Second, RenewalTime: -1})
		fixed.Lock()
		time.Sleep(3 * time.Second)
		if fixed.Held() || s.Exists("f") {
			t.Fatal("a fixed lease was renewed")
		}
		fixed.Unlock()
	})
}

func TestAHoldsOwnLeaseDoesNotReachTheNextWaiter(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		mu := m.Mutex("k")
		h := acquire(t, mu)
		next := make(chan *anteroom.Hold)
		go func() { next <- acquire(t, mu, anteroom.Lease(time.Minute)) }()
		synctest.Wait()
		ok(t, h.Release(bg))
		h2 := <-next
		if ttl := s.TTL("k"); ttl != time.Minute {
			t.Fatalf("TTL %v, want the waiter's own lease", ttl)
		}
		go func() { next <- acquire(t, mu) }()
		synctest.Wait()
		ok(t, h2.Release(bg))
		h3 := <-next
		time.Sleep(5 * time.Minute)
		if !h3.Held() {
			t.Fatal("the renewed hold inherited a fixed lease")
		}
		ok(t, h3.Release(bg))
	})
}

func TestExtend(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		h := acquire(t, m.Mutex("k"), anteroom.Lease(2*time.Second))
		ok(t, h.Extend(bg, 10*time.Second))
		if ttl := s.TTL("k"); ttl != 10*time.Second {
			t.Fatalf("TTL %v", ttl)
		}
		ok(t, h.Extend(bg, time.Second)) // never shortens
		if ttl := s.TTL("k"); ttl < 10*time.Second || ttl > 10*time.Second+time.Millisecond || h.TTL() < 9*time.Second {
			t.Fatalf("TTL %v, %v after a shorter Extend", ttl, h.TTL())
		}
		time.Sleep(5 * time.Second)
		if !h.Held() {
			t.Fatal("lost in spite of Extend")
		}
		s.Del("k")
		if err := h.Extend(bg, time.Minute); !errors.Is(err, anteroom.ErrLost) {
			t.Fatalf("Extend of a deleted lock: %v", err)
		}
		if h.Held() {
			t.Fatal("held after Extend said lost")
		}
		if err := h.Extend(bg, 0); !errors.Is(err, anteroom.ErrConfig) {
			t.Fatalf("Extend by nothing: %v", err)
		}
		if err := h.Release(bg); !errors.Is(err, anteroom.ErrLost) {
			t.Fatal(err)
		}
	})
}

// An Extend beyond the lease must survive a renewal that arrives late.
func TestExtendSurvivesARenewal(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		mu := mutex(t, m, anteroom.LockConfig{Key: "k", LeaseTime: 3 * time.Second})
		h := acquire(t, mu)
		ok(t, h.Extend(bg, time.Minute))
		time.Sleep(5 * time.Second)
		if ttl := s.TTL("k"); ttl < 54*time.Second {
			t.Fatalf("a renewal lowered the TTL to %v", ttl)
		}
		ok(t, h.Release(bg))
	})
}

func TestHoldContextHasValuesAndNotTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		type key struct{}
		m, _ := manager(t, s.client(), anteroom.Config{})
		ctx, cancel := context.WithCancel(context.WithValue(bg, key{}, "v"))
		h := must[*anteroom.Hold](t)(m.Mutex("k").Acquire(ctx))
		cancel()
		if h.Context().Err() != nil || h.Context().Value(key{}) != "v" || !h.Held() {
			t.Fatal("the hold ended with the context that it was acquired with")
		}
		child, stop := context.WithCancel(h.Context())
		defer stop()
		ok(t, h.Release(bg))
		<-child.Done()
		if cause := context.Cause(child); !errors.Is(cause, anteroom.ErrNotHeld) {
			t.Fatalf("cause after Release: %v", cause)
		}
		if err := h.Err(); !errors.Is(err, anteroom.ErrNotHeld) || h.TTL() != 0 {
			t.Fatalf("after Release: %v", err)
		}
	})
}

func TestDo(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		mu := m.Mutex("k")
		mine := errors.New("mine")
		err := mu.Do(bg, func(ctx context.Context) error {
			if !s.Exists("k") {
				t.Error("not locked")
			}
			return mu.Do(ctx, func(context.Context) error { return mine }) // enters again
		})
		if !errors.Is(err, mine) || s.Exists("k") {
			t.Fatalf("%v", err)
		}
		// Lost while fn ran, though fn returned nil.
		err = mu.Do(bg, func(ctx context.Context) error {
			s.Del("k")
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), anteroom.ErrLost) {
				t.Errorf("cause %v", context.Cause(ctx))
			}
			return nil
		})
		if !errors.Is(err, anteroom.ErrLost) {
			t.Fatalf("a loss during fn: %v", err)
		}
		// The caller's context ends fn's.
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		err = mu.Do(ctx, func(ctx context.Context) error {
			if _, has := ctx.Deadline(); !has {
				t.Error("fn's context has no deadline")
			}
			<-ctx.Done()
			return ctx.Err()
		})
		if !errors.Is(err, context.DeadlineExceeded) || s.Exists("k") {
			t.Fatalf("%v", err)
		}
	})
}

// Error.Ran reports whether fn ran, also where fn returns an error of another Do; errors of fn's own come back as they
// are.
func TestDoSaysWhetherFnRan(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		other, _ := manager(t, s.client(), anteroom.Config{})
		taken := acquire(t, other.Mutex("taken"))
		mu, mine := m.Mutex("k"), errors.New("mine")
		lose := func(ctx context.Context) error { s.Del("k"); <-ctx.Done(); return nil }
		for what, c := range map[string]struct {
			err  func() error
			ran  bool
			is   error
			text string
		}{
			"not acquired": {func() error { _, err := m.Mutex("taken").TryAcquire(bg); return err }, false, anteroom.ErrNotAcquired, "anteroom: try acquire"},
			"not run":      {func() error { return m.Mutex("taken").Do(bg, nil, anteroom.Wait(time.Millisecond)) }, false, anteroom.ErrNotAcquired, "anteroom: do \"taken\": not acquired"},
			"an inner Do has not run": {func() error {
				return mu.Do(bg, func(ctx context.Context) error { return m.Mutex("taken").Do(ctx, nil, anteroom.Wait(time.Millisecond)) })
			}, true, anteroom.ErrNotAcquired, "anteroom: do \"taken\": not acquired"},
			"lost, says its context": {func() error {
				return mu.Do(bg, func(ctx context.Context) error { _ = lose(ctx); return ctx.Err() })
			}, true, anteroom.ErrLost, "context canceled: anteroom: release \"k\": lock lost"},
			"lost, says its cause": {func() error {
				return mu.Do(bg, func(ctx context.Context) error { _ = lose(ctx); return context.Cause(ctx) })
			}, true, anteroom.ErrLost, "anteroom: hold \"k\": lock lost"},
			"lost":         {func() error { return mu.Do(bg, lose) }, true, anteroom.ErrLost, "anteroom: release \"k\": lock lost"},
			"failed, lost": {func() error { return mu.Do(bg, func(ctx context.Context) error { _ = lose(ctx); return mine }) }, true, anteroom.ErrLost, "mine: anteroom: release \"k\": lock lost"},
		} {
			err := c.err()
			var e *anteroom.Error
			if !errors.As(err, &e) || e.Since.IsZero() == errors.Is(err, anteroom.ErrLost) {
				t.Errorf("%s: lost since %v", what, e.Since)
			}
			if !errors.As(err, &e) || e.Ran != c.ran || !errors.Is(err, c.is) || !strings.HasPrefix(err.Error(), c.text) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if err := mu.Do(bg, func(context.Context) error { return mine }); err != mine {
			t.Errorf("fn's own error: %v", err)
		}
		ok(t, taken.Release(bg))
	})
}

func TestTryDoAndDoWithAResult(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		other, _ := manager(t, s.client(), anteroom.Config{})
		mu, mine := m.Mutex("k"), errors.New("mine")
		seven := func(context.Context) (int, error) { return 7, mine }
		if n, err := anteroom.Do(bg, mu, seven); n != 7 || err != mine {
			t.Errorf("%d, %v", n, err)
		}
		ran, err := mu.TryDo(bg, func(context.Context) error { return mine })
		if !ran || err != mine {
			t.Errorf("free: %v, %v", ran, err)
		}
		taken := acquire(t, other.Mutex("k"))
		if ran, err := mu.TryDo(bg, nil); ran || err != nil {
			t.Errorf("taken: %v, %v", ran, err)
		}
		ok(t, taken.Release(bg))
		s.net.BlackHole()
		if ran, err := mu.TryDo(bg, nil); ran || !errors.Is(err, anteroom.ErrUnavailable) {
			t.Errorf("unreachable: %v, %v", ran, err)
		}
		s.net.Heal()
	})
}

func TestDoReleasesOnPanicAndGoexit(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		mu := m.Mutex("k")
		func() {
			defer func() {
				if r := recover(); r != "boom" {
					t.Errorf("recovered %v", r)
				}
			}()
			_ = mu.Do(bg, func(context.Context) error { panic("boom") })
		}()
		if s.Exists("k") {
			t.Fatal("still locked after a panic")
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			_ = mu.Do(bg, func(context.Context) error { runtime.Goexit(); return nil })
		})
		wg.Wait()
		if s.Exists("k") {
			t.Fatal("still locked after Goexit")
		}
	})
}

func TestMinHoldKeepsTheKeyTaken(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{})
		b, _ := manager(t, s.client(), anteroom.Config{})
		cfg := anteroom.LockConfig{Key: "cron", MinHold: 10 * time.Second}
		start := time.Now()
		h := acquire(t, mutex(t, a, cfg))
		time.Sleep(time.Second)
		ok(t, h.Release(bg))
		for _, m := range []*anteroom.Manager{a, b} {
			if _, err := mutex(t, m, cfg).TryAcquire(bg); !errors.Is(err, anteroom.ErrNotAcquired) {
				t.Fatalf("taken again within MinHold: %v", err)
			}
		}
		h = acquire(t, mutex(t, b, cfg))
		if d := time.Since(start); d < 10*time.Second || d > 11*time.Second {
			t.Fatalf("free again after %v", d)
		}
		time.Sleep(11 * time.Second)
		ok(t, h.Release(bg))
		if s.Exists("cron") {
			t.Fatal("kept although MinHold was over")
		}
	})
}

func TestForceReleaseNotifiesTheHolderImmediately(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, rec := manager(t, s.client(), anteroom.Config{})
		b, _ := manager(t, s.client(), anteroom.Config{})
		h := acquire(t, a.Mutex("k"))
		lock := a.Mutex("l")
		lock.Lock()
		synctest.Wait()
		start := time.Now()
		for _, key := range []string{"k", "l"} {
			holder := must[anteroom.Info](t)(b.Inspect(bg, key)).Holders[0].Field
			if broken, err := b.ForceRelease(bg, key); err != nil || len(broken) != 1 || broken[0] != holder {
				t.Fatalf("ForceRelease: %q, %v", broken, err)
			}
		}
		<-h.Context().Done()
		synctest.Wait()
		if d := time.Since(start); d > time.Millisecond {
			t.Fatalf("notified after %v", d)
		}
		if lock.Held() {
			t.Fatal("the other lock is still held")
		}
		lock.Unlock()
		if ev := rec.of(observe.EventLost); len(ev) != 2 || ev[0].Reason != observe.LostForced {
			t.Fatalf("events %+v", ev)
		}
		if broken, err := b.ForceRelease(bg, "k"); err != nil || len(broken) != 0 {
			t.Fatalf("ForceRelease of a free lock: %q, %v", broken, err)
		}
	})
}

// What is no lock is an error and not a lock that nobody holds: a reader must not take it
// for one, and ForceRelease leaves it alone in the same words.
func TestInspectOfWhatIsNoLock(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		ok(t, s.Set("text", "v"))
		s.HSet("session", "user", "anna")
		s.SetTTL("session", time.Hour)
		for key, words := range map[string]string{"text": "WRONGTYPE", "session": "a hash that is no lock"} {
			_, err := m.Inspect(bg, key)
			outcome(t, err, observe.OutcomeFailed, anteroom.ErrConfig)
			_, forced := m.ForceRelease(bg, key)
			outcome(t, forced, observe.OutcomeFailed, anteroom.ErrConfig)
			if !strings.Contains(err.Error(), words) || !strings.Contains(forced.Error(), words) || !s.Exists(key) {
				t.Errorf("%s: %v, %v", key, err, forced)
			}
		}
	})
}

func TestInspectAndSnapshot(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{ClientID: "me", RecordCallSites: true})
		mu := mutex(t, m, anteroom.LockConfig{Key: "k", Name: "orders", Fencing: true, Fair: true})
		if i, err := m.Inspect(bg, "k"); err != nil || i.Locked {
			t.Fatalf("%+v, %v", i, err)
		}
		h := acquire(t, mu)
		ctx, cancel := context.WithCancel(bg)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { _, _ = mu.Acquire(ctx) })
			synctest.Wait()
			time.Sleep(time.Second)
		}
		i, err := m.Inspect(bg, "k")
		if err != nil || !i.Locked || len(i.Holders) != 1 || i.Holders[0].Field != h.Holder() || i.Holders[0].Client != m.ClientID() || i.Holders[0].Count != 1 || i.TTL <= 0 || i.Token < tokenOf(h) {
			t.Fatalf("%+v, %v", i, err)
		}
		time.Sleep(10 * time.Second)
		st := m.Snapshot()
		if len(st) != 1 {
			t.Fatalf("%d states", len(st))
		}
		got := st[0]
		if got.Key != "k" || got.Class != "orders" || got.Status != "owned" || got.Holder != h.Holder() || got.Goroutine == 0 ||
			got.CallSite == "" || !got.Since.Equal(h.Since()) || got.Token != tokenOf(h) || got.Deadline.IsZero() || got.NextRenewal.IsZero() ||
			got.Count != 1 || len(got.Verdicts) < 3 || got.Lost {
			t.Fatalf("%+v", got)
		}
		if len(got.Waiters) != 3 || got.Waiters[0].Waiting != got.Waiters[1].Waiting+time.Second || got.Waiters[0].CallSite == "" || got.Waiters[0].Kind != "hold" {
			t.Fatalf("waiters %+v", got.Waiters)
		}
		if c := m.Counts()["orders"]; c.Held != 1 || c.Waiting != 3 {
			t.Fatalf("counts %+v", c)
		}
		cancel()
		wg.Wait()
		if err := m.Destroy("k"); !errors.Is(err, anteroom.ErrInUse) {
			t.Fatalf("Destroy of a held key: %v", err)
		}
		ok(t, h.Release(bg))
		ok(t, m.Destroy("k"))
		other := mutex(t, m, anteroom.LockConfig{Key: "k", LeaseTime: time.Second})
		ok(t, acquire(t, other).Release(bg))
	})
}
