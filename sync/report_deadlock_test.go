package anteroom_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// ring lets goroutine i hold lock i and, at start, wait up to limit for lock i+1. All end
// when the limit of the first is over. It returns when they wait.
func ring(locks []*anteroom.Mutex, limit time.Duration) (ended *sync.WaitGroup) {
	ended = new(sync.WaitGroup)
	start := make(chan struct{})
	for i, mu := range locks {
		ended.Go(func() {
			mu.Lock()
			defer mu.Unlock()
			<-start
			if locks[(i+1)%len(locks)].TryLockFor(limit) {
				locks[(i+1)%len(locks)].Unlock()
			}
		})
	}
	synctest.Wait()
	close(start)
	synctest.Wait()
	return ended
}

// byGoroutine makes a deadlock of Locks certain: nobody else may unlock them.
var byGoroutine = anteroom.LockConfig{Reentrant: true}

func numberedLocks(m *anteroom.Manager, n int) (locks []*anteroom.Mutex) {
	for i := range n {
		locks = append(locks, m.Mutex(fmt.Sprintf("key:%d", i)))
	}
	return locks
}

func TestDeadlock_IsReportedOnce(t *testing.T) {
	for _, n := range []int{2, 3, 7} {
		for _, record := range []bool{false, true} {
			if record && n > 3 {
				continue
			}
			bubble(t, func(t *testing.T, s *embedded) {
				m, rec := manager(t, s.client(), anteroom.Config{RecordCallSites: record, Defaults: byGoroutine})
				time.Sleep(2 * time.Second)
				began := time.Now()
				ended := ring(numberedLocks(m, n), 3*time.Minute)
				time.Sleep(10 * time.Second) // two checks
				evs := rec.of(observe.EventDeadlock)
				if len(evs) != 1 {
					t.Fatalf("%d goroutines: %d reports after two checks", n, len(evs))
				}
				checkRing(t, evs[0], n, record, began)
				ended.Wait()
				if evs := rec.of(observe.EventDeadlock); len(evs) != 1 {
					t.Errorf("%d goroutines: %d reports", n, len(evs))
				}
				ring(numberedLocks(m, n), time.Minute).Wait()
				if evs := rec.of(observe.EventDeadlock); len(evs) != 2 {
					t.Errorf("%d goroutines: %d reports after a second one", n, len(evs))
				}
				if evs := rec.of(observe.EventSelfDeadlock); len(evs) != 0 {
					t.Errorf("%d self-deadlocks", len(evs))
				}
			})
		}
	}
}

// checkRing compares the event of a ring of n goroutines.
func checkRing(t *testing.T, ev observe.Event, n int, recorded bool, began time.Time) {
	t.Helper()
	if len(ev.Waits) != n || ev.Key != "key:0" || ev.Waiters != n || !ev.Since.Equal(began) || ev.CallSite == "" {
		t.Fatalf("%+v", ev)
	}
	if strings.HasPrefix(ev.Text, "possible") || strings.Contains(ev.Text, "key:") {
		t.Errorf("the text: %q", ev.Text)
	}
	for i, w := range ev.Waits {
		next := ev.Waits[(i+1)%n]
		if w.Owner != next.Goroutine || w.Kind != "lock" || w.OwnerKind != "lock" || !strings.Contains(w.CallSite, "deadlock_test.go:") {
			t.Errorf("link %d: %+v", i, w)
		}
		if !strings.Contains(ev.Text, fmt.Sprintf("goroutine %d waits at %s", w.Goroutine, w.CallSite)) {
			t.Errorf("link %d is not in %q", i, ev.Text)
		}
		if recorded != (w.OwnerSite != "") {
			t.Errorf("link %d: taken at %q", i, w.OwnerSite)
		}
	}
	keys := map[string]bool{}
	for _, w := range ev.Waits {
		keys[w.Key] = true
	}
	if len(keys) != n {
		t.Errorf("%d keys of %d", len(keys), n)
	}
}

