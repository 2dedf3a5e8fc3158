package anteroom_test

import (
	"context"
	"errors"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// counter counts what an Observer is notified of.
type counter struct {
	mu     sync.Mutex
	counts map[string]int
}

func newCounter() *counter { return &counter{counts: map[string]int{}} }

func (c *counter) add(name string) {
	c.mu.Lock()
	c.counts[name]++
	c.mu.Unlock()
}

func (c *counter) get(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts[name]
}

func (c *counter) Acquired(_ string, o observe.Outcome, _ time.Duration) {
	outcome, via := o.AcquireLabels()
	c.add("acquired/" + outcome + "/" + via)
}

func (c *counter) Released(_ string, o observe.Outcome, _ time.Duration) {
	c.add("released/" + string(o))
}

func (c *counter) Renewed(_ string, o observe.Outcome, _ time.Duration) {
	c.add("renewed/" + string(o))
}
func (c *counter) Command(name, outcome string, _ time.Duration) { c.add("command/" + name) }
func (c *counter) Lost(_ string, r observe.LossReason)           { c.add("lost/" + string(r)) }

func (c *counter) Recovered(_, action, outcome string) { c.add("recovered/" + action + "/" + outcome) }

// What the watchdog does about a hold counts once, with what came of it, though an event
// reports both that it acted and that it helped.
func TestARecoveryIsCountedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		outcome string
		end     func(h *anteroom.Hold)
	}{
		"the lease ended": {"helped", func(h *anteroom.Hold) { time.Sleep(time.Minute); _ = h.Release(bg) }},
		"released before": {"helped", func(h *anteroom.Hold) { _ = h.Release(bg); time.Sleep(time.Minute) }},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				counts := newCounter()
				m, rec := manager(t, s.client(), anteroom.Config{Observer: hooks(counts)})
				h := acquire(t, mutex(t, m, anteroom.LockConfig{Key: "k", MaxHold: 10 * time.Second}))
				time.Sleep(18 * time.Second) // the watchdog has stopped its renewal
				c.end(h)
				counts.mu.Lock()
				defer counts.mu.Unlock()
				for what, n := range counts.counts {
					if strings.HasPrefix(what, "recovered/") && (what != "recovered/stop_renewing/"+c.outcome || n != 1) {
						t.Errorf("%s: %d times", what, n)
					}
				}
				if counts.counts["recovered/stop_renewing/"+c.outcome] != 1 {
					t.Errorf("counted: %v", counts.counts)
				}
				var texts []string
				for _, ev := range rec.of(observe.EventRecovery) {
					texts = append(texts, ev.Text[strings.LastIndex(ev.Text, "renewal was"):])
				}
				const stopped = "renewal was stopped, so that the lease ends by itself"
				if !slices.Equal(texts, []string{stopped, stopped + ", which " + c.outcome}) {
					t.Errorf("events %q", texts)
				}
			})
		})
	}
}

func TestADayOfRenewals_Lab(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		c := newCounter()
		// The watchdog has a life of its own, and would take most of the time here.
		m, rec := manager(t, s.client(), anteroom.Config{Observer: hooks(c), Defaults: anteroom.LockConfig{WatchdogPeriod: time.Hour}})
		mu := mutex(t, m, anteroom.LockConfig{Key: "k", LeaseTime: 3 * time.Minute})
		mu.Lock()
		time.Sleep(24*time.Hour + time.Second)
		if n := c.get("renewed/renewed"); n != 1441 {
			t.Fatalf("%d renewals in a day, want one soon and one a minute: 1441", n)
		}
		if n := c.get("command/renew"); n != 1441 {
			t.Fatalf("%d renewal commands for 1441 renewals of one lock", n)
		}
		if !mu.Held() || len(rec.events) != 2 { // the subscription came up, and the embedded server does not know CLIENT TRACKING
			t.Fatalf("held %v, events %+v", mu.Held(), rec.events)
		}
		mu.Unlock()
	})
}

