package anteroom

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/goroutines"
	"github.com/anteroom/anteroom/internal/waits"
	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/sync/internal/lock"
	"github.com/anteroom/anteroom/sync/observe"
)

// scene is queues without Redis and without goroutines behind the waiters, and a lookout
// that checks when the test says so.
type scene struct {
	t       testing.TB
	m       *Manager
	l       *waits.Lookout
	raised  *[]observe.Event
	scans   int
	scan    func(asked []int64) goroutines.Scan
	grants  uint64
	waiters map[uint64]*queue.Waiter
}

func newScene(t testing.TB, cfg Config) *scene {
	var mu sync.Mutex
	var raised []observe.Event
	cfg.LongWait, cfg.Defaults.Reentrant = -1, true
	cfg.OnEvent = func(e observe.Event) { mu.Lock(); raised = append(raised, e); mu.Unlock() }
	m, _ := insideServer(t, cfg)
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	s := &scene{t: t, m: m, raised: &raised, waiters: map[uint64]*queue.Waiter{}}
	m.cfg.LongWait = 30 * time.Second
	s.scan = func(asked []int64) goroutines.Scan {
		s.scans++
		g := goroutines.Scan{Complete: true, States: map[int64]goroutines.Goroutine{}}
		for _, id := range asked {
			g.States[id] = goroutines.Goroutine{State: "select", Frame: "main.f (/f.go:1)", Caller: fmt.Sprintf("/f.go:%d", id)}
		}
		return g
	}
	m.reports.Scan = func(_ time.Time, asked []int64) goroutines.Scan { return s.scan(asked) }
	s.l = waits.New(m.cfg.LongWait, m.waitedFor(), m.reports.FoundWaits)
	return s
}

// key makes goroutine owner the owner of key, and others wait for it.
func (s *scene) key(key string, owner uint64, kind queue.Kind, others ...uint64) *lock.Key {
	e := s.m.locks.Key(key, &s.m.defaults.lock)
	s.grants++
	w := &queue.Waiter{Stay: &queue.Stay{Goroutine: owner, Kind: kind, Need: 1}}
	e.Queue().Acquire(w)
	e.Queue().Granted(s.grants, 1, false, queue.Forever)
	if _, err := e.Queue().Park(context.Background(), w); err != nil {
		s.t.Fatal(err)
	}
	s.wait(e, kind, others...)
	return e
}

func (s *scene) wait(e *lock.Key, kind queue.Kind, others ...uint64) {
	for _, id := range others {
		w := &queue.Waiter{Stay: &queue.Stay{Goroutine: id, Kind: kind, Need: 1}, Note: &lock.Owner{}}
		e.Queue().Acquire(w)
		s.waiters[id] = w
	}
}

// events ends the Manager's events and returns those of a kind.
func (s *scene) events(kind observe.EventKind) (list []observe.Event) {
	s.m.reports.Stop()
	for _, e := range *s.raised {
		if e.Kind == kind {
			list = append(list, e)
		}
	}
	return list
}

// Goroutines are checked once in 30 s for long waits, and for deadlocks beside that.
func TestLookout_ScansRarely(t *testing.T) {
	s := newScene(t, Config{})
	now := time.Now()
	s.key("a", 1, queue.NoNotify, 2, 3)
	s.l.Check(now)
	s.l.Check(now.Add(31 * time.Second))
	s.key("b", 4, queue.NoNotify, 5)
	s.l.Check(now.Add(45 * time.Second))
	if s.scans != 1 {
		t.Errorf("%d scans", s.scans)
	}
	s.key("c", 6, queue.NoNotify, 7)
	e := s.key("d", 7, queue.NoNotify, 6)
	s.l.Check(now.Add(46 * time.Second))
	s.l.Check(now.Add(47 * time.Second)) // the deadlock is one since the check before
	if s.scans != 2 {
		t.Errorf("%d scans after a deadlock", s.scans)
	}
	s.wait(e, queue.NoNotify, 8)
	s.l.Check(now.Add(100 * time.Second))
	waits, deadlocks := s.events(observe.EventLongWait), s.events(observe.EventDeadlock)
	if len(deadlocks) != 1 || deadlocks[0].CallSite != "/f.go:7" {
		t.Errorf("%+v", deadlocks)
	}
	if len(waits) < 2 || waits[0].CallSite != "/f.go:2" || waits[0].Waits[0].OwnerAt != "main.f (/f.go:1)" {
		t.Fatalf("%+v", waits)
	}
	if waits[1].CallSite != "" || !strings.Contains(waits[1].Text, "less than 30s ago") || !strings.Contains(waits[1].Text, "RecordCallSites") {
		t.Errorf("without a scan: %+v", waits[1])
	}
}

