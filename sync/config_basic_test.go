package anteroom_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// A number without a unit is nanoseconds, so every duration has a floor that such a number does not reach.
func TestConfig_EveryDurationHasAFloor(t *testing.T) {
	const bare = 600
	rdb := redis.NewClient(&redis.Options{})
	defer rdb.Close()
	for _, typ := range []reflect.Type{reflect.TypeFor[anteroom.Config](), reflect.TypeFor[anteroom.LockConfig]()} {
		for i := range typ.NumField() {
			f := typ.Field(i)
			if f.Type != reflect.TypeFor[time.Duration]() {
				continue
			}
			v := reflect.New(typ).Elem()
			v.Field(i).SetInt(bare)
			var err error
			switch c := v.Interface().(type) {
			case anteroom.LockConfig:
				c.Key = "k"
				err = c.Validate()
			case anteroom.Config:
				_, err = anteroom.NewManager(rdb, c)
			}
			if !errors.Is(err, anteroom.ErrConfig) || !strings.Contains(err.Error(), f.Name+" is 600ns; it must be from ") {
				t.Errorf("%s.%s = 600: %v", typ.Name(), f.Name, err)
			}
		}
	}
}

func TestValidateNamesFieldAndBound(t *testing.T) {
	for _, c := range []struct {
		field string
		cfg   anteroom.LockConfig
	}{
		{"Key", anteroom.LockConfig{}},
		{"Key", anteroom.LockConfig{Key: strings.Repeat("k", 64<<10+1)}},
		{"Name", anteroom.LockConfig{Name: strings.Repeat("n", 65)}},
		{"LeaseTime", anteroom.LockConfig{LeaseTime: -time.Second}},
		{"LeaseTime", anteroom.LockConfig{LeaseTime: 99 * time.Millisecond}},
		{"LeaseTime", anteroom.LockConfig{LeaseTime: 25 * time.Hour}},
		{"RenewalTime", anteroom.LockConfig{RenewalTime: 16 * time.Second}},
		{"RenewalTime", anteroom.LockConfig{RenewalTime: time.Millisecond}},
		{"Margin", anteroom.LockConfig{Margin: 4 * time.Second}},
		{"Margin", anteroom.LockConfig{Margin: -1}},
		{"WatchdogPeriod", anteroom.LockConfig{WatchdogPeriod: -time.Second}},
		{"WatchdogPeriod", anteroom.LockConfig{WatchdogPeriod: 2 * time.Hour}},
		{"FenceRecordTime", anteroom.LockConfig{FenceRecordTime: -1}},
		{"FenceRecordTime", anteroom.LockConfig{FenceRecordTime: time.Hour - 1}},
		{"FenceRecordTime", anteroom.LockConfig{FenceRecordTime: 3 * time.Hour, LeaseTime: 2 * time.Hour}},
		{"FenceRecordTime", anteroom.LockConfig{FenceRecordTime: 367 * 24 * time.Hour}},
		{"MaxHandoffs", anteroom.LockConfig{MaxHandoffs: 65536}},
		{"MaxHandoffs", anteroom.LockConfig{MaxHandoffs: -2}},
		{"MaxHandoffTime", anteroom.LockConfig{MaxHandoffTime: -time.Second}},
		{"MinHold", anteroom.LockConfig{MinHold: -1}},
		{"MinHold", anteroom.LockConfig{MinHold: time.Minute, RenewalTime: -1}},
		{"MaxHold", anteroom.LockConfig{MaxHold: -1}},
		{"MaxHold", anteroom.LockConfig{MaxHold: 367 * 24 * time.Hour}},
		{"MaxHold", anteroom.LockConfig{MaxHold: time.Second, MinHold: time.Minute}},
		{"Recovery", anteroom.LockConfig{Recovery: 9}},
		{"AlertThreshold", anteroom.LockConfig{AlertThreshold: -1}},
		{"Replicas", anteroom.LockConfig{Replicas: -1}},
		{"ReplicaTimeout", anteroom.LockConfig{ReplicaTimeout: time.Minute}},
	} {
		if c.cfg.Key == "" && c.field != "Key" {
			c.cfg.Key = "k"
		}
		err := c.cfg.Validate()
		if !errors.Is(err, anteroom.ErrConfig) || !strings.Contains(err.Error(), c.field+" ") {
			t.Errorf("%s in %+v: %v", c.field, c.cfg, err)
		}
	}
	if err := (anteroom.LockConfig{Key: strings.Repeat("\x00{", 32<<10)}).Validate(); err != nil {
		t.Errorf("64 KiB of any bytes: %v", err)
	}
}