// A goroutine that ends without Unlock: nobody else could unlock, so the watchdog
// lets the lease end, and then the lock can be had again, also in this process.
func TestAHolderThatNeverUnlocks(t *testing.T) {
	for _, strategy := range []anteroom.Recovery{anteroom.RecoverDefault, anteroom.RecoverRelease} {
		bubble(t, func(t *testing.T, s *embedded) {
			m, rec := manager(t, s.client(), anteroom.Config{RecordCallSites: true})
			mu := mutex(t, m, anteroom.LockConfig{Key: "k", LeaseTime: 10 * time.Second, Recovery: strategy, Reentrant: true})
			var wg sync.WaitGroup
			wg.Go(func() { mu.Lock(); mu.Lock() })
			wg.Wait()
			start := time.Now()
			if !mu.TryLockFor(5 * time.Minute) {
				t.Fatalf("%v: the lock of an ended goroutine is never free again", strategy)
			}
			if d := time.Since(start); d > 2*time.Minute {
				t.Fatalf("free only after %v", d)
			}
			mu.Unlock()
			synctest.Wait()
			found := rec.of(observe.EventRecovery)
			if len(found) == 0 || found[0].Check != "holder" || found[0].CallSite == "" {
				t.Fatalf("events %+v", found)
			}
			if lost := rec.of(observe.EventLost); len(lost) != 1 {
				t.Fatalf("losses %+v", lost)
			}
			if len(m.Snapshot()) != 0 {
				t.Fatalf("left behind %+v", m.Snapshot())
			}
		})
	}
}

func TestAnAbandonedHoldIsReported(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, rec := manager(t, s.client(), anteroom.Config{RecordCallSites: true})
		kept, dropped := m.Mutex("kept"), mutex(t, m, anteroom.LockConfig{Key: "dropped", Recovery: anteroom.RecoverRelease})
		ctx := acquire(t, kept).Context() // the context keeps its Hold
		func() {
			acquire(t, m.Mutex("renewed"))
			acquire(t, dropped)
			acquire(t, m.Mutex("fixed"), anteroom.Lease(time.Hour))
		}()
		for range 100 {
			runtime.GC()
			time.Sleep(6 * time.Second)
			if len(rec.of(observe.EventAbandoned)) == 2 {
				break
			}
		}
		time.Sleep(time.Minute)
		seen := map[string]int{}
		for _, ev := range rec.of(observe.EventAbandoned) {
			seen[ev.Key]++
			if ev.CallSite == "" {
				t.Errorf("no call site: %+v", ev)
			}
		}
		if len(seen) != 2 || seen["renewed"] != 1 || seen["dropped"] != 1 {
			t.Fatalf("reported %v, want renewed and dropped, once each", seen)
		}
		if !s.Exists("renewed") {
			t.Fatal("by default an abandoned hold is still renewed: its work may still run")
		}
		if s.Exists("dropped") {
			t.Fatal("RecoverRelease left an abandoned hold in Redis for good")
		}
		if ctx.Err() != nil {
			t.Fatal("a hold with a reachable context was given up")
		}
	})
}

// The context of a Hold leads to those that it is nested in. A caller that forgets all of them
// is notified of each: the library itself keeps none of them reachable.
func TestForgottenNestedHoldsAreReported(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, rec := manager(t, s.client(), anteroom.Config{})
		other, otherRec := manager(t, s.client(), anteroom.Config{})
		kept := acquire(t, m.Mutex("kept"))
		func() {
			outer := acquire(t, m.Mutex("pair"))
			inner := must[*anteroom.Hold](t)(m.Mutex("pair").Acquire(outer.Context()))
			ctx, cancel := context.WithCancel(inner.Context())
			defer cancel()
			deep := must[*anteroom.Hold](t)(m.Mutex("deep").Acquire(ctx))
			must[*anteroom.Hold](t)(other.Mutex("other").Acquire(deep.Context()))
			must[*anteroom.Hold](t)(m.Mutex("in kept").Acquire(kept.Context()))
			must[*anteroom.Hold](t)(m.Mutex("seized").Seize(deep.Context()))
		}()
		for range 100 {
			runtime.GC()
			time.Sleep(6 * time.Second)
			if len(rec.of(observe.EventAbandoned)) == 4 && len(otherRec.of(observe.EventAbandoned)) == 1 {
				break
			}
		}
		time.Sleep(time.Minute)
		seen := map[string]int{}
		for _, ev := range append(rec.of(observe.EventAbandoned), otherRec.of(observe.EventAbandoned)...) {
			seen[ev.Key]++
		}
		if want := map[string]int{"pair": 1, "deep": 1, "other": 1, "in kept": 1, "seized": 1}; !maps.Equal(seen, want) {
			t.Errorf("reported %v, want %v", seen, want)
		}
		ok(t, kept.Release(bg))
	})
}

