package anteroom_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
	"github.com/anteroom/anteroom/sync/observe"
)

// slowWatch asks Redis so rarely that a test is over before: what is noticed came as a message.
var slowWatch = anteroom.LockConfig{LeaseTime: 20 * pace.Hang, WatchdogPeriod: 3 * pace.Hang}

// tracked waits until Redis has noted n keys.
func tracked(t *testing.T, rdb *redis.Client, n string) {
	t.Helper()
	eventually(t, n+" tracked keys", func() bool {
		return strings.Contains(rdb.Info(bg, "stats").Val(), "tracking_total_keys:"+n+"\r\n")
	})
}

// whole waits until the first renewal of a hold of slowWatch, which has a brief lease until then, has made its lease whole. It would
// do so to a lease that a test has shortened, too.
func whole(t *testing.T, rdb *redis.Client, key string) {
	t.Helper()
	eventually(t, "a whole lease", func() bool { return rdb.PTTL(bg, key).Val() > 19*pace.Hang })
}

// lostSoon waits until h is lost, and returns how long that took.
func lostSoon(t *testing.T, what string, h *anteroom.Hold) {
	t.Helper()
	began := time.Now()
	select {
	case <-h.Context().Done():
		t.Logf("%s: notified after %v", what, time.Since(began))
	case <-time.After(patience):
		t.Fatalf("%s: not notified", what)
	}
	if err := h.Err(); !errors.Is(err, anteroom.ErrLost) {
		t.Errorf("%s: %v", what, err)
	}
	_ = h.Release(bg)
}

// TestTrack_T1_EveryKindOfHold: a removal ends each kind of hold, by an answer of the script that counts, and a foreign
// change ends none.
func TestTrack_T1_EveryKindOfHold(t *testing.T) {
	t.Parallel()
	for what, take := range map[string]func(m *anteroom.Manager) (*anteroom.Hold, error){
		"mutex": func(m *anteroom.Manager) (*anteroom.Hold, error) { return m.Mutex("k").Acquire(bg) },
		"fixed lease": func(m *anteroom.Manager) (*anteroom.Hold, error) {
			return m.Mutex("k").Acquire(bg, anteroom.Lease(2*pace.Hang))
		},
		"writer":    func(m *anteroom.Manager) (*anteroom.Hold, error) { return m.RWMutex("k").Acquire(bg) },
		"reader":    func(m *anteroom.Manager) (*anteroom.Hold, error) { return m.RWMutex("k").RAcquire(bg) },
		"semaphore": func(m *anteroom.Manager) (*anteroom.Hold, error) { return m.Semaphore("k", 3).Acquire(bg, 2) },
	} {
		t.Run(what, func(t *testing.T) {
			s := testredis.Start(t)
			rdb := s.Client(t)
			m, events := manager(t, s.Client(t), anteroom.Config{Defaults: slowWatch})
			h := must[*anteroom.Hold](t)(take(m))
			tracked(t, rdb, "1")
			ok(t, rdb.Persist(bg, "k").Err())
			ok(t, rdb.PExpire(bg, "k", time.Hour).Err())
			select {
			case <-h.Context().Done():
				t.Fatalf("a foreign change has ended it: %v", h.Err())
			case <-time.After(pace.Scale(200 * time.Millisecond)): // the first renewal is over
			}
			if what == "reader" { // its own field, as beside others
				ok(t, rdb.HDel(bg, "k", m.ClientID()).Err())
			} else {
				ok(t, rdb.Del(bg, "k").Err())
			}
			lostSoon(t, "removed", h)
			eventually(t, "a report", func() bool { return len(events.of(observe.EventLost)) == 1 })
			if text := events.of(observe.EventLost)[0].Text; !strings.HasSuffix(text, "found by what Redis said of the key") {
				t.Error(text)
			}
		})
	}
}

// TestTrack_T1_AHintEndsNothing: the connection is to a server that has never heard of the lock.
func TestTrack_T1_AHintEndsNothing(t *testing.T) {
	t.Parallel()
	s, wrong := testredis.Start(t), testredis.Start(t)
	var mu sync.Mutex
	mislead := 0
	rdb := s.Client(t, func(o *redis.Options) {
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			mu.Lock()
			defer mu.Unlock()
			if mislead > 0 {
				mislead--
				addr = wrong.Addr()
			}
			var d net.Dialer
			return d.DialContext(ctx, network, addr)
		}
	})
	m, events := manager(t, rdb, anteroom.Config{Defaults: slowWatch, CommandTimeout: min(time.Minute, pace.Scale(5*time.Second))})
	ok(t, acquire(t, m.Mutex("warm")).Release(bg))
	var conns []*redis.Conn // all that commands need, so that the next one is the tracker's
	for range 10 {
		c := rdb.Conn()
		ok(t, c.Ping(bg).Err())
		conns = append(conns, c)
	}
	for _, c := range conns {
		ok(t, c.Close())
	}
	mu.Lock()
	mislead = 1
	mu.Unlock()
	rw := must[*anteroom.Hold](t)(m.RWMutex("rw").RAcquire(bg))
	h := acquire(t, m.Mutex("k"))
	eventually(t, "a read at the wrong server", func() bool { return wrong.Stats(t)["hexists"] > 0 })
	tracked(t, s.Client(t), "2") // the question has contradicted the hint
	ok(t, h.Err())
	ok(t, rw.Err())
	ok(t, rw.Release(bg))
	ok(t, h.Release(bg))
	if lost := events.of(observe.EventLost); len(lost) > 0 {
		t.Errorf("%v", lost)
	}
}