func TestDefaults(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		got := mutex(t, m, anteroom.LockConfig{Key: "k"}).Config()
		want := anteroom.LockConfig{
			Key: "k", Name: "default", LeaseTime: 30 * time.Second, RenewalTime: 10 * time.Second, Margin: 1500 * time.Millisecond,
			WatchdogPeriod: 5 * time.Second, FenceRecordTime: 7 * 24 * time.Hour, MaxHandoffs: got.MaxHandoffs, MaxHandoffTime: got.MaxHandoffTime,
			AlertThreshold: 2, ReplicaTimeout: 500 * time.Millisecond,
		}
		if got != want {
			t.Fatalf("\n got %+v\nwant %+v", got, want)
		}
		short := mutex(t, m, anteroom.LockConfig{Key: "k", LeaseTime: 500 * time.Millisecond}).Config()
		if short.Margin != 50*time.Millisecond {
			t.Fatalf("margin %v of a short lease", short.Margin)
		}
	})
}

// Every field in which two configurations of one live key contradict each other is named.
// In the others they can be used side by side.
func TestTwoConfigurationsForOneLiveKey(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{RecordCallSites: true})
		base := anteroom.LockConfig{Key: "k", LeaseTime: 20 * time.Second}
		h := acquire(t, mutex(t, m, base))
		other := map[string]any{
			"Name": "x", "LeaseTime": 21 * time.Second, "RenewalTime": 3 * time.Second, "Margin": 500 * time.Millisecond,
			"WatchdogPeriod": time.Second, "Fair": true, "Reentrant": true, "Fencing": true, "FenceRecordTime": 2 * time.Hour, "MaxHandoffs": 5,
			"MaxHandoffTime": time.Second, "Linger": time.Second, "MinHold": time.Second, "MaxHold": time.Minute, "Recovery": anteroom.RecoverNotify,
			"AlertThreshold": 3, "Replicas": 1, "ReplicaTimeout": 100 * time.Millisecond, "StringHolders": true,
		}
		side := map[string]bool{"Name": true}
		typ := reflect.TypeFor[anteroom.LockConfig]()
		for i := range typ.NumField() {
			name := typ.Field(i).Name
			value, known := other[name]
			if name == "Key" || name == "LongWait" { // this one is about what is said only
				continue
			}
			if !known {
				t.Errorf("a new field %s: give it a value here", name)
				continue
			}
			cfg := base
			reflect.ValueOf(&cfg).Elem().Field(i).Set(reflect.ValueOf(value))
			_, err := mutex(t, m, cfg).TryAcquire(bg)
			if side[name] {
				if !errors.Is(err, anteroom.ErrNotAcquired) || errors.Is(err, anteroom.ErrConfig) {
					t.Errorf("%s: %v", name, err)
				}
				continue
			}
			if !errors.Is(err, anteroom.ErrConfig) || !strings.Contains(err.Error(), name+" ") || !strings.Contains(err.Error(), "(here: ") ||
				!strings.Contains(err.Error(), "config_basic_test.go:") || !strings.Contains(err.Error(), ", in use: ") {
				t.Errorf("%s: %v", name, err)
			}
			if e := panics(t, func() { mutex(t, m, cfg).TryLock() }); !errors.Is(e, anteroom.ErrConfig) {
				t.Errorf("TryLock with another %s: %v", name, e)
			}
		}
		ok(t, h.Release(bg))
		ok(t, acquire(t, mutex(t, m, anteroom.LockConfig{Key: "k", Fair: true})).Release(bg))
	})
}