// Where there are too many goroutines the event says so.
func TestLookout_SaysWhyACallSiteIsMissing(t *testing.T) {
	s := newScene(t, Config{})
	s.scan = func([]int64) goroutines.Scan {
		return goroutines.Scan{Reason: "100000 goroutines are too many to inspect"}
	}
	now := time.Now()
	s.key("a", 1, queue.NoNotify, 2)
	s.key("b", 2, queue.NoNotify, 1)
	s.l.Check(now)
	s.l.Check(now.Add(31 * time.Second))
	for _, ev := range append(s.events(observe.EventLongWait), s.events(observe.EventDeadlock)...) {
		if !strings.Contains(ev.Text, "too many to inspect; Config.RecordCallSites") {
			t.Errorf("%s: %q", ev.Kind, ev.Text)
		}
	}
	if len(*s.raised) != 3 {
		t.Errorf("%d events", len(*s.raised))
	}
}

var logText = regexp.MustCompile(`text="deadlock of(\\"|[^"])*"`)

// The text of a deadlock names its keys only as the log may.
func TestLookout_ATextNamesKeysWithLogKeysOnly(t *testing.T) {
	for _, logKeys := range []bool{false, true} {
		var out bytes.Buffer // an event is delivered after its record was written
		s := newScene(t, Config{LogKeys: logKeys, Logger: slog.New(slog.NewTextHandler(&out, nil))})
		s.key("customer:anna", 1, queue.NoNotify, 2)
		s.key("customer:bert", 2, queue.NoNotify, 1)
		s.l.Check(time.Now())
		s.l.Check(time.Now())
		evs := s.events(observe.EventDeadlock)
		if len(evs) != 1 {
			t.Fatalf("%+v", evs)
		}
		for _, key := range []string{"customer:anna", "customer:bert"} {
			if text := logText.FindString(out.String()); strings.Contains(text, key) != logKeys || strings.Contains(text, observe.KeyHash(key)) == logKeys {
				t.Errorf("LogKeys %v: %q of %s", logKeys, text, out.String())
			}
			if strings.Contains(evs[0].Text, key) {
				t.Errorf("LogKeys %v: the event's text is %q", logKeys, evs[0].Text)
			}
		}
	}
}

// Many deadlocks together are ten events and one for all others.
func TestLookout_ABurstOfDeadlocks(t *testing.T) {
	s := newScene(t, Config{})
	for i := range uint64(15) {
		a, b := 2*i+1, 2*i+2
		s.key(fmt.Sprintf("a:%d", i), a, queue.NoNotify, b)
		s.key(fmt.Sprintf("b:%d", i), b, queue.NoNotify, a)
	}
	for range 3 {
		s.l.Check(time.Now())
	}
	evs := s.events(observe.EventDeadlock)
	if len(evs) != 11 || evs[10].Key != "" || evs[10].Text != "5 further deadlocks" {
		t.Errorf("%d events, the last: %+v", len(evs), evs[len(evs)-1])
	}
}

// A cycle of many goroutines is reported with all its links; its text names the first.
func TestLookout_ALongCycle(t *testing.T) {
	s := newScene(t, Config{})
	const n = 500
	for i := range uint64(n) {
		s.key(fmt.Sprintf("key:%03d", i), i+1, queue.NoNotify, (i+n-1)%n+1)
	}
	s.l.Check(time.Now())
	s.l.Check(time.Now())
	evs := s.events(observe.EventDeadlock)
	if len(evs) != 1 || len(evs[0].Waits) != n || evs[0].Key != "key:000" || len(evs[0].Text) > 2000 || !strings.Contains(evs[0].Text, "and 492 more") {
		t.Errorf("%d events: %+v", len(evs), evs)
	}
}

// A wait whose first command is under way meets no errors.
func TestLookout_AnAttemptWithoutAnAnswerYetIsNoError(t *testing.T) {
	s := newScene(t, Config{})
	s.wait(s.m.locks.Key("a", &s.m.defaults.lock), queue.NoNotify, 1) // the queue is acquiring
	s.l.Check(time.Now().Add(31 * time.Second))
	evs := s.events(observe.EventLongWait)
	if len(evs) != 1 || evs[0].Err != nil || !strings.Contains(evs[0].Text, "it is just being acquired") {
		t.Errorf("%+v", evs)
	}
}
