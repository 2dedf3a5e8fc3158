package anteroom_test

import (
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// A lock that lingers is the next owner's of its process without a command, and is nobody's for the watchdog, which
// does not accuse it of being renewed late. It is given back at the end of Linger, and by Close.
func TestLinger(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, rec := manager(t, s.client(), anteroom.Config{})
		mu := mutex(t, m, anteroom.LockConfig{Key: "k", Linger: 9 * time.Second, LeaseTime: time.Minute, WatchdogPeriod: 100 * time.Millisecond, Fencing: true})
		pass(mu) // the subscription begins
		synctest.Wait()
		h := acquire(t, mu)
		token := tokenOf(h)
		time.Sleep(time.Second) // it has its whole lease
		ok(t, h.Release(bg))
		if st := stateOfK(m); st.Status != "lingers" || st.Goroutine != 0 || st.Kind != "" {
			t.Errorf("%+v", st)
		}
		for range 3 {
			time.Sleep(2 * time.Second)
			h = acquire(t, mu)
			if token++; tokenOf(h) != token {
				t.Errorf("token %d, want %d", tokenOf(h), token)
			}
			ok(t, h.Release(bg))
		}
		time.Sleep(8 * time.Second)
		if !s.Exists("k") {
			t.Error("it does not linger")
		}
		time.Sleep(2 * time.Second)
		if s.Exists("k") {
			t.Error("it lingers on")
		}
		for _, kind := range []observe.EventKind{observe.EventAlert, observe.EventLost, observe.EventRecovery} {
			if list := rec.of(kind); len(list) > 0 {
				t.Errorf("%v", list)
			}
		}
		pass(mu)
		ok(t, m.Close(bg))
		if s.Exists("k") {
			t.Error("Close has left it")
		}
	})
}

func stateOfK(m *anteroom.Manager) observe.State {
	for _, st := range m.Snapshot() {
		if st.Key == "k" {
			return st
		}
	}
	return observe.State{}
}

// A key that was removed while it lingered is found so by the watchdog, and the next owner gets a new grant.
func TestLinger_ARemovalIsNoticed(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		mu := mutex(t, m, anteroom.LockConfig{Key: "k", Linger: time.Minute, LeaseTime: 5 * time.Minute, WatchdogPeriod: time.Second})
		pass(mu)
		synctest.Wait()
		h := acquire(t, mu)
		time.Sleep(20 * time.Second) // it has its whole lease
		ok(t, h.Release(bg))
		s.Del("k")
		time.Sleep(6500 * time.Millisecond)
		if st := stateOfK(m); st.Status == "lingers" {
			t.Errorf("%+v", st)
		}
		h = acquire(t, mu)
		if !s.Exists("k") {
			t.Error("the next owner has no lock")
		}
		ok(t, h.Release(bg))
	})
}

func TestLinger_Config(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		for _, d := range []time.Duration{-1, time.Microsecond, 25 * time.Hour} {
			if _, err := m.NewMutex(anteroom.LockConfig{Key: "k", Linger: d}); !errors.Is(err, anteroom.ErrConfig) {
				t.Errorf("Linger %v: %v", d, err)
			}
		}
	})
}

// An owner that comes in late in a lease that was not renewed is renewed immediately, and the watchdog accuses nobody.
func TestLinger_LateInTheLease(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, rec := manager(t, s.client(), anteroom.Config{})
		mu := mutex(t, m, anteroom.LockConfig{Key: "k", Linger: time.Hour, LeaseTime: time.Minute, RenewalTime: 3 * time.Second, WatchdogPeriod: 50 * time.Millisecond})
		pass(mu) // the subscription begins
		synctest.Wait()
		for _, late := range []bool{false, true} {
			h := acquire(t, mu)
			time.Sleep(time.Second) // it has its whole lease
			ok(t, h.Release(bg))
			idle := 15 * time.Second
			if late { // less than half of the lease is left, and it still lingers
				idle = 27700*time.Millisecond - 3*(time.Minute-s.TTL("k"))/4
			}
			time.Sleep(idle)
			h = acquire(t, mu)
			if late {
				time.Sleep(20 * time.Millisecond)
				if ttl := s.TTL("k"); ttl < 59*time.Second {
					t.Errorf("after %v it has %v left", idle, ttl)
				}
			}
			time.Sleep(5 * time.Second)
			ok(t, h.Release(bg))
		}
		for _, kind := range []observe.EventKind{observe.EventAlert, observe.EventLost, observe.EventRecovery} {
			if list := rec.of(kind); len(list) > 0 {
				t.Errorf("%v: %v", kind, list)
			}
		}
	})
}

// MinHold is kept by each owner.
func TestLinger_MinHold(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, _ := manager(t, s.client(), anteroom.Config{})
		b, _ := manager(t, s.client(), anteroom.Config{})
		cfg := anteroom.LockConfig{Key: "k", Linger: time.Minute, MinHold: 5 * time.Second, LeaseTime: 5 * time.Minute}
		mine, other := mutex(t, a, cfg), mutex(t, b, cfg)
		for range 2 { // the subscription begins with the first, and an answer before it lets nothing linger
			h := acquire(t, mine)
			time.Sleep(10 * time.Second)
			ok(t, h.Release(bg))
		}
		time.Sleep(time.Second)
		ok(t, acquire(t, mine).Release(bg)) // a short job
		time.Sleep(time.Second)
		if other.TryLock() {
			t.Error("the job runs again")
			other.Unlock()
		}
	})
}