func TestMistakesInTheProgram(t *testing.T) {
	if _, err := anteroom.NewManager(nil, anteroom.Config{}); !errors.Is(err, anteroom.ErrConfig) {
		t.Errorf("nil client: %v", err)
	}
	if _, err := anteroom.NewManager((*redis.Client)(nil), anteroom.Config{}); !errors.Is(err, anteroom.ErrConfig) {
		t.Errorf("typed nil client: %v", err)
	}
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})
	defer ring.Close()
	if _, err := anteroom.NewManager(ring, anteroom.Config{}); !errors.Is(err, anteroom.ErrConfig) || !strings.Contains(err.Error(), "ClusterClient") {
		t.Errorf("Ring: %v", err)
	}
	bubble(t, func(t *testing.T, s *embedded) {
		for field, cfg := range map[string]anteroom.Config{
			"ClientID":        {ClientID: "a:b"},
			"CommandTimeout":  {CommandTimeout: -1},
			"MaxInFlight":     {MaxInFlight: -1},
			"Defaults.Key":    {Defaults: anteroom.LockConfig{Key: "k"}},
			"LeaseTime":       {Defaults: anteroom.LockConfig{LeaseTime: 1}},
			"RenewalInFlight": {RenewalInFlight: -1},
		} {
			if _, err := anteroom.NewManager(s.client(), cfg); !errors.Is(err, anteroom.ErrConfig) || !strings.Contains(err.Error(), field) {
				t.Errorf("%s: %v", field, err)
			}
		}
		m, _ := manager(t, s.client(), anteroom.Config{})
		for name, f := range map[string]func(){
			"Lock of an empty key":       m.Mutex("").Lock,
			"Unlock of an empty key":     m.Mutex("").Unlock,
			"Lock of the zero Mutex":     new(anteroom.Mutex).Lock,
			"Held of the zero Mutex":     func() { new(anteroom.Mutex).Held() },
			"TryLock of a key too long":  func() { m.Mutex(strings.Repeat("k", 70_000)).TryLock() },
			"TryLockFor of an empty key": func() { m.Mutex("").TryLockFor(time.Second) },
		} {
			if err := panics(t, f); !errors.Is(err, anteroom.ErrConfig) || err.Outcome != observe.OutcomeMistake {
				t.Errorf("%s: %v", name, err)
			}
		}
		for name, err := range map[string]error{
			"empty key":    second(m.Mutex("").Acquire(bg)),
			"zero Mutex":   second(new(anteroom.Mutex).Acquire(bg)),
			"Wait(0)":      second(m.Mutex("k").Acquire(bg, anteroom.Wait(0))),
			"Lease(1)":     second(m.Mutex("k").Acquire(bg, anteroom.Lease(1))),
			"Inspect":      second(m.Inspect(bg, "")),
			"ForceRelease": second(m.ForceRelease(bg, "")),
			"NewMutex":     second(m.NewMutex(anteroom.LockConfig{})),
		} {
			var e *anteroom.Error
			if !errors.Is(err, anteroom.ErrConfig) || !errors.As(err, &e) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }

func TestWrongTypeComesBackImmediatelyAndIsLeftAlone(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, rec := manager(t, s.client(), anteroom.Config{})
		ok(t, s.Set("k", "data"))
		mu := m.Mutex("k")
		start := time.Now()
		_, err := mu.Acquire(bg)
		if !errors.Is(err, anteroom.ErrConfig) || !strings.Contains(err.Error(), "another name") || !strings.Contains(err.Error(), `"k"`) {
			t.Fatalf("%v", err)
		}
		if mu.TryLock() {
			t.Fatal("locked a string")
		}
		if _, err := m.ForceRelease(bg, "k"); !errors.Is(err, anteroom.ErrConfig) {
			t.Fatalf("ForceRelease: %v", err)
		}
		if d := time.Since(start); d > time.Second {
			t.Fatalf("took %v", d)
		}
		if v, _ := s.Get("k"); v != "data" {
			t.Fatalf("the data is %q now", v)
		}
		// Lock has no way to return an error: it waits until a person has made room.
		time.AfterFunc(time.Minute, func() { s.Del("k") })
		pass(mu)
		synctest.Wait()
		if ev := rec.of(observe.EventMisconfigured); len(ev) != 1 || ev[0].Key != "k" {
			t.Fatalf("%+v", ev)
		}
	})
}