// A Hold may have been passed on: such a cycle is a possible deadlock, and reported when it is
// as old as a long wait.
func TestDeadlock_OfHoldsIsPossible(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, rec := manager(t, s.client(), anteroom.Config{Defaults: byGoroutine})
		x, y := m.Mutex("x"), m.Mutex("y")
		var ended sync.WaitGroup
		for _, order := range [][]*anteroom.Mutex{{x, y}, {y, x}} {
			ended.Go(func() {
				h := acquire(t, order[0])
				time.Sleep(time.Second)
				if inner, err := order[1].Acquire(bg, anteroom.Wait(10*time.Minute)); err == nil {
					_ = inner.Release(bg)
				}
				_ = h.Release(bg)
			})
		}
		time.Sleep(30 * time.Second)
		if evs := rec.of(observe.EventDeadlock); len(evs) != 0 {
			t.Fatalf("after less than a long wait: %+v", evs)
		}
		time.Sleep(6 * time.Second)
		evs := rec.of(observe.EventDeadlock)
		if len(evs) != 1 || len(evs[0].Waits) != 2 || evs[0].Waits[0].OwnerKind != "hold" {
			t.Fatalf("%+v", evs)
		}
		if !strings.HasPrefix(evs[0].Text, "possible deadlock") || !strings.Contains(evs[0].Text, "passed on") {
			t.Errorf("the text: %q", evs[0].Text)
		}
		ended.Wait()
		if evs := rec.of(observe.EventDeadlock); len(evs) != 1 {
			t.Errorf("%d reports", len(evs))
		}
	})
}

// A goroutine that waits for itself, in all the ways there are.
func TestDeadlock_WithItself(t *testing.T) {
	type lock = func(t *testing.T, mu *anteroom.Mutex, limit time.Duration)
	byLock := func(_ *testing.T, mu *anteroom.Mutex, limit time.Duration) { mu.TryLockFor(limit) }
	byHold := func(t *testing.T, mu *anteroom.Mutex, limit time.Duration) {
		if h, err := mu.Acquire(bg, anteroom.Wait(limit)); err == nil {
			t.Cleanup(func() { _ = h.Release(bg) })
		}
	}
	for _, c := range []struct {
		name         string
		reentrant    bool
		first, again lock
		within       time.Duration // 0: never
		possible     bool
	}{
		{"Acquire after Lock", true, byLock, byHold, 11 * time.Second, false},
		{"Acquire twice", false, byHold, byHold, 35 * time.Second, true},
		{"Lock after Acquire is reported immediately, as self_deadlock", true, byHold, byLock, 0, false},
		{"Lock after Lock, too", false, byLock, byLock, 0, false},
	} {
		bubble(t, func(t *testing.T, s *embedded) {
			m, rec := manager(t, s.client(), anteroom.Config{})
			mu := mutex(t, m, anteroom.LockConfig{Key: "k", Reentrant: c.reentrant})
			done := make(chan struct{})
			go func() {
				defer close(done)
				c.first(t, mu, time.Second)
				c.again(t, mu, 3*time.Minute)
				if mu.Holds() > 0 {
					mu.Unlock()
				}
			}()
			time.Sleep(c.within)
			want := 0
			if c.within > 0 {
				want = 1
			}
			evs := rec.of(observe.EventDeadlock)
			if len(evs) != want || want == 1 && strings.HasPrefix(evs[0].Text, "possible") != c.possible {
				t.Errorf("%s: after %v: %+v", c.name, c.within, evs)
			}
			<-done
			if n := len(rec.of(observe.EventDeadlock)); n != want {
				t.Errorf("%s: %d reports, want %d", c.name, n, want)
			}
			if n := len(rec.of(observe.EventSelfDeadlock)); n != 1-want {
				t.Errorf("%s: %d self-deadlocks", c.name, n)
			}
		})
	}
}

