package anteroom_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/petermattis/goid"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// parked calls Lock of mu on a goroutine of its own and returns what unlocks it, once it
// is in, and waits for that.
func parked(mu *anteroom.Mutex) (free func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		mu.Lock()
		<-quit
		mu.Unlock()
	}()
	synctest.Wait()
	return func() { close(quit); <-done }
}

// A check comes every quarter of LongWait, and at least every 5 s.
func TestLongWait_IsReportedOnce(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		c := &kinds{}
		m, rec := manager(t, s.client(), anteroom.Config{Observer: hooks(c)})
		mu := mutex(t, m, anteroom.LockConfig{Key: "k", Name: "orders"})
		for range 2 { // the second time it is an episode of its own
			before := len(rec.of(observe.EventLongWait))
			h := acquire(t, mu)
			time.Sleep(time.Second)
			began := time.Now()
			free := parked(mu)
			time.Sleep(30*time.Second - 1)
			if evs := rec.of(observe.EventLongWait); len(evs) != before {
				t.Fatalf("before it is long: %+v", evs)
			}
			time.Sleep(5 * time.Second)
			evs := rec.of(observe.EventLongWait)
			if len(evs) != before+1 {
				t.Fatalf("%d reports after 35 s, want %d", len(evs), before+1)
			}
			time.Sleep(5 * time.Minute)
			if n := len(rec.of(observe.EventLongWait)); n != before+1 {
				t.Fatalf("%d reports after minutes, want %d", n, before+1)
			}
			ev, w := evs[before], evs[before].Waits[0]
			if ev.Key != "k" || ev.Class != "orders" || ev.Holder != h.Holder() || !ev.Since.Equal(began) || ev.Waiters != 1 {
				t.Errorf("the event: %+v", ev)
			}
			if len(ev.Waits) != 1 || w.Key != "k" || w.Kind != "lock" || !w.Since.Equal(began) || w.Goroutine == 0 {
				t.Errorf("the wait: %+v", ev.Waits)
			}
			if w.Owner != goid.Get() || w.OwnerKind != "hold" || !w.OwnerSince.Equal(h.Since()) {
				t.Errorf("the owner: %+v, want goroutine %d since %v", w, goid.Get(), h.Since())
			}
			// Without RecordCallSites a goroutine scan shows where both are.
			if !strings.Contains(w.CallSite, "sync/report_longwait_test.go:") || ev.CallSite != w.CallSite || !strings.Contains(w.OwnerAt, "longwait_test.go:") {
				t.Errorf("waits at %q (event: %q), owner at %q", w.CallSite, ev.CallSite, w.OwnerAt)
			}
			for _, part := range []string{w.CallSite, w.OwnerAt, fmt.Sprintf("goroutine %d", w.Goroutine), "nobody else waits"} {
				if !strings.Contains(ev.Text, part) {
					t.Errorf("%q lacks %q", ev.Text, part)
				}
			}
			ok(t, h.Release(bg))
			free()
		}
		if n := c.get(observe.EventLongWait); n != 2 {
			t.Errorf("the Observer got %d, want 2", n)
		}
	})
}

// kinds counts events as an Observer is notified of them.
type kinds struct {
	mu     sync.Mutex
	counts map[observe.EventKind]int
}

func (k *kinds) EventRaised(kind observe.EventKind, _ bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.counts == nil {
		k.counts = map[observe.EventKind]int{}
	}
	k.counts[kind]++
}

func (k *kinds) get(kind observe.EventKind) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.counts[kind]
}

func TestLongWait_NamesRecordedCallSites(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, rec := manager(t, s.client(), anteroom.Config{RecordCallSites: true})
		mu := m.Mutex("k")
		h := acquire(t, mu)
		free := parked(mu)
		time.Sleep(35 * time.Second)
		evs := rec.of(observe.EventLongWait)
		if len(evs) != 1 {
			t.Fatalf("%d reports", len(evs))
		}
		w := evs[0].Waits[0]
		if !strings.Contains(w.CallSite, "longwait_test.go:") || !strings.Contains(w.OwnerSite, "helpers_test.go:") || w.OwnerAt != "" {
			t.Errorf("%+v", w)
		}
		if !strings.Contains(evs[0].Text, "taken at "+w.OwnerSite) {
			t.Errorf("the text: %q", evs[0].Text)
		}
		ok(t, h.Release(bg))
		free()
	})
}