// A lock that is removed, or deleted by force, while it lingers is no owner's loss, and the next one has a new grant: after a
// ForceRelease immediately, after a DEL, which nothing reports, at the end of Linger.
func TestLinger_NobodyHasLostIt(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, rec := manager(t, s.client(), anteroom.Config{})
		b, _ := manager(t, s.client(), anteroom.Config{})
		mu := mutex(t, a, anteroom.LockConfig{Key: "k", Linger: time.Second, LeaseTime: 5 * time.Minute})
		pass(mu) // the subscription begins
		synctest.Wait()
		for name, remove := range map[string]func(){
			"DEL":                    func() { s.Del("k"); time.Sleep(2 * time.Second) },
			"ForceRelease elsewhere": func() { must[[]string](t)(b.ForceRelease(bg, "k")); s.settle() },
			"ForceRelease":           func() { must[[]string](t)(a.ForceRelease(bg, "k")) },
		} {
			h := acquire(t, mu)
			time.Sleep(time.Second)
			ok(t, h.Release(bg))
			remove()
			h = acquire(t, mu)
			if !s.Exists("k") {
				t.Errorf("%s: the next owner has nothing", name)
			}
			ok(t, h.Release(bg))
			time.Sleep(2 * time.Second)
		}
		if list := rec.of(observe.EventLost); len(list) > 0 {
			t.Errorf("%v", list)
		}
	})
}

// lingering returns two Managers with Linger, the first of which has just released the keys.
func (s *embedded) lingering(t *testing.T, keys ...string) (a, b *anteroom.Manager, rec *recorder) {
	cfg := anteroom.Config{Defaults: anteroom.LockConfig{Linger: time.Minute, LeaseTime: 5 * time.Minute}}
	a, rec = manager(t, s.client(), cfg)
	b, _ = manager(t, s.client(), cfg)
	warmForce(t, a, b)
	time.Sleep(2 * time.Second)
	set := must[*anteroom.HoldSet](t)(a.AcquireAll(bg, keys...))
	time.Sleep(time.Second)
	ok(t, set.Release(bg))
	for _, key := range keys {
		if !s.Exists(key) {
			t.Fatal("it does not linger")
		}
	}
	return a, b, rec
}

// Seize takes a lock that lingers, here and elsewhere, and nobody has lost it.
func TestLinger_Seize(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b, rec := s.lingering(t, "k")
		before := len(rec.of(observe.EventLost))
		ok(t, seize(t, a).Release(bg))
		h := seize(t, b)
		s.onlyHolder(t, h)
		synctest.Wait() // the message has come: before, a lets owners in by the units that were just taken, and notifies them
		if _, err := a.Mutex("k").TryAcquire(bg); !errors.Is(err, anteroom.ErrNotAcquired) {
			t.Errorf("the one from which it was taken: %v", err)
		}
		ok(t, h.Release(bg))
		ok(t, acquire(t, a.Mutex("k")).Release(bg))
		if list := rec.of(observe.EventLost); len(list) > before {
			t.Errorf("%v", list)
		}
	})
}

// AcquireAll takes locks that linger, here and elsewhere.
func TestLinger_AcquireAll(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, b, _ := s.lingering(t, "x", "y")
		before := s.holders("x")[0]
		set := must[*anteroom.HoldSet](t)(a.AcquireAll(bg, "x", "y"))
		if x := set.Holds()[0].Holder(); x != before {
			t.Errorf("%s after %s", x, before)
		}
		ok(t, set.Release(bg))
		begin := time.Now()
		ok(t, must[*anteroom.HoldSet](t)(b.AcquireAll(bg, "x", "y")).Release(bg))
		if d := time.Since(begin); d > time.Second {
			t.Errorf("after %v", d)
		}
	})
}

// With Fencing no lock lingers in Redisson's dialect, which passes nothing on. Otherwise it does.
func TestLinger_Redisson(t *testing.T) {
	for _, fencing := range []bool{true, false} {
		bubble(t, func(t *testing.T, s *embedded) {
			m, _ := manager(t, s.client(), anteroom.Config{Dialect: anteroom.DialectRedisson})
			mu := mutex(t, m, anteroom.LockConfig{Key: "k", Linger: time.Minute, Fencing: fencing})
			pass(mu)
			synctest.Wait()
			h := acquire(t, mu)
			time.Sleep(time.Second)
			ok(t, h.Release(bg))
			if lingers := s.Exists("k"); lingers == fencing {
				t.Errorf("Fencing %v: it lingers: %v", fencing, lingers)
			}
		})
	}
}

// With Replicas the next owner asks for no lock, and waits for the replicas.
func TestLinger_Replicas(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t, "--repl-diskless-sync-delay", "0")
	testredis.Start(t, "--replicaof", "127.0.0.1", strconv.Itoa(s.Port()))
	admin := s.Client(t)
	eventually(t, "the replica follows", func() bool { return admin.Wait(bg, 1, 100*time.Millisecond).Val() == 1 })
	m, _ := manager(t, s.Client(t, func(o *redis.Options) { o.ReadTimeout = 2 * pace.Hang }), anteroom.Config{})
	mu := mutex(t, m, anteroom.LockConfig{Key: "k", Linger: time.Minute, Replicas: 1, LeaseTime: 20 * time.Minute, ReplicaTimeout: pace.Scale(4 * time.Second)})
	pass(mu)
	eventually(t, "it lingers", func() bool { pass(mu); return stateOfK(m).Status == "lingers" })
	field := admin.HKeys(bg, "k").Val()[0]
	waits := s.Stats(t)["wait"]
	h := acquire(t, mu)
	if n := s.Stats(t)["wait"] - waits; n != 1 || h.Holder() != field {
		t.Errorf("%d WAITs, %s after %s", n, h.Holder(), field)
	}
	ok(t, h.Release(bg))
}
