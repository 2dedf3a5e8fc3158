package anteroom_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// What nobody has made says so, and what it is. It does not crash in the library.
func TestZeroValues_SayWhatTheyAre(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	work := func(context.Context) error { return nil }
	rw, sem, w := new(anteroom.RWMutex), new(anteroom.Semaphore), new(anteroom.Weighted)
	mu := new(anteroom.Mutex)
	errs := func(of string, calls map[string]func() error) {
		for what, call := range calls {
			t.Run(of+" "+what, func(t *testing.T) { notMade(t, of, call()) })
		}
	}
	panics := func(of string, calls ...func()) {
		for i, call := range calls {
			t.Run(fmt.Sprint(of, " ", i), func(t *testing.T) { notMade(t, of, orNil(panicOf(call))) })
		}
	}
	panics("Mutex", mu.Lock, mu.Unlock, func() { mu.TryLock() }, func() { mu.Held() })
	panics("RWMutex", rw.Lock, rw.Unlock, rw.RLock, rw.RUnlock, rw.RLocker().Lock, func() { rw.TryLock() }, func() { rw.TryRLock() },
		func() { rw.TryLockFor(time.Second) }, func() { rw.TryRLockFor(time.Second) }, (*anteroom.RWMutex)(nil).RLock)
	panics("Semaphore", func() { w.TryAcquire(1) }, func() { w.TryAcquire(0) }, func() { w.Release(1) }, func() { w.Release(0) },
		func() { sem.Weighted().Release(1) }, func() { (*anteroom.Weighted)(nil).Release(1) })
	errs("RWMutex", map[string]func() error{
		"Acquire":  func() error { return second(rw.Acquire(ctx)) },
		"RAcquire": func() error { return second(rw.RAcquire(ctx)) },
		"TryRAcquire": func() error {
			return second((*anteroom.RWMutex)(nil).TryRAcquire(ctx))
		},
		"Do":  func() error { return rw.Do(ctx, work) },
		"RDo": func() error { return rw.RDo(ctx, work) },
	})
	errs("Semaphore", map[string]func() error{
		"Acquire": func() error { return second(sem.Acquire(ctx, 1)) },
		"TryAcquire": func() error {
			return second((*anteroom.Semaphore)(nil).TryAcquire(ctx, 1))
		},
		"Do":                       func() error { return sem.Do(ctx, 1, work) },
		"Weighted.Acquire":         func() error { return sem.Weighted().Acquire(ctx, 1) },
		"Weighted.Acquire of none": func() error { return w.Acquire(ctx, 0) },
	})
	for _, m := range []*anteroom.Manager{nil, {}} {
		errs("Manager", map[string]func() error{
			"NewMutex":     func() error { return second(m.NewMutex(anteroom.LockConfig{Key: "k"})) },
			"NewRWMutex":   func() error { return second(m.NewRWMutex(anteroom.LockConfig{Key: "k"})) },
			"NewSemaphore": func() error { return second(m.NewSemaphore(anteroom.LockConfig{Key: "k"}, 1)) },
			"Inspect":      func() error { return second(m.Inspect(ctx, "k")) },
			"ForceRelease": func() error { return second(m.ForceRelease(ctx, "k")) },
			"Destroy":      func() error { return m.Destroy("k") },
			"Ping":         func() error { return m.Ping(ctx) },
			"Close":        func() error { return m.Close(ctx) },
			"CloseWithin":  func() error { return m.CloseWithin(time.Second) },
			"Watch": func() (err error) {
				for _, err = range m.Watch(ctx, "k") {
				}
				return err
			},
		})
		mutex, rw, sem := "Manager", "Manager", "Manager"
		if m == nil { // then the locks are as if nobody had made them
			mutex, rw, sem = "Mutex", "RWMutex", "Semaphore"
		}
		errs(mutex, map[string]func() error{
			"from it":    func() error { return second(m.Mutex("k").Acquire(ctx)) },
			"AcquireAll": func() error { return second(m.AcquireAll(ctx, "k")) },
		})
		errs(rw, map[string]func() error{"from it": func() error { return second(m.RWMutex("k").Acquire(ctx)) }})
		errs(sem, map[string]func() error{
			"from it":        func() error { return second(m.Semaphore("k", 1).Acquire(ctx, 1)) },
			"Weighted of it": func() error { return m.Semaphore("k", 1).Weighted().Acquire(ctx, 1) },
		})
		panics(mutex, m.Mutex("k").Lock)
		panics(rw, m.RWMutex("k").RLock)
		if m.ClientID() != "" || len(m.Snapshot()) != 0 || len(m.Counts()) != 0 || m.Survey(observe.SurveyOptions{}).Keys != 0 {
			t.Error("a Manager that nobody has made knows of locks")
		}
	}
}

// A HoldSet that came with an error answers as a Hold that did.
func TestHoldSet_NilIsNotHeld(t *testing.T) {
	t.Parallel()
	for _, s := range []*anteroom.HoldSet{nil, {}} {
		for what, err := range map[string]error{"Err": s.Err(), "Release": s.Release(t.Context()), "Context": context.Cause(s.Context())} {
			if e, is := errors.AsType[*anteroom.Error](err); !is || !errors.Is(e, anteroom.ErrNotHeld) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if s.Context().Err() == nil || len(s.Holds()) != 0 {
			t.Error("a nil HoldSet says that it is one")
		}
	}
}

func orNil(e *anteroom.Error) error {
	if e == nil {
		return nil
	}
	return e
}

// notMade checks that err says that nobody has made the value of that type.
func notMade(t *testing.T, name string, err error) {
	t.Helper()
	e, is := errors.AsType[*anteroom.Error](err)
	if !is || !errors.Is(e, anteroom.ErrConfig) || e.Outcome != observe.OutcomeMistake || !strings.Contains(e.Error(), ": "+name+" was not made") {
		t.Errorf("%v", err)
	}
}
