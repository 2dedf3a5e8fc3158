package anteroom_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
)

// The heir of a hand-off leaves, and the grant is released in its place: the tokens of
// earlier owners of the turn stay used. The server's clock is stopped, so that the
// counter alone must do it.
func TestUsedTokensAreNeverGivenBack(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		s.SetTime(time.Unix(2_000_000_000, 0)) // the counter alone must do it
		m, _ := manager(t, s.client(), anteroom.Config{})
		mu := mutex(t, m, anteroom.LockConfig{Key: "k", Fencing: true, Fair: true})
		last := int64(0)
		see := func(h *anteroom.Hold) {
			if tokenOf(h) <= last {
				t.Errorf("token %d after %d", tokenOf(h), last)
			}
			last = tokenOf(h)
		}
		for i := 0; i < 50 && !t.Failed(); i++ {
			a := acquire(t, mu)
			see(a)
			got := make(chan *anteroom.Hold)
			go func() { h, _ := mu.Acquire(bg); got <- h }()
			time.Sleep(time.Millisecond)
			ok(t, a.Release(bg))
			b := <-got
			see(b)
			ctx, cancel := context.WithCancel(bg)
			go func() { h, _ := mu.Acquire(ctx); got <- h }()
			time.Sleep(time.Millisecond)
			synctest.Wait()
			cancel()
			ok(t, b.Release(bg)) // handed to a waiter that has just left
			if c := <-got; c != nil {
				see(c)
				ok(t, c.Release(bg))
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
}

// Grants that are discarded give their tokens back; otherwise the counter runs ahead
// of the clock, and FLUSHALL takes it back.
func TestTheCounterDoesNotRunAheadOfTheClock(t *testing.T) {
	s := newEmbedded(t)
	m, _ := manager(t, s.client(), anteroom.Config{})
	mu := mutex(t, m, anteroom.LockConfig{Key: "k", Fencing: true, Fair: true})
	var last atomic.Int64
	var wg sync.WaitGroup
	var faults atomic.Int64
	for i := range 4 {
		wg.Go(func() {
			for range 200 {
				var opts []anteroom.AcquireOption
				if i%2 == 1 {
					opts = append(opts, anteroom.Lease(time.Minute))
				}
				h, err := mu.Acquire(bg, opts...)
				if err != nil {
					t.Error(err)
					return
				}
				if last.Swap(tokenOf(h)) >= tokenOf(h) {
					faults.Add(1)
				}
				_ = h.Release(bg)
			}
		})
	}
	wg.Wait()
	before := last.Load()
	t.Logf("counter ahead of clock by %d µs", before-time.Now().UnixMicro())
	s.FlushAll()
	h := acquire(t, mu)
	defer func() { _ = h.Release(bg) }()
	if tokenOf(h) <= before {
		t.Errorf("token %d after %d (%d µs back), after FLUSHALL; clock is %d µs behind the counter; out of order before: %d",
			tokenOf(h), before, before-tokenOf(h), before-time.Now().UnixMicro(), faults.Load())
	}
}

// Turns that are ended early and extended must not pile up reserved tokens.
func TestTokensOfFastTurnsGrowAcrossFlush_Lab(t *testing.T) {
	s := testredis.Start(t)
	rdb := s.Client(t)
	raw := s.Client(t)
	m, _ := manager(t, rdb, anteroom.Config{})
	other, _ := manager(t, raw, anteroom.Config{})
	mu := mutex(t, m, anteroom.LockConfig{Key: "k", Fencing: true})
	theirs := mutex(t, other, anteroom.LockConfig{Key: "k", Fencing: true})
	for round := range 100 {
		var last int64
		var guard sync.Mutex
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 200 {
					h, err := mu.Acquire(bg)
					if err != nil {
						t.Error(err)
						return
					}
					token := tokenOf(h)
					guard.Lock()
					last = max(last, token)
					guard.Unlock()
					_ = h.Release(bg)
				}
			})
		}
		wg.Wait()
		raw.FlushAll(bg)
		h := acquire(t, theirs)
		token := tokenOf(h)
		_ = h.Release(bg)
		if token <= last {
			t.Fatalf("round %d: token %d after FLUSHALL, %d before it (%d µs smaller)", round, token, last, last-token)
		}
	}
}