func TestCloseWaitsForHolders(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		mu := m.Mutex("k")
		h := acquire(t, mu)
		waiting := make(chan error)
		go func() {
			_, err := mu.Acquire(bg)
			waiting <- err
		}()
		synctest.Wait()
		closed := make(chan error)
		go func() { closed <- m.Close(bg) }()
		if err := <-waiting; !errors.Is(err, anteroom.ErrClosed) {
			t.Fatalf("a waiting Acquire: %v", err)
		}
		synctest.Wait()
		if _, err := mu.Acquire(bg); !errors.Is(err, anteroom.ErrClosed) {
			t.Fatalf("Acquire while closing: %v", err)
		}
		if err := panics(t, mu.Lock); !errors.Is(err, anteroom.ErrClosed) {
			t.Fatalf("Lock while closing: %v", err)
		}
		time.Sleep(time.Minute)
		if !h.Held() {
			t.Fatal("not renewed while Close waits")
		}
		start := time.Now()
		ok(t, h.Release(bg))
		ok(t, <-closed)
		if time.Since(start) > time.Second || s.Exists("k") {
			t.Fatal("Close did not end with the last release")
		}
		ok(t, m.Close(bg))
		ok(t, m.Close(bg))
	})
}

func TestCloseGivesUpHoldersAndNamesThem(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		h := acquire(t, m.Mutex("held"))
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		start := time.Now()
		err := m.Close(ctx)
		if time.Since(start) != time.Second || !errors.Is(err, anteroom.ErrClosed) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), `"held"`) {
			t.Fatalf("after %v: %v", time.Since(start), err)
		}
		if cause := context.Cause(h.Context()); !errors.Is(cause, anteroom.ErrClosed) || !errors.Is(cause, anteroom.ErrLost) {
			t.Fatalf("cause %v", cause)
		}
		if !s.Exists("held") {
			t.Fatal("deleted under its running holder")
		}
		time.Sleep(10 * time.Second)
		if err := h.Release(bg); !errors.Is(err, anteroom.ErrClosed) {
			t.Fatalf("late release: %v", err)
		}
		synctest.Wait()
		if s.Exists("held") {
			t.Fatal("the late release was not sent")
		}
		if err := m.Close(bg); !errors.Is(err, anteroom.ErrClosed) {
			t.Fatalf("second Close: %v", err)
		}
		time.Sleep(time.Second) // the connection's worker ends soon after the last command
	})
}

func TestCloseNamesThoseParkedInLock(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		other, _ := manager(t, s.client(), anteroom.Config{})
		h := acquire(t, other.Mutex("k"))
		mu := m.Mutex("k")
		var wg sync.WaitGroup
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(bg, time.Hour)
			defer cancel()
			if anteroom.LockUntil(ctx, mu) {
				t.Error("locked after Close")
			}
		})
		time.Sleep(time.Second)
		err := m.Close(bg)
		if !errors.Is(err, anteroom.ErrClosed) || !strings.Contains(err.Error(), "1 callers are parked in Lock of \"k\"") {
			t.Fatalf("%v", err)
		}
		ok(t, h.Release(bg))
		wg.Wait()
	})
}
