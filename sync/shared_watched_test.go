package anteroom_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// What is found, and reported, of a lock in units is what is of a Mutex.

// A removal is noticed within the bound of docs/guarantees.md, however old the grant is, and for any owner.
func TestShared_ARemovalIsNoticedInTime(t *testing.T) {
	for name, take := range map[string]func(m *anteroom.Manager){
		"a writer":         func(m *anteroom.Manager) { _, _ = m.RWMutex("k").Acquire(bg) },
		"a writer by Lock": func(m *anteroom.Manager) { m.RWMutex("k").Lock() },
		"a reader":         func(m *anteroom.Manager) { _, _ = m.RWMutex("k").RAcquire(bg) },
		"a reader by Lock": func(m *anteroom.Manager) { m.RWMutex("k").RLock() },
		"units":            func(m *anteroom.Manager) { _, _ = m.Semaphore("k", 3).Acquire(bg, 2) },
		"unnamed units":    func(m *anteroom.Manager) { _ = m.Semaphore("k", 3).Weighted().Acquire(bg, 2) },
	} {
		for _, age := range []time.Duration{20 * time.Millisecond, 200 * time.Millisecond, 3 * time.Second, 5300 * time.Millisecond, 10200 * time.Millisecond} {
			t.Run(fmt.Sprintf("%s after %v", name, age), func(t *testing.T) {
				bubble(t, func(t *testing.T, s *embedded) {
					m, rec := manager(t, s.client(), anteroom.Config{})
					take(m)
					time.Sleep(age)
					s.FlushAll()
					removed := time.Now()
					for len(rec.of(observe.EventLost)) == 0 && time.Since(removed) < time.Minute {
						time.Sleep(10 * time.Millisecond)
					}
					if d := time.Since(removed); d > 6500*time.Millisecond {
						t.Errorf("noticed after %v", d)
					}
					if evs := rec.of(observe.EventLost); len(evs) != 1 || evs[0].Reason != observe.LostGone || !strings.Contains(evs[0].Text, "found by") {
						t.Errorf("events %+v", evs)
					}
				})
			})
		}
	}
}

// all returns what was reported: the kinds of events, and the calls of an Observer, but for commands and connections. The
// watchdog's question about units is a renewal, so there are more of those, and what it finds is concluded by its answer.
func (r *recorder) all(c *counter) string {
	seen := map[string]int{}
	r.mu.Lock()
	for _, e := range r.events {
		if e.Key == "" && e.Check == "renewal" {
			continue // the share of all renewals that failed: when each comes, and so how many did, is chance
		}
		seen[strings.TrimSpace(fmt.Sprintf("event %s %s %s", e.Kind, e.Check, e.Reason))]++
	}
	r.mu.Unlock()
	c.mu.Lock()
	maps.Copy(seen, c.counts)
	c.mu.Unlock()
	maps.DeleteFunc(seen, func(what string, _ int) bool {
		return strings.HasPrefix(what, "command/") || what == "renewed/renewed" || what == "recovered/lose/helped" || what == "event recovery lock_status" ||
			strings.HasSuffix(what, " connection") || strings.HasSuffix(what, " recovery") || strings.HasPrefix(what, "recovered/re")
	})
	if seen["renewed/failed"] > 0 {
		seen["renewed/failed"] = 1
	}
	var lines []string
	for _, what := range slices.Sorted(maps.Keys(seen)) {
		lines = append(lines, fmt.Sprintf("%d %s", seen[what], what))
	}
	return strings.Join(lines, "\n")
}

type callCounter struct{ *counter }

func (c *callCounter) Called(_, how string) { c.add("called/" + how) }