// TestTrack_T5_ShortTurnsPayNothing: not even a connection, and what was tracked is asked about no more once it is released.
func TestTrack_T5_ShortTurnsPayNothing(t *testing.T) {
	s := testredis.Start(t)
	m, _ := manager(t, s.Client(t), anteroom.Config{Defaults: slowWatch})
	late := 0
	for range 200 {
		began := time.Now()
		pass(m.Mutex("k"))
		pass(m.RWMutex("rw"))
		if time.Since(began) > 10*time.Millisecond {
			late++ // on a machine that is busy
		}
	}
	if n := s.Stats(t)["client|tracking"]; n > 0 && late == 0 {
		t.Errorf("%d connections that track", n)
	}
	h := acquire(t, m.Mutex("long"))
	tracked(t, s.Client(t), "1")
	before := s.Stats(t)
	ok(t, h.Release(bg))
	time.Sleep(50 * time.Millisecond)
	after := s.Stats(t)
	if after["hexists"] > before["hexists"]+1 { // the release script has one
		t.Errorf("%d reads after a release", after["hexists"]-before["hexists"])
	}
}

// TestTrack_T6_AServerThatIsBack: the holder knows immediately whether it still holds.
func TestTrack_T6_AServerThatIsBack(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	m, _ := manager(t, s.Client(t), anteroom.Config{Defaults: slowWatch})
	h, r := acquire(t, m.Mutex("k")), must[*anteroom.Hold](t)(m.RWMutex("rw").RAcquire(bg))
	tracked(t, s.Client(t), "2")
	s.Restart() // and has lost all
	lostSoon(t, "mutex", h)
	lostSoon(t, "reader", r)
}

// TestTrack_T8_AShortenedLease: who shortens the time to live removes the lock when that is over. The holder is notified when
// Redis deletes it, which it does at the latest when another process asks.
func TestTrack_T8_AShortenedLease(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	rdb := s.Client(t)
	m, _ := manager(t, s.Client(t), anteroom.Config{Defaults: slowWatch})
	other, _ := manager(t, s.Client(t), anteroom.Config{Defaults: slowWatch})
	h := acquire(t, m.Mutex("k"))
	tracked(t, rdb, "1")
	whole(t, rdb, "k")
	ok(t, rdb.PExpire(bg, "k", time.Millisecond).Err())
	lostSoon(t, "nobody asks", h)

	ok(t, rdb.Do(bg, "config", "set", "hz", "1").Err()) // Redis looks for expired keys itself once a second
	h = acquire(t, m.Mutex("k2"))
	tracked(t, rdb, "1")
	whole(t, rdb, "k2")
	ok(t, rdb.PExpire(bg, "k2", time.Millisecond).Err())
	time.Sleep(2 * time.Millisecond)
	next := acquire(t, other.Mutex("k2"))
	lostSoon(t, "another has it", h)
	ok(t, next.Release(bg))
}

// TestTrack_T8_RefusedTheBoundHolds: without CLIENT TRACKING the watchdog finds a removal, in W + C.
func TestTrack_T8_RefusedTheBoundHolds(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	rdb := s.Client(t)
	ok(t, rdb.Do(bg, "acl", "setuser", "u", "on", ">p", "~*", "&*", "+@all", "-client").Err())
	m, events := manager(t, s.Client(t, func(o *redis.Options) { o.Username, o.Password = "u", "p" }), anteroom.Config{
		Defaults: anteroom.LockConfig{LeaseTime: 20 * pace.Hang, WatchdogPeriod: 200 * time.Millisecond},
	})
	h := acquire(t, m.Mutex("k"))
	eventually(t, "warning", func() bool { return len(events.of(observe.EventWarning)) == 1 })
	ok(t, rdb.Del(bg, "k").Err())
	lostSoon(t, "by the watchdog", h)
	eventually(t, "a report", func() bool { return len(events.of(observe.EventLost)) == 1 })
	if text := events.of(observe.EventLost)[0].Text; strings.Contains(text, "Redis said") {
		t.Error(text)
	}
}

// TestTrack_T9_QuestionsStay: a tracked hold is asked about as before.
func TestTrack_T9_QuestionsStay(t *testing.T) {
	t.Parallel()
	s := testredis.Start(t)
	counts := newCounter()
	m, _ := manager(t, s.Client(t), anteroom.Config{Observer: hooks(counts), Defaults: anteroom.LockConfig{
		LeaseTime: time.Minute, WatchdogPeriod: 50 * time.Millisecond,
	}})
	h := acquire(t, m.Mutex("k"))
	tracked(t, s.Client(t), "1")
	from := counts.get("command/status")
	eventually(t, "questions", func() bool { return counts.get("command/status") > from+3 })
	ok(t, h.Release(bg))
}
