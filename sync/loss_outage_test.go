package anteroom_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/internal/faultnet"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// counted says how many events of a kind there were.
func (r *recorder) counted(kinds ...observe.EventKind) string {
	var parts []string
	for _, k := range kinds {
		parts = append(parts, fmt.Sprintf("%d %s", len(r.of(k)), k))
	}
	return strings.Join(parts, ", ")
}

// An outage is one of the server, whichever call finds it, on however many keys.
func TestOutage_IsReportedOnce(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, rec := manager(t, s.client(), anteroom.Config{})
		ok(t, acquire(t, m.Mutex("k")).Release(bg))
		s.net.Refuse()
		s.net.CloseAll()
		var wg sync.WaitGroup
		for i := range 300 {
			wg.Go(func() { _, _ = m.Mutex("k" + strconv.Itoa(i%30)).TryAcquire(bg) })
			if i%30 == 0 {
				wg.Wait()
			}
		}
		wg.Wait()
		s.net.Heal()
		time.Sleep(time.Minute)
		if h, err := m.Mutex("other").TryAcquire(bg); err == nil {
			ok(t, h.Release(bg))
		}
		time.Sleep(10 * time.Second)
		if got := rec.counted(observe.EventUnavailable, observe.EventAvailable); got != "1 unavailable, 1 available" {
			t.Errorf("%s", got)
		}
	})
}

// A server that answers now and then is in one outage, not in hundreds, and it is over when
// nothing fails any more.
func TestOutage_ThatComesAndGoesIsOne(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, rec := manager(t, s.client(), anteroom.Config{})
		for range 100 {
			s.net.Refuse()
			s.net.CloseAll()
			_, _ = m.Mutex("a").TryAcquire(bg)
			s.net.Heal()
			time.Sleep(100 * time.Millisecond)
			if h, err := m.Mutex("b").TryAcquire(bg); err == nil {
				ok(t, h.Release(bg))
			}
		}
		if got := rec.counted(observe.EventUnavailable, observe.EventAvailable); got != "1 unavailable, 0 available" {
			t.Errorf("while it comes and goes: %s", got)
		}
		time.Sleep(10 * time.Second)
		if got := rec.counted(observe.EventUnavailable, observe.EventAvailable); got != "1 unavailable, 1 available" {
			t.Errorf("in the end: %s", got)
		}
	})
}

// Lock has no way to return an error. What a person must change it says immediately, as an
// error in the log, with the remedy, and it continues waiting.
func TestOutage_LockSaysWhatAPersonMustChange(t *testing.T) {
	for what, c := range map[string]struct {
		upset, settle func(s *embedded)
		remedy        string
		keys          int // 1: of the key, 0: of the server
	}{
		"wrong password": {
			func(s *embedded) { s.RequireAuth("secret") }, func(s *embedded) { s.RequireAuth("") }, "user name and password", 0,
		},
		"wrong type": {func(s *embedded) { _ = s.Set("k", "data") }, func(s *embedded) { s.Del("k") }, "use another name", 1},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded) {
				j := &journal{}
				m, rec := manager(t, s.client(), anteroom.Config{Logger: j.logger()})
				c.upset(s)
				in := make(chan struct{})
				go func() { pass(m.Mutex("k")); close(in) }()
				synctest.Wait()
				ev, lines := rec.of(observe.EventMisconfigured), j.lines(observe.EventMisconfigured)
				if len(ev) != 1 || len(lines) != 1 || !strings.Contains(ev[0].Text, c.remedy) || !strings.Contains(lines[0], "level=ERROR") {
					t.Fatalf("%+v\n%v", ev, lines)
				}
				if n := strings.Count(ev[0].Key, "k"); n != c.keys {
					t.Errorf("its key is %q", ev[0].Key)
				}
				time.Sleep(time.Minute)
				c.settle(s)
				<-in
				time.Sleep(10 * time.Second)
				if got := rec.counted(observe.EventMisconfigured, observe.EventAvailable, observe.EventUnavailable); got != "1 misconfigured, 1 available, 0 unavailable" {
					t.Errorf("in the end: %s", got)
				}
			})
		})
	}
}

// Keys of another type are no outage of the server, and however many they are and however
// often they are tried, the events are few.
func TestOutage_OfKeysIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, rec := manager(t, s.client(), anteroom.Config{})
		for i := range 300 {
			key := "data" + strconv.Itoa(i%100)
			ok(t, s.Set(key, "data"))
			if m.Mutex(key).TryLock() {
				t.Fatal("locked")
			}
			ok(t, acquire(t, m.Mutex("k")).Release(bg)) // which has no trouble
		}
		if got := rec.counted(observe.EventMisconfigured, observe.EventAvailable, observe.EventUnavailable); got != "64 misconfigured, 0 available, 0 unavailable" {
			t.Errorf("%s", got)
		}
	})
}

// A node that a failover has replaced is not in trouble for ever.
func TestOutage_OfAServerThatIsReplaced(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, rec := manager(t, s.client(), anteroom.Config{})
		m.MeetTrouble("10.0.0.1:6379")
		m.MeetTrouble("10.0.0.2:6379")
		time.Sleep(30 * time.Second)
		ok(t, acquire(t, m.Mutex("k")).Release(bg)) // at another server
		time.Sleep(10 * time.Second)
		if got := rec.counted(observe.EventUnavailable, observe.EventAvailable); got != "2 unavailable, 0 available" {
			t.Errorf("%s", got)
		}
		time.Sleep(time.Minute)
		ok(t, acquire(t, m.Mutex("k")).Release(bg))
		time.Sleep(10 * time.Second)
		if got := rec.counted(observe.EventUnavailable, observe.EventAvailable); got != "2 unavailable, 2 available" {
			t.Errorf("%s", got)
		}
		for _, e := range rec.of(observe.EventUnavailable) {
			if !strings.Contains(e.Text, "10.0.0.") || e.Key != "" {
				t.Errorf("%+v", e)
			}
		}
	})
}

// One key whose commands hang, beside others that are answered, is one outage, also where
// CommandTimeout is longer than the quiet that ends one.
func TestOutage_WithALongCommandTimeout(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded) {
		m, rec := manager(t, s.client(), anteroom.Config{CommandTimeout: 10 * time.Second, Defaults: anteroom.LockConfig{LeaseTime: time.Minute}})
		ok(t, acquire(t, m.Mutex("warm")).Release(bg))
		s.net.OnRequest("stuck", 100000, faultnet.Late(time.Hour))
		var wg sync.WaitGroup
		wg.Go(func() { m.Mutex("stuck").TryLockFor(2 * time.Minute) })
		for i := range 120 {
			time.Sleep(time.Second)
			if h, err := m.Mutex("k" + strconv.Itoa(i)).TryAcquire(bg); err == nil {
				_ = h.Release(bg)
			}
		}
		wg.Wait()
		time.Sleep(15 * time.Second)
		t.Log(rec.counted(observe.EventUnavailable, observe.EventAvailable))
		if n := len(rec.of(observe.EventUnavailable)); n > 1 {
			t.Errorf("one outage was reported %d times", n)
		}
		s.net.Heal()
		s.net.CloseAll() // what is under way need not wait for its time limit
	})
}