func TestShared_IsReportedAsAMutex_Lab(t *testing.T) {
	for name, play := range map[string]func(t *testing.T, s *embedded, m *anteroom.Manager, take func() theHold){
		"held and released": func(t *testing.T, _ *embedded, _ *anteroom.Manager, take func() theHold) {
			h := take()
			time.Sleep(time.Minute)
			ok(t, h.Release(bg))
		},
		"removed": func(_ *testing.T, s *embedded, _ *anteroom.Manager, take func() theHold) {
			h := take()
			time.Sleep(12 * time.Second)
			s.Del("k")
			<-h.Context().Done()
			time.Sleep(time.Second)
			_ = h.Release(bg)
		},
		"found by a renewal": func(_ *testing.T, s *embedded, _ *anteroom.Manager, take func() theHold) {
			h := take()
			s.Del("k")
			<-h.Context().Done()
			time.Sleep(time.Second)
			_ = h.Release(bg)
		},
		"found by its release": func(t *testing.T, s *embedded, _ *anteroom.Manager, take func() theHold) {
			h := take()
			s.Del("k")
			if err := h.Release(bg); !errors.Is(err, anteroom.ErrLost) {
				t.Errorf("Release: %v", err)
			}
			time.Sleep(time.Second)
		},
		"released by force": func(t *testing.T, s *embedded, m *anteroom.Manager, take func() theHold) {
			h := take()
			time.Sleep(12 * time.Second)
			other, _ := manager(t, s.client(), anteroom.Config{})
			must[[]string](t)(other.ForceRelease(bg, "k"))
			<-h.Context().Done()
			time.Sleep(time.Second)
			_ = h.Release(bg)
		},
		"released by force by its own Manager": func(t *testing.T, s *embedded, m *anteroom.Manager, take func() theHold) {
			h := take()
			time.Sleep(12 * time.Second)
			must[[]string](t)(m.ForceRelease(bg, "k"))
			<-h.Context().Done()
			time.Sleep(time.Second)
			_ = h.Release(bg)
		},
		"closed": func(t *testing.T, s *embedded, m *anteroom.Manager, take func() theHold) {
			h := take()
			time.Sleep(12 * time.Second)
			if err := m.CloseWithin(10 * time.Second); err == nil {
				t.Error("closed")
			}
			_ = h.Release(bg)
		},
		"an outage for longer than a lease": func(t *testing.T, s *embedded, _ *anteroom.Manager, take func() theHold) {
			h := take()
			time.Sleep(11 * time.Second)
			s.net.BlackHole()
			<-h.Context().Done()
			_ = h.Release(bg)
			time.Sleep(time.Minute)
			s.net.Heal()
			time.Sleep(time.Minute)
			ok(t, take().Release(bg))
		},
		"a release without an answer": func(t *testing.T, s *embedded, _ *anteroom.Manager, take func() theHold) {
			h := take()
			time.Sleep(11 * time.Second)
			s.net.BlackHole()
			if err := h.Release(bg); !errors.Is(err, anteroom.ErrUnknown) {
				t.Errorf("Release: %v", err)
			}
			time.Sleep(5 * time.Second)
			s.net.Heal()
			time.Sleep(time.Minute)
		},
		"a release that is given up": func(t *testing.T, s *embedded, _ *anteroom.Manager, take func() theHold) {
			h := take()
			time.Sleep(11 * time.Second)
			s.net.BlackHole()
			if err := h.Release(bg); !errors.Is(err, anteroom.ErrUnknown) {
				t.Errorf("Release: %v", err)
			}
			time.Sleep(2 * time.Minute)
			s.net.Heal()
			time.Sleep(time.Minute)
		},
		"a release that cannot be sent": func(t *testing.T, s *embedded, _ *anteroom.Manager, take func() theHold) {
			h := take()
			time.Sleep(11 * time.Second)
			s.net.Refuse()
			s.net.CloseAll()
			_ = h.Release(bg)
			time.Sleep(5 * time.Second)
			s.net.Heal()
			time.Sleep(time.Minute)
		},
		"MaxHold": func(_ *testing.T, _ *embedded, _ *anteroom.Manager, take func() theHold) {
			h := take()
			time.Sleep(10 * time.Minute)
			_ = h.Release(bg)
			time.Sleep(time.Minute)
		},
		"a call": func(t *testing.T, s *embedded, _ *anteroom.Manager, take func() theHold) {
			h := take()
			got := make(chan theHold, 1)
			go func() { got <- take() }()
			time.Sleep(1300 * time.Millisecond)
			ok(t, h.Release(bg))
			ok(t, (<-got).Release(bg))
			time.Sleep(time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			seen := map[string]string{}
			for kind, lock := range map[string]func(m *anteroom.Manager, cfg anteroom.LockConfig) (theHold, error){
				"Mutex": func(m *anteroom.Manager, cfg anteroom.LockConfig) (theHold, error) {
					return must[*anteroom.Mutex](t)(m.NewMutex(cfg)).Acquire(bg)
				},
				"RWMutex": func(m *anteroom.Manager, cfg anteroom.LockConfig) (theHold, error) {
					return must[*anteroom.RWMutex](t)(m.NewRWMutex(cfg)).Acquire(bg)
				},
				"Semaphore": func(m *anteroom.Manager, cfg anteroom.LockConfig) (theHold, error) {
					return must[*anteroom.Semaphore](t)(m.NewSemaphore(cfg, 3)).Acquire(bg, 3)
				},
			} {
				bubble(t, func(t *testing.T, s *embedded) {
					c := &callCounter{newCounter()}
					cfg := anteroom.LockConfig{Key: "k"}
					if name == "MaxHold" {
						cfg.MaxHold = time.Minute
					}
					m, rec := manager(t, s.client(), anteroom.Config{Observer: hooks(c)})
					other, _ := manager(t, s.client(), anteroom.Config{})
					of := []*anteroom.Manager{m}
					if name == "a call" { // the first take is the other's
						of = []*anteroom.Manager{other, m}
					}
					pass(m.Mutex("warm"))   // it listens
					time.Sleep(time.Second) // what comes alone, long after the last one, goes back immediately
					play(t, s, m, func() theHold {
						by := of[0]
						of = of[len(of)-1:]
						return must[theHold](t)(lock(by, cfg))
					})
					// A removal is found by the watchdog or by a renewal, whichever comes first: units are asked about once
					// more, a second after they came. A renewal that finds it is counted as refused.
					seen[kind] = strings.ReplaceAll(rec.all(c.counter), "\n1 renewed/refused", "")
				})
			}
			for kind, is := range seen {
				if is != seen["Mutex"] {
					t.Errorf("of a %s\n%s\nof a Mutex\n%s", kind, is, seen["Mutex"])
				}
			}
		})
	}
}

