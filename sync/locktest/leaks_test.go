package locktest_test

import (
	"log/slog"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/locktest"
)

// ended runs f as a user's test, in a bubble or outside, and returns the failures.
func ended(t *testing.T, bubble bool, f func(t *testing.T, lt *locktest.Manager), opts ...locktest.Option) *recording {
	t.Helper()
	var r *recording
	run := func(t *testing.T) {
		r = &recording{TB: t}
		f(t, locktest.NewManager(r, anteroom.Config{}, opts...))
	}
	t.Run("somebody's test", func(t *testing.T) {
		if bubble {
			synctest.Test(t, run)
		} else {
			run(t)
		}
	})
	return r
}

// leaked fails the test unless there was exactly one leak for each pattern, in order.
func leaked(t *testing.T, r *recording, patterns ...string) {
	t.Helper()
	if len(r.errors) != len(patterns) {
		t.Fatalf("I6: it failed with %q, want %q", r.errors, patterns)
	}
	for i, p := range patterns {
		if !regexp.MustCompile(`^locktest: leaked: ` + p + `$`).MatchString(r.errors[i]) {
			t.Errorf("I6: it failed with\n%s, want\n%s", r.errors[i], p)
		}
	}
}

func TestLocktest_I6_WhatIsStillHeldFailsTheTest(t *testing.T) {
	for _, bubble := range []bool{true, false} {
		var h *anteroom.Hold
		r := ended(t, bubble, func(t *testing.T, lt *locktest.Manager) {
			release(t, acquire(t, lt.Mutex("all right")))
			var err error
			if h, err = lt.Mutex("hold").Acquire(bg); err != nil {
				t.Fatal(err)
			}
			mu := reentrant(t, lt, "lock")
			mu.Lock()
			mu.Lock()
			if !lt.Another(anteroom.Config{}).Mutex("try").TryLock() {
				t.Error("TryLock")
			}
		})
		runtime.KeepAlive(h) // a hold that nobody can release any more is a finding of its own
		const at = `.*/sync/locktest/leaks_test\.go:\d+ by goroutine \d+`
		leaked(t, r,
			`"hold" was not released by the end of the test: acquired at `+at,
			`"lock" was not unlocked by the end of the test: locked at `+at+`, held 2 times`,
			`"try" was not unlocked by the end of the test: locked at `+at)
		if log := r.text(); !strings.Contains(log, `"hold" is still held`) {
			t.Errorf("log:\n%s", log)
		}
	}
}

// A lost Hold needs no Release; a lost Lock keeps its key closed to this process until its Unlock.
func TestLocktest_I6_WhatWasLost(t *testing.T) {
	leaked(t, ended(t, true, func(t *testing.T, lt *locktest.Manager) {
		h := acquire(t, lt.Mutex("hold"))
		lt.Lose("hold")
		wantErr(t, h.Err(), anteroom.ErrLost)
		acquire(t, lt.Mutex("fixed"), anteroom.Lease(time.Second))
		time.Sleep(time.Minute)
		lt.Mutex("lock").Lock()
		lt.Lose("lock")
	}), `"lock" was not unlocked by .*, lost meanwhile`)
}

// The watchdog ends the lock of a goroutine that has ended. That hides no leak.
func TestLocktest_I6_WhatTheWatchdogLetGo(t *testing.T) {
	leaked(t, ended(t, true, func(t *testing.T, lt *locktest.Manager) {
		mu := reentrant(t, lt, "k")
		go func() { mu.Lock() }()
		time.Sleep(10 * time.Minute)
	}), `"k" was lost because its owner was gone: acquired at .*leaks_test\.go:\d+: .*`)
}

// A goroutine that releases when the test's context ends leaks nothing, and neither does a release that does not
// reach the server.
func TestLocktest_I6_WhoLetsGoAtTheEndIsNoLeak(t *testing.T) {
	for _, bubble := range []bool{true, false} {
		leaked(t, ended(t, bubble, func(t *testing.T, lt *locktest.Manager) {
			h := acquire(t, lt.Mutex("leader"))
			ctx := t.Context()
			go func() {
				<-ctx.Done()
				time.Sleep(20 * time.Millisecond)
				_ = h.Release(bg)
			}()
			unsent := acquire(t, lt.Mutex("unsent"))
			lt.Down()
			_ = unsent.Release(expired(t))
		}))
	}
}

func TestLocktest_I6_LeaksAreAllowedByOption(t *testing.T) {
	r := ended(t, true, func(t *testing.T, lt *locktest.Manager) {
		acquire(t, lt.Mutex("hold"))
		go func() { lt.Mutex("k").Lock() }()
		time.Sleep(10 * time.Minute)
	}, locktest.AllowLeaks())
	leaked(t, r)
	if log := r.text(); !strings.Contains(log, `"hold" is still held`) {
		t.Errorf("log:\n%s", log)
	}
}

// After an explicit Stop the leaks have been reported already.
func TestLocktest_I6_NothingAfterStop(t *testing.T) {
	leaked(t, ended(t, true, func(t *testing.T, lt *locktest.Manager) {
		acquire(t, lt.Mutex("k"))
		if err := lt.Stop(); err == nil || !strings.Contains(err.Error(), `"k" is still held`) {
			t.Errorf("Stop: %v", err)
		}
	}))
}

// A goroutine has 200 ms to release what it holds. Then the leak is reported, and Close waits for nobody.
func TestLocktest_I6_ALeakCostsNoTime(t *testing.T) {
	var r *recording
	var took time.Duration
	t.Run("somebody's test", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r = &recording{TB: t}
			began := time.Now()
			t.Cleanup(func() { took = time.Since(began) }) // after that of NewManager
			locktest.NewManager(r, anteroom.Config{}).Mutex("k").Lock()
		})
	})
	leaked(t, r, `"k" was not unlocked by .*leaks_test\.go:\d+ by goroutine \d+`)
	if took > 200*time.Millisecond {
		t.Errorf("the end of the test took %v", took)
	}
}

// What locktest's own client and server are is nobody's business: not even of a hold that is old enough to be tracked.
func TestLocktest_LogsNothingOfItsOwn(t *testing.T) {
	for _, level := range []slog.Level{slog.LevelInfo, slog.LevelDebug} {
		synctest.Test(t, func(t *testing.T) {
			r := &recording{TB: t}
			log := slog.New(slog.NewTextHandler(r, &slog.HandlerOptions{Level: level}))
			lt := locktest.NewManager(r, anteroom.Config{Logger: log})
			h := acquire(t, lt.Mutex("k"))
			time.Sleep(time.Minute)
			release(t, h)
			if err := lt.Stop(); err != nil {
				t.Error(err)
			}
			if text := r.text(); strings.Contains(text, "redis client") || level == slog.LevelInfo && text != "" {
				t.Errorf("it logs\n%s", text)
			}
		})
	}
}