// While a Close waits for its goroutine nobody waits for itself: who comes is refused.
func TestDeadlock_NotWhileClosing(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, rec := manager(t, s.client(), anteroom.Config{})
		rw, mu := m.RWMutex("rw"), m.Mutex("mu")
		rw.Lock()
		mu.Lock()
		closed := make(chan error, 1)
		go func() { closed <- m.Close(bg) }()
		s.settle()
		none := func(context.Context) error { return nil }
		for name, again := range map[string]func() error{
			"RLock": func() error { return panics(t, rw.RLock) }, "Lock": func() error { return panics(t, rw.Lock) }, "RDo": func() error { return rw.RDo(bg, none) },
			"Lock of a Mutex": func() error { return panics(t, mu.Lock) }, "Do": func() error { return mu.Do(bg, none) },
		} {
			if err := again(); !errors.Is(err, anteroom.ErrClosed) {
				t.Errorf("%s: %v", name, err)
			}
		}
		rw.Unlock()
		mu.Unlock()
		ok(t, <-closed)
		if evs := rec.of(observe.EventSelfDeadlock); len(evs) > 0 {
			t.Errorf("%+v", evs)
		}
	})
}

// What only one check sees is not reported: the cycle lasts from 4 s to 6 s, a check is at
// 5 s. Neither is one that comes again and again, each time with new waits.
func TestDeadlock_ThatDissolvesIsNotReported(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, rec := manager(t, s.client(), anteroom.Config{Defaults: byGoroutine})
		time.Sleep(4 * time.Second)
		ring(numberedLocks(m, 2), 2*time.Second).Wait()
		time.Sleep(time.Minute)

		x, y := m.Mutex("x"), m.Mutex("y")
		var ended sync.WaitGroup
		for _, order := range [][]*anteroom.Mutex{{x, y}, {y, x}} {
			ended.Go(func() {
				order[0].Lock()
				defer order[0].Unlock()
				time.Sleep(time.Second)
				ended.Go(func() { pass(order[0]) }) // somebody waits all the time
				time.Sleep(time.Second)
				for range 30 { // the same tenures, at every check another wait
					if order[1].TryLockFor(4 * time.Second) {
						order[1].Unlock()
					}
				}
			})
		}
		ended.Wait()
		if evs := rec.of(observe.EventDeadlock); len(evs) != 0 {
			t.Errorf("%+v", evs)
		}
	})
}

// A chain without a cycle is none, however long, and who waits behind a cycle is not part
// of it.
func TestDeadlock_OnlyItsOwnLinks(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, rec := manager(t, s.client(), anteroom.Config{Defaults: byGoroutine})
		locks := numberedLocks(m, 5)
		var ended sync.WaitGroup
		chain := func(mine, next *anteroom.Mutex) {
			ended.Go(func() {
				mine.Lock()
				defer mine.Unlock()
				time.Sleep(time.Second)
				pass(next)
			})
		}
		locks[0].Lock()
		for i := range 4 {
			chain(locks[i+1], locks[i])
		}
		for range 100 { // the longest queue is that of a key at the end
			ended.Go(func() { time.Sleep(2 * time.Second); pass(locks[0]) })
		}
		time.Sleep(time.Minute)
		if evs := rec.of(observe.EventDeadlock); len(evs) != 0 {
			t.Fatalf("a chain: %+v", evs)
		}
		// Its end closes it, behind a hundred others.
		if locks[2].TryLockFor(time.Minute) {
			t.Error("locked what is held")
		}
		evs := rec.of(observe.EventDeadlock)
		locks[0].Unlock()
		ended.Wait()
		if len(evs) != 1 || len(evs[0].Waits) != 3 {
			t.Fatalf("%+v", evs)
		}
		var keys []string
		for _, w := range evs[0].Waits {
			keys = append(keys, w.Key)
		}
		if slices.Sort(keys); !slices.Equal(keys, []string{"key:0", "key:1", "key:2"}) {
			t.Errorf("keys %v", keys)
		}
	})
}

// Two Managers know nothing of each other.
func TestDeadlock_OverTwoManagersIsNotSeen(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		a, recA := manager(t, s.client(), anteroom.Config{Defaults: byGoroutine})
		b, recB := manager(t, s.client(), anteroom.Config{Defaults: byGoroutine})
		ring([]*anteroom.Mutex{a.Mutex("x"), b.Mutex("y")}, time.Minute).Wait()
		if n := len(recA.of(observe.EventDeadlock)) + len(recB.of(observe.EventDeadlock)); n != 0 {
			t.Errorf("%d reports", n)
		}
	})
}