// A release that comes while another command is about to find the loss returns it, too.
func TestShared_S4_AReleaseBesideACommandFindsTheLoss(t *testing.T) {
	for wait := time.Duration(0); wait < 1200*time.Millisecond; wait += 30 * time.Millisecond {
		bubble(t, func(t *testing.T, s *embedded) {
			m, rec := manager(t, s.client(), anteroom.Config{})
			rw := m.RWMutex("k")
			h := must[theHold](t)(rw.RAcquire(bg))
			time.Sleep(2 * time.Second)
			s.net.Delay(50 * time.Millisecond) // who reads asks once a second whether another client waits
			s.Del("k")
			time.Sleep(wait)
			if err := h.Release(bg); !errors.Is(err, anteroom.ErrLost) {
				t.Errorf("Release %v after the removal: %v", wait, err)
			}
			time.Sleep(time.Second)
			if n := len(rec.of(observe.EventLost)); n != 1 {
				t.Errorf("Release %v after the removal: %d losses reported", wait, n)
			}
		})
	}
}

// A writer by Lock that exceeds MaxHold loses the lock to other processes. Here nobody comes in before it has left.
func TestShared_MaxHoldOfAWriterByLock(t *testing.T) {
	for _, r := range []anteroom.Recovery{anteroom.RecoverDefault, anteroom.RecoverRelease} {
		bubble(t, func(t *testing.T, s *embedded) {
			a, _ := manager(t, s.client(), anteroom.Config{})
			b, _ := manager(t, s.client(), anteroom.Config{})
			cfg := anteroom.LockConfig{Key: "k", MaxHold: 20 * time.Second, Recovery: r}
			rw, other := must[*anteroom.RWMutex](t)(a.NewRWMutex(cfg)), must[*anteroom.RWMutex](t)(b.NewRWMutex(cfg))
			rw.Lock()
			h := must[theHold](t)(other.Acquire(bg, anteroom.Wait(2*time.Minute)))
			if rw.TryLock() || rw.TryRLock() {
				t.Error("somebody came in")
			}
			ok(t, h.Release(bg))
			rw.Unlock()
			if !rw.TryLockFor(time.Minute) {
				t.Error("nobody comes in afterwards")
			} else {
				rw.Unlock()
			}
		})
	}
}

// RUnlock and Release of what was lost are reported, as Unlock is.
func TestShared_LeavingALostLockIsReported(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, rec := manager(t, s.client(), anteroom.Config{})
		rw, sem := m.RWMutex("rw"), m.Semaphore("sem", 3).Weighted()
		rw.RLock()
		ok(t, sem.Acquire(bg, 2))
		time.Sleep(time.Second)
		s.FlushAll()
		time.Sleep(7 * time.Second)
		rw.RUnlock()
		sem.Release(2)
		time.Sleep(time.Second)
		if evs := rec.of(observe.EventUnlockLost); len(evs) != 2 || evs[0].Reason != observe.LostGone || evs[0].Since.IsZero() || evs[1].Key != "sem" {
			t.Errorf("events %+v", evs)
		}
		pass(rw.RLocker())
		ok(t, sem.Acquire(bg, 2))
		sem.Release(2)
		time.Sleep(time.Second)
		if n := len(rec.of(observe.EventUnlockLost)); n != 2 {
			t.Errorf("%d events after the next ones", n)
		}
	})
}

// What the watchdog has found is in the Snapshot and in the event of the loss; the oldest hold is counted, and named by Close.
func TestShared_IsShownAsAMutex(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, rec := manager(t, s.client(), anteroom.Config{RecordCallSites: true})
		rw := must[*anteroom.RWMutex](t)(m.NewRWMutex(anteroom.LockConfig{Key: "k", MaxHold: 10 * time.Second, Recovery: anteroom.RecoverNotify}))
		h := must[theHold](t)(rw.Acquire(bg))
		healthy := must[theHold](t)(m.Semaphore("healthy", 2).Acquire(bg, 1))
		time.Sleep(20 * time.Second)
		if c := m.Counts()["default"]; c.OldestHold < 19*time.Second {
			t.Errorf("counts %+v", c)
		}
		survey := m.Survey(observe.SurveyOptions{}).States
		if len(survey) != 2 || survey[0].Key != "k" || len(survey[0].Verdicts) == 0 {
			t.Errorf("%+v", survey)
		}
		s.Del("k")
		<-h.Context().Done()
		time.Sleep(time.Second)
		if evs := rec.of(observe.EventLost); len(evs) != 1 || evs[0].Owners != 1 || !strings.HasPrefix(evs[0].Found, "holder:over_max_hold") || evs[0].CallSite == "" {
			t.Errorf("events %+v, found %q", evs, evs[0].Found)
		}
		_ = m.CloseWithin(10 * time.Second)
		if evs := rec.of(observe.EventClosing); len(evs) != 1 || evs[0].CallSite == "" {
			t.Errorf("events %+v", evs)
		}
		_ = healthy.Release(bg)
	})
}
