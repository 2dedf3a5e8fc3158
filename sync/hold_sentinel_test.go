package anteroom

import (
	"context"
	"runtime"
	"testing"
	"time"
)

// A tenure that has ended gives its sentinel to the next one. It must report that one,
// although the program keeps the Hold that had it before, and never of the one that ended
// or of one that is in use.
func TestAbandoned_ASentinelServesManyTenures(t *testing.T) {
	m := insideManager(t, Config{})
	defer func() { _ = m.Close(context.Background()) }()
	hold := func(key string) *Hold {
		h, err := m.Mutex(key).Acquire(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	reachable := func(of *tenure) bool {
		return of.reachable()
	}
	used := hold("used")
	var kept []*Hold
	var forgotten []*tenure
	// Others take and give sentinels too, and the race detector makes the pool drop some:
	// one that serves a second tenure is not certain to be found by a single try.
	served := 0
	for range 100 {
		first := hold("k")
		s := first.sentinel
		if err := first.Release(context.Background()); err != nil {
			t.Fatal(err)
		}
		kept = append(kept, first)
		func() {
			next := hold("k")
			if next.sentinel == s {
				served++
				forgotten = append(forgotten, next.t)
			}
			// As if it were forgotten, but for the lock, which the test continues to use.
			if err := next.t.m.exit("release", &next.t.owner, nil, nil); err != nil {
				t.Error(err)
			}
		}()
	}
	if served == 0 {
		t.Fatal("no sentinel served two tenures")
	}
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); runtime.Gosched() {
		runtime.GC()
		missing := 0
		for _, of := range forgotten {
			if reachable(of) {
				missing++
			}
		}
		if missing == 0 {
			break
		}
	}
	for i, of := range forgotten {
		if reachable(of) {
			t.Errorf("of %d tenures that were forgotten, number %d was not noticed", len(forgotten), i)
		}
	}
	for i, h := range kept {
		if !reachable(h.t) {
			t.Errorf("Hold %d is taken for abandoned; it was released", i)
			break
		}
	}
	if !reachable(used.t) {
		t.Error("a Hold in use is taken for abandoned")
	}
	if err := used.Release(context.Background()); err != nil {
		t.Error(err)
	}
	runtime.KeepAlive(kept)
}
