package locktest_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/locktest"
	"github.com/anteroom/anteroom/sync/observe"
)

func TestLocktest_I5_LocksWorkInsideAndOutsideOfABubble(t *testing.T) {
	everywhere(t, func(t *testing.T, lt *locktest.Manager) {
		mu := lt.Mutex("order:42")
		h := acquire(t, mu)
		if _, err := mu.TryAcquire(bg); !errors.Is(err, anteroom.ErrNotAcquired) {
			t.Fatalf("a second TryAcquire: %v", err)
		}
		release(t, h)
		mu = reentrant(t, lt, "reentrant")
		mu.Lock()
		mu.Lock()
		if n := mu.Holds(); n != 2 {
			t.Fatalf("Holds is %d after two Locks", n)
		}
		mu.Unlock()
		if !mu.Held() {
			t.Fatal("the inner Unlock has ended the lock")
		}
		mu.Unlock()
		if info, err := lt.Inspect(bg, "reentrant"); err != nil || info.Locked {
			t.Fatalf("after the last Unlock: %+v, %v", info, err)
		}
	})
}

func reentrant(t *testing.T, lt *locktest.Manager, key string) *anteroom.Mutex {
	t.Helper()
	mu, err := lt.NewMutex(anteroom.LockConfig{Key: key, Reentrant: true})
	if err != nil {
		t.Fatal(err)
	}
	return mu
}

func TestLeasesAndRenewalsRunInVirtualTime(t *testing.T) {
	inBubble(t, func(t *testing.T, lt *locktest.Manager) {
		renewed, fixed := acquire(t, lt.Mutex("renewed")), acquire(t, lt.Mutex("fixed"), anteroom.Lease(time.Minute))
		defer func() { _ = fixed.Release(bg) }()
		time.Sleep(time.Hour)
		if err := renewed.Err(); err != nil {
			t.Errorf("a renewed lease after an hour: %v", err)
		}
		wantErr(t, fixed.Err(), anteroom.ErrLost)
		if info, err := lt.Inspect(bg, "fixed"); err != nil || info.Locked {
			t.Errorf("a fixed lease after an hour, in the server: %+v, %v", info, err)
		}
		release(t, renewed)
	})
}

func TestAnotherIsASecondProcess(t *testing.T) {
	everywhere(t, func(t *testing.T, lt *locktest.Manager) {
		other := lt.Another(anteroom.Config{})
		if lt.ClientID() == other.ClientID() {
			t.Fatal("two Managers share one client id")
		}
		h := acquire(t, lt.Mutex("k"))
		_, err := other.Mutex("k").TryAcquire(bg)
		wantErr(t, err, anteroom.ErrNotAcquired)

		got := make(chan struct{})
		var theirs *anteroom.Hold
		go func() {
			defer close(got)
			theirs, err = other.Mutex("k").Acquire(bg)
		}()
		release(t, h)
		soon(t, "the other process has the lock", got)
		if err != nil {
			t.Fatal(err)
		}
		release(t, theirs)
	})
}

// With one round trip at a time, all other commands wait and share the next one. Over a pipe without a buffer, client
// and server would wait for each other.
func TestLongPipelinesPass(t *testing.T) {
	everywhere(t, func(t *testing.T, lt *locktest.Manager) {
		m := lt.Another(anteroom.Config{MaxInFlight: 1, CommandTimeout: 10 * time.Second})
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				// A busy machine may be late for any of them, but answers.
				h, err := m.Mutex(fmt.Sprint("key:", i)).TryAcquire(bg)
				if err != nil {
					if !errors.Is(err, anteroom.ErrUnavailable) || errors.Is(err, lettucecompat.ErrTimeout) {
						t.Error(err)
					}
					return
				}
				if err := h.Release(bg); err != nil && !errors.Is(err, anteroom.ErrLost) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	})
}