func TestLongWait_ShortWaitsAreNotReported(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, rec := manager(t, s.client(), anteroom.Config{})
		mu := m.Mutex("k")
		for range 10 {
			h := acquire(t, mu)
			free := parked(mu)
			time.Sleep(29 * time.Second)
			ok(t, h.Release(bg))
			free()
		}
		if evs := rec.of(observe.EventLongWait); len(evs) != 0 {
			t.Errorf("%+v", evs)
		}
	})
}

func TestLongWait_ThresholdAndOff(t *testing.T) {
	for _, c := range []struct {
		limit, within time.Duration
		reports       int
	}{
		{time.Second, 1250 * time.Millisecond, 1},
		{12 * time.Second, 15 * time.Second, 1},
		{5 * time.Minute, 5*time.Minute + 5*time.Second, 1},
		{-1, 10 * time.Minute, 0},
	} {
		bubble(t, func(t *testing.T, s *embedded) {
			m, rec := manager(t, s.client(), anteroom.Config{LongWait: c.limit})
			mu := m.Mutex("k")
			h := acquire(t, mu)
			free := parked(mu)
			time.Sleep(c.limit - 1)
			if n := len(rec.of(observe.EventLongWait)); n != 0 {
				t.Errorf("%v: %d reports before", c.limit, n)
			}
			time.Sleep(c.within - c.limit + 1)
			if n := len(rec.of(observe.EventLongWait)); n != c.reports {
				t.Errorf("%v: %d reports, want %d", c.limit, n, c.reports)
			}
			ok(t, h.Release(bg))
			free()
		})
	}
}

func TestLongWait_Bounds(t *testing.T) {
	s := newEmbedded(t)
	for _, d := range []time.Duration{time.Second - 1, 24*time.Hour + 1} {
		_, err := anteroom.NewManager(s.client(), anteroom.Config{LongWait: d})
		if !errors.Is(err, anteroom.ErrConfig) || !strings.Contains(err.Error(), "LongWait") {
			t.Errorf("%v: %v", d, err)
		}
	}
}

// What another process holds is named as Redis named it, and an outage as what it is.
func TestLongWait_ForAnotherProcess(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		other, _ := manager(t, s.client(), anteroom.Config{})
		net := s.network()
		m, rec := manager(t, s.clientOver(net), anteroom.Config{})
		h := acquire(t, other.Mutex("k"))
		ctx, cancel := context.WithTimeout(bg, time.Minute)
		defer cancel()
		if _, err := m.Mutex("k").Acquire(ctx); err == nil {
			t.Fatal("acquired beside the other process")
		}
		evs := rec.of(observe.EventLongWait)
		if len(evs) != 1 || evs[0].Holder != h.Holder() || evs[0].Waits[0].Owner != 0 || evs[0].Waits[0].Kind != "hold" {
			t.Fatalf("%+v", evs)
		}
		if !strings.Contains(evs[0].Text, "held by another process") || strings.Contains(evs[0].Text, h.Holder()) {
			t.Errorf("the text: %q", evs[0].Text)
		}
		ok(t, h.Release(bg))

		net.Refuse()
		net.CloseAll()
		ctx, cancel = context.WithTimeout(bg, time.Minute)
		defer cancel()
		if _, err := m.Mutex("unreachable").Acquire(ctx); !errors.Is(err, anteroom.ErrUnavailable) {
			t.Fatal(err)
		}
		evs = rec.of(observe.EventLongWait)
		if len(evs) != 2 || evs[1].Err == nil || evs[1].Holder != "" || !strings.Contains(evs[1].Text, "acquire is failing") {
			t.Fatalf("%+v", evs)
		}
		net.Heal()
		time.Sleep(5 * time.Second) // go-redis dials on for a moment
	})
}

