package anteroom_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/internal/faultnet"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// A grant that nobody owned was no run of the job: the key must not stay taken for it.
func TestAnUnwantedGrantIsNotKeptForMinHold(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		cfg := anteroom.LockConfig{Key: "cron", LeaseTime: 10 * time.Second, MinHold: time.Hour}
		mu := mutex(t, m, cfg)
		ok(t, acquire(t, m.Mutex("warm")).Release(bg))
		synctest.Wait()
		s.net.Delay(100 * time.Millisecond)
		ctx, cancel := context.WithTimeout(bg, 50*time.Millisecond)
		defer cancel()
		if _, err := mu.Acquire(ctx); err == nil {
			t.Fatal("acquired")
		}
		time.Sleep(time.Second)
		s.net.Heal()
		time.Sleep(time.Minute)
		other, _ := manager(t, s.client(), anteroom.Config{})
		h, err := mutex(t, other, cfg).TryAcquire(bg)
		if err != nil {
			f, _ := s.HKeys("cron")
			t.Fatalf("a minute after a cancelled Acquire, no job ran: %v (%v, %v)", err, f, s.TTL("cron"))
		}
		ok(t, h.Release(bg))
	})
}

// The margin must not cut MinHold short.
func TestMinHoldOfAFixedLease(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		mu := mutex(t, m, anteroom.LockConfig{Key: "k", LeaseTime: 20 * time.Second, RenewalTime: -1, MinHold: 20 * time.Second, Margin: 2 * time.Second})
		start := time.Now()
		h := acquire(t, mu)
		<-h.Context().Done()
		_ = h.Release(bg)
		time.Sleep(100 * time.Millisecond)
		if d := time.Since(start); !s.Exists("k") && d < 20*time.Second {
			t.Errorf("free %v after the grant, MinHold is 20s", d)
		}
	})
}

// A release after Close gave the hold up keeps MinHold too.
func TestMinHoldAfterClose(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		mu := mutex(t, m, anteroom.LockConfig{Key: "k", MinHold: 20 * time.Second})
		start := time.Now()
		h := acquire(t, mu)
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		_ = m.Close(ctx)
		_ = h.Release(bg)
		time.Sleep(100 * time.Millisecond)
		if d := time.Since(start); !s.Exists("k") && d < 20*time.Second {
			t.Errorf("free %v after the grant, MinHold is 20s", d)
		}
	})
}

// A lease of one hold that ends before MinHold contradicts it.
func TestMinHoldWithAShorterLeaseIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		mu := mutex(t, m, anteroom.LockConfig{Key: "k", MinHold: 20 * time.Second})
		h, err := mu.Acquire(bg, anteroom.Lease(2*time.Second))
		if err != nil {
			return // refused: fine
		}
		time.Sleep(3 * time.Second)
		if !s.Exists("k") {
			t.Errorf("the key is free 3s after the grant, MinHold is 20s")
		}
		_ = h.Release(bg)
	})
}

// The answer to a release is missing, and its repetition arrives after MinHold, when the mark that the first one has left is over.
// That shows no loss.
func TestMinHoldIsOverBeforeTheReleaseIsRepeated(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, events := manager(t, s.client(), anteroom.Config{CommandTimeout: time.Second})
		h := acquire(t, mutex(t, m, anteroom.LockConfig{Key: "k", MinHold: 1200 * time.Millisecond}))
		s.net.OnRequest(":kept", 1, faultnet.Late(time.Minute))
		time.AfterFunc(500*time.Millisecond, s.net.BlackHole)
		time.AfterFunc(1400*time.Millisecond, s.net.Heal)
		if err := h.Release(bg); err != nil {
			t.Errorf("Release: %v", err)
		}
		time.Sleep(5 * time.Second)
		if lost := events.of(observe.EventLost); len(lost) > 0 {
			t.Errorf("reported: %+v", lost)
		}
		s.nothing(t, "k")
	})
}