func TestManyGoroutinesAndKeys(t *testing.T) {
	everywhere(t, func(t *testing.T, lt *locktest.Manager) {
		other := lt.Another(anteroom.Config{})
		const goroutines, rounds, keys = 100, 5, 40
		counters := make([]int, keys) // guarded by the locks; -race checks that within a process
		held := make([]sync.Mutex, keys)
		var wg sync.WaitGroup
		for i := range goroutines {
			m := []*locktest.Manager{lt, other}[i%2]
			wg.Go(func() {
				for round := range rounds {
					k := (i + round*7) % keys
					mu := m.Mutex(fmt.Sprint("key:", k))
					mu.Lock()
					if !held[k].TryLock() {
						t.Errorf("two holders of key %d", k)
					} else {
						counters[k]++
						held[k].Unlock()
					}
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		sum := 0
		for _, n := range counters {
			sum += n
		}
		if sum != goroutines*rounds {
			t.Errorf("counted %d, want %d", sum, goroutines*rounds)
		}
	})
}

func TestEachNewHasAServerOfItsOwn(t *testing.T) {
	a, b := locktest.NewManager(t, anteroom.Config{}), locktest.NewManager(t, anteroom.Config{})
	ha, hb := acquire(t, a.Mutex("k")), acquire(t, b.Mutex("k"))
	release(t, ha)
	release(t, hb)
}

func TestObserverOfTheUserHearsOfLosses(t *testing.T) {
	everywhere(t, func(t *testing.T, lt *locktest.Manager) {
		lost := make(chan observe.LossReason, 8)
		obs := &observe.Observer{Lost: func(_ string, r observe.LossReason) { lost <- r }}
		other := lt.Another(anteroom.Config{Observer: obs})
		h := acquire(t, other.Mutex("k"))
		if !lt.Lose("k") {
			t.Fatal("nobody had the lock")
		}
		wantErr(t, h.Err(), anteroom.ErrLost)
		// The holder is notified before anybody else, including the Observer.
		if got := <-lost; got != observe.LostForced {
			t.Fatalf("reason %v, want %v", got, observe.LostForced)
		}
	})
}

func TestRecordsGoToTheTestsLog(t *testing.T) {
	r := &recording{TB: t}
	lt := locktest.NewManager(r, anteroom.Config{})
	h := acquire(t, lt.Mutex("k"))
	lt.Lose("k")
	wantErr(t, h.Err(), anteroom.ErrLost)
	other := lt.Another(anteroom.Config{})
	h = acquire(t, other.Mutex("k"))
	lt.Lose("k")
	wantErr(t, h.Err(), anteroom.ErrLost)
	for _, m := range []*locktest.Manager{lt, other} { // ends the goroutines that log
		if err := m.Close(bg); err != nil {
			t.Fatal(err)
		}
	}
	var first, second bool
	for line := range strings.Lines(r.text()) {
		if strings.Contains(line, "event=lost") && strings.Contains(line, "reason=forced") {
			is2 := strings.Contains(line, "process=2")
			first, second = first || !is2, second || is2
		}
	}
	if !first || !second {
		t.Errorf("the log does not report both losses:\n%s", r.text())
	}
}

// The embedded server has no replicas, and doc.go says what that means.
func TestReplicasAreNeverGranted(t *testing.T) {
	everywhere(t, func(t *testing.T, lt *locktest.Manager) {
		mu, err := lt.NewMutex(anteroom.LockConfig{Key: "k", Replicas: 1})
		if err != nil {
			t.Fatal(err)
		}
		_, err = mu.TryAcquire(bg)
		wantErr(t, err, anteroom.ErrNotAcquired)
	})
}

func TestConfigThatIsNotValidEndsTheTest(t *testing.T) {
	bad := anteroom.Config{Defaults: anteroom.LockConfig{LeaseTime: -1}}
	for name, f := range map[string]func(r *recording){
		"NewManager": func(r *recording) { locktest.NewManager(r, bad) },
		"Another":    func(r *recording) { locktest.NewManager(r, anteroom.Config{}).Another(bad) },
	} {
		t.Run(name, func(t *testing.T) {
			if msg := fatal(t, f); !strings.Contains(msg, "LeaseTime") {
				t.Errorf("message %q does not name the field", msg)
			}
		})
	}
}

func TestStartPanicsWhereATestWouldEnd(t *testing.T) {
	defer func() {
		if r := recover(); r == nil || !strings.Contains(fmt.Sprint(r), "LeaseTime") {
			t.Errorf("recovered %v", r)
		}
	}()
	locktest.Start(anteroom.Config{Defaults: anteroom.LockConfig{LeaseTime: -1}})
}

func TestLocktest_I4_StopWaitsForReleasesUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lt := locktest.Start(anteroom.Config{})
		h := acquire(t, lt.Mutex("k"))
		lt.Down()
		err := h.Release(expired(t))
		wantErr(t, err, anteroom.ErrUnavailable) // never sent, and continued in the background
		began := time.Now()
		if err := lt.Stop(); err != nil {
			t.Fatalf("Stop: %v", err)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("Stop took %v; the release would have ended with its lease only", took)
		}
		if err := lt.Stop(); err != nil {
			t.Errorf("a second Stop: %v", err)
		}
	})
}

func TestLocktest_I4_TheEndOfTheTestStopsAndLogsWhatIsStillHeld(t *testing.T) {
	var r *recording
	var h *anteroom.Hold
	t.Run("somebody's test", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r = &recording{TB: t}
			h = acquire(t, locktest.NewManager(r, anteroom.Config{}).Mutex("forgotten"))
		})
	})
	wantErr(t, h.Err(), anteroom.ErrClosed)
	if log := r.text(); !strings.Contains(log, `at the end of the test: `) || !strings.Contains(log, `"forgotten" is still held`) {
		t.Errorf("log:\n%s", log)
	}
}

func TestLocktest_I4_StopNamesWhatIsStillHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lt := locktest.Start(anteroom.Config{})
		h := acquire(t, lt.Mutex("forgotten"))
		err := lt.Stop()
		if err == nil || !strings.Contains(err.Error(), `"forgotten" is still held`) {
			t.Errorf("Stop: %v", err)
		}
		wantErr(t, h.Err(), anteroom.ErrClosed)
	})
}
