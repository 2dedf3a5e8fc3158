package anteroom_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// operator is the log as an operator reads it, from Info on.
func (j *journal) operator() *slog.Logger { return slog.New(slog.NewTextHandler(j, nil)) }

// longest is how long a record about an outage may be: about 40 characters are its time and its level.
const longest = 250

// wrote fails the test unless the log has exactly one record for each prefix of level and text, in this order.
func (j *journal) wrote(t *testing.T, what string, records ...string) {
	t.Helper()
	lines := j.lines("")
	for i := range max(len(lines), len(records)) {
		if i >= len(lines) || i >= len(records) || !strings.HasPrefix(attrs(lines[i])["level"]+" "+attrs(lines[i])["text"], records[i]) {
			t.Fatalf("%s: %d records of %d characters, want %q:\n%s", what, len(lines), len(strings.Join(lines, "")), records, strings.Join(lines, "\n"))
		}
	}
	t.Logf("%s: %d records, %d characters\n%s", what, len(lines), len(strings.Join(lines, "")), strings.Join(lines, "\n"))
}

// A Manager that works says nothing, whatever its client costs.
func TestQuiet_AManagerThatWorks(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		j := &journal{}
		m, _ := manager(t, s.client(), anteroom.Config{Logger: j.operator()})
		ok(t, acquire(t, m.Mutex("k")).Release(bg))
		time.Sleep(time.Minute)
		ok(t, m.Close(bg))
		j.wrote(t, "a manager that works")
	})
}

// An outage is one record when it begins and one when it ends, whichever call finds it and however it shows.
func TestQuiet_AnOutageIsOneRecord_Lab(t *testing.T) {
	for name, use := range map[string]func(t *testing.T, m *anteroom.Manager){
		"nobody":              func(*testing.T, *anteroom.Manager) {},
		"a holder":            func(t *testing.T, m *anteroom.Manager) { held(t, m.Mutex("k")) },
		"a hundred holders":   hundredHolders,
		"a waiter":            func(_ *testing.T, m *anteroom.Manager) { go pass(m.Mutex("k")) },
		"a holder and waiter": func(t *testing.T, m *anteroom.Manager) { held(t, m.Mutex("a")); go pass(m.Mutex("b")) },
		"a holder that renews often": func(t *testing.T, m *anteroom.Manager) {
			held(t, mutex(t, m, anteroom.LockConfig{Key: "k", RenewalTime: time.Second}))
		},
	} {
		for _, refused := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, refused %v", name, refused), func(t *testing.T) {
				bubble(t, func(t *testing.T, s *embedded) {
					j := &journal{}
					m, _ := manager(t, s.client(), anteroom.Config{Logger: j.operator()})
					if name != "a waiter" {
						use(t, m)
					}
					time.Sleep(aWhile)
					if refused {
						s.net.Refuse()
						s.net.CloseAll()
					} else {
						s.net.BlackHole()
					}
					if name == "a waiter" {
						use(t, m)
					}
					time.Sleep(15 * time.Second) // no lock is lost
					s.net.Heal()
					time.Sleep(3 * time.Minute)
					synctest.Wait()
					j.wrote(t, name, "WARN check that Redis can be reached", "INFO Redis answers again")
					for _, line := range j.lines("") {
						if len(line) > longest {
							t.Errorf("%d characters: %s", len(line), line)
						}
					}
				})
			})
		}
	}
}

func hundredHolders(t *testing.T, m *anteroom.Manager) {
	for i := range 100 {
		held(t, m.Mutex("k"+string(rune('a'+i%26))+string(rune('a'+i/26))))
	}
}

// A removed key is one record, however its loss is found, and although the watchdog and Unlock notice it as well.
func TestQuiet_ARemovedKeyIsOneRecord(t *testing.T) {
	for _, locks := range []anteroom.LockConfig{{}, {RenewalTime: 14 * time.Second}, {WatchdogPeriod: time.Second, AlertThreshold: 1}} {
		for _, byLock := range []bool{false, true} {
			bubble(t, func(t *testing.T, s *embedded) {
				j := &journal{}
				m, rec := manager(t, s.client(), anteroom.Config{Logger: j.operator()})
				locks.Key = "k"
				mu := mutex(t, m, locks)
				if byLock {
					mu.Lock()
				} else {
					held(t, mu)
				}
				time.Sleep(aWhile + 3*time.Second)
				s.Del("k")
				time.Sleep(30 * time.Second)
				if byLock {
					mu.Unlock()
				}
				time.Sleep(30 * time.Second)
				j.wrote(t, "a removed key", "ERROR Redis no longer has it")
				if n := len(rec.of(observe.EventLost)); n != 1 {
					t.Errorf("%d events", n)
				}
			})
		}
	}
}

// A fixed lease that ends does so as agreed: that is no error, nothing failed, and no alert need know.
func TestQuiet_AFixedLeaseEndsAsAgreed(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		j := &journal{}
		m, rec := manager(t, s.client(), anteroom.Config{Logger: j.operator()})
		h := held(t, m.Mutex("k"), anteroom.Lease(5*time.Second))
		time.Sleep(aWhile)
		j.wrote(t, "a fixed lease", "INFO its fixed lease ended")
		line, err := j.lines("")[0], h.Release(bg)
		for _, word := range []string{"failures", "confirmed", "reached", "found"} {
			if strings.Contains(line, word) || strings.Contains(err.Error(), word) {
				t.Errorf("it says %q:\n%s\n%v", word, line, err)
			}
		}
		if want := `anteroom: release "k": lock lost: its fixed lease ended`; err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		if lost := rec.of(observe.EventLost); len(lost) != 1 || lost[0].Reason != observe.LostFixed {
			t.Errorf("%v", lost)
		}
	})
}

// A subscription that is cut and comes back is no business of an operator: locks work, and waiters ask.
func TestQuiet_ASubscriptionThatIsCut(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		j := &journal{}
		m, rec := manager(t, s.client(), anteroom.Config{Logger: j.operator()})
		ok(t, acquire(t, m.Mutex("k")).Release(bg))
		s.net.CloseAll()
		time.Sleep(time.Minute)
		j.wrote(t, "a subscription that is cut")
		if len(rec.of(observe.EventSubscriptionDown)) != 1 || len(rec.of(observe.EventSubscriptionUp)) != 2 {
			t.Errorf("%+v", rec.events)
		}
	})
}