// A key's waiters are one event, however many they are, and a check that finds many keys
// names those that wait longest.
func TestLongWait_ABurstIsFewEvents(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, rec := manager(t, s.client(), anteroom.Config{})
		const keys, waiters = 30, 20
		var holds []*anteroom.Hold
		var in sync.WaitGroup
		time.Sleep(time.Second)
		for i := range keys {
			mu := m.Mutex(fmt.Sprintf("key:%02d", i))
			holds = append(holds, acquire(t, mu))
			for range waiters {
				in.Go(func() { pass(mu) })
			}
			time.Sleep(time.Millisecond)
		}
		time.Sleep(3 * time.Minute)
		evs := rec.of(observe.EventLongWait)
		for _, h := range holds {
			ok(t, h.Release(bg))
		}
		in.Wait()
		if len(evs) != 11 {
			t.Fatalf("%d events for %d keys, want 10 and one for all others", len(evs), keys)
		}
		for i, ev := range evs[:10] {
			if ev.Key != fmt.Sprintf("key:%02d", i) || ev.Waiters != waiters {
				t.Errorf("event %d: %s with %d waiters", i, ev.Key, ev.Waiters)
			}
		}
		if last := evs[10]; last.Key != "" || last.Waiters != 20*waiters || !strings.Contains(last.Text, "20 further keys") {
			t.Errorf("all others: %+v", last)
		}
	})
}

// A queue that moves on too slowly is reported once in LongWait; a waiter that comes to be
// first after that, and waits for another holder, is news.
func TestLongWait_OfASlowQueue(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, rec := manager(t, s.client(), anteroom.Config{})
		mu := mutex(t, m, anteroom.LockConfig{Key: "k", Fair: true})
		var in sync.WaitGroup
		for i := range 60 {
			in.Go(func() {
				mu.Lock()
				time.Sleep(10 * time.Second)
				mu.Unlock()
			})
			if i < 4 {
				continue // one that comes later waits for 40 s
			}
			time.Sleep(10 * time.Second)
		}
		in.Wait()
		evs := rec.of(observe.EventLongWait)
		if len(evs) < 14 || len(evs) > 19 {
			t.Fatalf("%d reports in nine minutes, want one in 30 or 35 s", len(evs))
		}
		seen := map[int64]bool{}
		for i, ev := range evs {
			if seen[ev.Waits[0].Goroutine] {
				t.Errorf("goroutine %d is reported twice", ev.Waits[0].Goroutine)
			}
			seen[ev.Waits[0].Goroutine] = true
			if i > 0 && ev.At.Sub(evs[i-1].At) < 30*time.Second {
				t.Errorf("reports %v after each other", ev.At.Sub(evs[i-1].At))
			}
		}
	})
}

// A lock may have a LongWait of its own, and none: it is what is said of it, and nothing else.
func TestLongWait_OfOneLock(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, rec := manager(t, s.client(), anteroom.Config{})
		began, waits := time.Now(), map[string]time.Duration{"quick": 2 * time.Second, "ordinary": 0, "slow": time.Minute, "silent": -1}
		var free []func()
		for key, limit := range waits {
			mu := mutex(t, m, anteroom.LockConfig{Key: key, LongWait: limit})
			h := acquire(t, mu)
			wait := parked(mu)
			free = append(free, func() { ok(t, h.Release(bg)); wait() })
		}
		time.Sleep(90 * time.Second)
		reported := map[string]time.Duration{}
		for _, e := range rec.of(observe.EventLongWait) {
			if reported[e.Key] != 0 {
				t.Errorf("%s is reported twice", e.Key)
			}
			reported[e.Key] = e.At.Sub(began)
		}
		for key, d := range map[string]time.Duration{"quick": 2 * time.Second, "ordinary": 30 * time.Second, "slow": time.Minute} {
			if late := reported[key] - d; late < 0 || late > 5*time.Second {
				t.Errorf("%s is reported after %v", key, reported[key])
			}
		}
		if len(reported) != 3 {
			t.Errorf("%v", reported)
		}
		if mu := mutex(t, m, anteroom.LockConfig{Key: "quick", LongWait: time.Hour}); mu.TryLock() {
			t.Error("locked")
		}
		for _, f := range free {
			f()
		}
		for _, d := range []time.Duration{1, 48 * time.Hour} {
			if err := (anteroom.LockConfig{Key: "k", LongWait: d}).Validate(); !errors.Is(err, anteroom.ErrConfig) {
				t.Errorf("%v: %v", d, err)
			}
		}
	})
}
