package anteroom_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
)

// everyField is a LockConfig in which nothing is zero, and nothing a default.
var everyField = anteroom.LockConfig{
	Name: "orders", LeaseTime: time.Minute, RenewalTime: 7 * time.Second, Margin: time.Second, WatchdogPeriod: 3 * time.Second,
	Fair: true, Reentrant: true, Fencing: true, FenceRecordTime: 48 * time.Hour, MaxHandoffs: 7, MaxHandoffTime: 70 * time.Millisecond, Linger: 2 * time.Second,
	MinHold: time.Second, MaxHold: time.Hour, LongWait: 20 * time.Second, Recovery: anteroom.RecoverNotify, AlertThreshold: 3,
	Replicas: 1, ReplicaTimeout: 100 * time.Millisecond, StringHolders: true,
}

func TestNewMutexTakesTheDefaults(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{Defaults: everyField})
		all := reflect.ValueOf(mutex(t, m, anteroom.LockConfig{Key: "k"}).Config())
		for i := range all.NumField() {
			name, want := all.Type().Field(i).Name, reflect.ValueOf(everyField).Field(i)
			if name == "Key" {
				continue
			}
			if want.IsZero() {
				t.Errorf("%s is not tried", name)
			}
			if got := all.Field(i); !got.Equal(want) {
				t.Errorf("%s is %v, Defaults has %v", name, got, want)
			}
		}
		if own := mutex(t, m, anteroom.LockConfig{Key: "k", LeaseTime: 20 * time.Second}).Config(); own.LeaseTime != 20*time.Second || own.RenewalTime != 7*time.Second {
			t.Errorf("a field that is set: %+v", own)
		}
		// A combination that cannot be is refused when the lock is made, not when it is used.
		if _, err := m.NewMutex(anteroom.LockConfig{Key: "k", LeaseTime: 10 * time.Second}); !errors.Is(err, anteroom.ErrConfig) || !strings.Contains(err.Error(), "RenewalTime") {
			t.Errorf("a lease that is too short for the renewal time of Defaults: %v", err)
		}
	})
}

// Two Mutexes of one key may have different names, and a hold a fixed lease of its own, also behind a waiter that wants
// another one.
func TestWhatBelongsToAHoldMayDiffer(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		a := mutex(t, m, anteroom.LockConfig{Key: "k", Name: "a"})
		b := mutex(t, m, anteroom.LockConfig{Key: "k", Name: "b"})
		first := acquire(t, a)
		time.Sleep(time.Second) // it is renewed for the first time
		if ttl := s.TTL("k"); ttl < 29*time.Second {
			t.Errorf("TTL %v", ttl)
		}
		took := make(chan *anteroom.Hold)
		leases := []time.Duration{2 * time.Second, 4 * time.Second, 3 * time.Second}
		for _, lease := range leases {
			go func() { took <- acquire(t, b, anteroom.Lease(lease)) }()
			time.Sleep(time.Millisecond)
		}
		ok(t, first.Release(bg))
		for _, lease := range leases {
			h := <-took
			if ttl := s.TTL("k"); ttl > lease+time.Millisecond || ttl < lease-100*time.Millisecond {
				t.Errorf("TTL %v, want %v", ttl, lease)
			}
			ok(t, h.Release(bg))
		}
		h := acquire(t, b, anteroom.Lease(4*time.Second))
		time.Sleep(5 * time.Second)
		if h.Held() {
			t.Error("a fixed lease was renewed")
		}
		_ = h.Release(bg)
	})
}

// Other processes get their turn whatever leases the goroutines of this one acquire for.
func TestTurnsOfMixedLeases(t *testing.T) {
	for _, other := range []time.Duration{30 * time.Second, 20 * time.Second} {
		t.Run(other.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				s.net.Latency(time.Millisecond, 0, 1) // for both alike
				m, _ := manager(t, s.client(), anteroom.Config{})
				rival, _ := manager(t, s.client(), anteroom.Config{})
				ctx, stop := context.WithCancel(bg)
				var wg sync.WaitGroup
				for i := range 6 {
					lease := 30 * time.Second
					if i%2 == 1 {
						lease = other
					}
					mu := mutex(t, m, anteroom.LockConfig{Key: "k", LeaseTime: lease, Fair: true})
					wg.Go(func() {
						for ctx.Err() == nil {
							h, err := mu.Acquire(ctx)
							if err != nil {
								return
							}
							time.Sleep(5 * time.Millisecond)
							_ = h.Release(bg)
						}
					})
				}
				time.Sleep(time.Second)
				// Several times, since both may ask at the same moment, and then either may be first.
				for range 5 {
					start := time.Now()
					limit, cancel := context.WithTimeout(bg, 5*time.Second)
					h, err := mutex(t, rival, anteroom.LockConfig{Key: "k", Fair: true}).Acquire(limit)
					cancel()
					if err != nil {
						t.Errorf("another process got no turn in %v: %v", time.Since(start), err)
						break
					}
					t.Logf("another process got its turn after %v", time.Since(start))
					_ = h.Release(bg)
				}
				stop()
				wg.Wait()
			})
		})
	}
}

// What an ErrConfig says about the owner is read while owners by Lock come and go.
func TestAContradictionBesideLock(t *testing.T) {
	s := newEmbedded(t)
	m, _ := manager(t, s.client(), anteroom.Config{RecordCallSites: true})
	mu := mutex(t, m, anteroom.LockConfig{Key: "k"})
	other := mutex(t, m, anteroom.LockConfig{Key: "k", Fair: true})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 300 {
				func() {
					defer func() { _ = recover() }() // the key came into use by the other one
					pass(mu)
				}()
			}
		})
	}
	wg.Go(func() {
		for range 1000 {
			if h, err := other.TryAcquire(bg); err == nil {
				_ = h.Release(bg)
			}
		}
	})
	wg.Wait()
}