func TestMaxHold(t *testing.T) {
	for _, c := range []struct {
		strategy anteroom.Recovery
		ends     bool
	}{{anteroom.RecoverDefault, true}, {anteroom.RecoverNotify, false}, {anteroom.RecoverRelease, true}} {
		bubble(t, func(t *testing.T, s *embedded) {
			m, rec := manager(t, s.client(), anteroom.Config{})
			mu := mutex(t, m, anteroom.LockConfig{Key: "k", MaxHold: time.Minute, Recovery: c.strategy})
			h := acquire(t, mu)
			time.Sleep(59 * time.Second)
			if !h.Held() {
				t.Fatal("given up too early")
			}
			time.Sleep(time.Minute)
			if h.Held() == c.ends {
				t.Fatalf("%v: Held() = %v a minute after MaxHold", c.strategy, h.Held())
			}
			synctest.Wait()
			if len(rec.of(observe.EventRecovery)) == 0 {
				t.Fatalf("%v: not reported", c.strategy)
			}
			if err := h.Release(bg); errors.Is(err, anteroom.ErrLost) != c.ends {
				t.Fatalf("%v: release: %v", c.strategy, err)
			}
		})
	}
}

// A hold that the watchdog cancelled keeps the key while its owner may work, and no
// longer: its Release frees it for others.
func TestACancelledHoldIsFreeWhenItsOwnerLetsGo(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, _ := manager(t, s.client(), anteroom.Config{})
		mu := mutex(t, m, anteroom.LockConfig{Key: "k", LeaseTime: time.Minute, MaxHold: time.Minute, Recovery: anteroom.RecoverRelease})
		h := acquire(t, mu)
		inner, err := mu.Acquire(h.Context())
		ok(t, err)
		<-h.Context().Done()
		_ = inner.Release(bg)
		time.Sleep(time.Second)
		if !s.Exists("k") {
			t.Fatal("the key is free while the outer hold's owner may still work")
		}
		if err := h.Release(bg); !errors.Is(err, anteroom.ErrLost) {
			t.Fatalf("release: %v", err)
		}
		time.Sleep(time.Second)
		if s.Exists("k") {
			t.Fatalf("nobody works any more, and the key is taken for another %v", s.TTL("k"))
		}
	})
}

// No renewal sets a key that has been removed: its holder is notified, and the key stays free.
func TestRecovery_ARemovedKeyIsNotSetAgain(t *testing.T) {
	for r := anteroom.RecoverDefault; r <= anteroom.RecoverRelease; r++ {
		bubble(t, func(t *testing.T, s *embedded) {
			m, _ := manager(t, s.client(), anteroom.Config{})
			h := acquire(t, mutex(t, m, anteroom.LockConfig{Key: "k", Fencing: true, Recovery: r}))
			time.Sleep(time.Second)
			s.Del("k")
			time.Sleep(20 * time.Second)
			if err := h.Err(); !errors.Is(err, anteroom.ErrLost) || s.Exists("k") {
				t.Errorf("Recovery %d: %v, the key is there: %v", r, err, s.Exists("k"))
			}
			_ = h.Release(bg)
		})
	}
}

func TestConnectionAlerts(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, rec := manager(t, s.client(), anteroom.Config{})
		mu := mutex(t, m, anteroom.LockConfig{Key: "k", LeaseTime: 10 * time.Minute})
		mu.Lock()
		time.Sleep(time.Minute)
		if n := len(rec.of(observe.EventAlert)); n != 0 {
			t.Fatalf("%d alerts without a fault", n)
		}
		s.net.BlackHole()
		time.Sleep(time.Minute)
		if n := len(rec.of(observe.EventAlert)); n == 0 {
			t.Fatal("no alert although Redis hangs")
		}
		raised := len(rec.of(observe.EventAlert))
		s.net.Heal()
		time.Sleep(time.Minute)
		if n := len(rec.of(observe.EventAlertCleared)); n != raised {
			t.Fatalf("%d alerts, %d cleared: %+v", raised, n, rec.of(observe.EventAlert))
		}
		mu.Unlock()
	})
}