// A resource gets either the token with which the work was begun or the word that there
// is none: a zero that means "lost" would pass its check of a new row.
func TestAHoldKeepsItsToken(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		plain := acquire(t, mutex(t, m, anteroom.LockConfig{Key: "plain"}))
		if token, fenced := plain.Token(); fenced || token != 0 {
			t.Errorf("without Fencing: %d, %v", token, fenced)
		}
		ok(t, plain.Release(bg))

		mu := mutex(t, m, anteroom.LockConfig{Key: "k", Fencing: true})
		lost := acquire(t, mu)
		inner := must[*anteroom.Hold](t)(mu.Acquire(lost.Context()))
		first := tokenOf(lost)
		must[[]string](t)(m.ForceRelease(bg, "k"))
		<-lost.Context().Done()
		next := acquire(t, mu)
		second := tokenOf(next)
		ok(t, next.Release(bg))
		for what, h := range map[string]*anteroom.Hold{"lost": lost, "inner": inner, "released": next} {
			want := first
			if h == next {
				want = second
			}
			if token, fenced := h.Token(); !fenced || token != want || token == 0 {
				t.Errorf("%s: %d, %v, want %d", what, token, fenced, want)
			}
		}
		if first >= second {
			t.Errorf("token %d after %d", second, first)
		}
		for _, h := range []*anteroom.Hold{inner, lost} {
			if err := h.Release(bg); !errors.Is(err, anteroom.ErrLost) {
				t.Errorf("Release of a lost hold: %v", err)
			}
		}
		if tokenOf(lost) != first {
			t.Error("Release changed the token")
		}
	})
}

// A process without Fencing that is called by one with it has no token: a resource shall see immediately that Fencing is
// missing somewhere.
func TestFencing_CalledByWhoFences(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		other, _ := manager(t, s.clientOver(s.network()), anteroom.Config{})
		h := acquire(t, mutex(t, m, anteroom.LockConfig{Key: "k", Fencing: true}))
		time.AfterFunc(time.Second, func() { _ = h.Release(bg) })
		plain := acquire(t, other.Mutex("k"))
		if token, fenced := plain.Token(); fenced || token != 0 {
			t.Errorf("%d, %v", token, fenced)
		}
		ok(t, plain.Release(bg))
	})
}

// The record lives for so long from the last grant, or the release that raised it, on.
func TestFenceRecordTime(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		slow := anteroom.LockConfig{WatchdogPeriod: time.Hour} // virtual hours are many checks
		m, _ := manager(t, s.client(), anteroom.Config{Defaults: slow})
		mu := mutex(t, m, anteroom.LockConfig{
			Key: "k", Fencing: true, FenceRecordTime: 3 * time.Hour,
			LeaseTime: time.Hour, WatchdogPeriod: time.Hour,
		})
		const record = "anteroom:fence:{k}"
		left := func(what string, low, high time.Duration) {
			t.Helper()
			if got := s.TTL(record); got < low || got > high {
				t.Errorf("%s: the record has %v left, want %v to %v", what, got, low, high)
			}
		}
		h := acquire(t, mu)
		left("grant", 3*time.Hour-time.Minute, 3*time.Hour+time.Second)
		time.Sleep(2 * time.Hour) // renewed all the time; the record lives from the grant on
		left("held", time.Hour-time.Minute, time.Hour)
		ok(t, h.Release(bg))
		time.Sleep(4 * time.Hour)
		if s.Exists(record) {
			t.Error("the record stays")
		}
	})
}
