package anteroom

import (
	"context"
	"runtime"
	"testing"
	"time"
)

// A Hold that is released gives its sentinel to the next one. It must tell of that one,
// although the program keeps the Hold that had it before, and never of the released one.
func TestAbandoned_ASentinelServesManyHolds(t *testing.T) {
	m := insideManager(t, Config{})
	defer func() { _ = m.Close(context.Background()) }()
	hold := func(key string) *Hold {
		h, err := m.Mutex(key).Acquire(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	var kept []*Hold
	var forgotten []*holdState
	// Others take and give sentinels too, and the race detector makes the pool drop some:
	// one that serves a second Hold is not certain to be met by a single try.
	served := 0
	for range 100 {
		first := hold("k")
		w := first.sentinel
		if err := first.Release(context.Background()); err != nil {
			t.Fatal(err)
		}
		kept = append(kept, first)
		func() {
			next := hold("k")
			if next.sentinel == w {
				served++
				forgotten = append(forgotten, next.s)
			}
			// As if it were forgotten, but for the lock, which the test goes on with.
			next.s.released.Store(true)
			next.s.unregister()
			if _, err := next.s.t.exit("release", nil); err != nil {
				t.Error(err)
			}
		}()
	}
	if served == 0 {
		t.Fatal("no sentinel served two Holds")
	}
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); runtime.Gosched() {
		runtime.GC()
		missing := 0
		for _, s := range forgotten {
			if !s.abandoned.Load() {
				missing++
			}
		}
		if missing == 0 {
			break
		}
	}
	for i, s := range forgotten {
		if !s.abandoned.Load() {
			t.Errorf("of %d Holds that were forgotten, number %d was not noticed", len(forgotten), i)
		}
	}
	for i, h := range kept {
		if h.s.abandoned.Load() {
			t.Fatalf("Hold %d is taken for abandoned; it was released", i)
		}
	}
	runtime.KeepAlive(kept)
}
