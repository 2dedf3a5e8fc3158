package anteroom

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/watchdog"
)

// scene is queues without Redis and without goroutines behind the waiters, and a lookout
// that looks when the test says so.
type scene struct {
	t       testing.TB
	m       *Manager
	l       *lookout
	raised  *[]Event
	scans   int
	grants  uint64
	waiters map[uint64]*queue.Waiter
}

func newScene(t testing.TB, cfg Config) *scene {
	var mu sync.Mutex
	var raised []Event
	cfg.LongWait = -1
	cfg.OnEvent = func(e Event) { mu.Lock(); raised = append(raised, e); mu.Unlock() }
	m, _ := insideServer(t, cfg)
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	s := &scene{t: t, m: m, raised: &raised, waiters: map[uint64]*queue.Waiter{}}
	m.cfg.LongWait = 30 * time.Second
	s.l = newLookout(m)
	s.l.scan = func(asked []int64) scanning {
		s.scans++
		g := scanning{Complete: true, States: map[int64]watchdog.Goroutine{}}
		for _, id := range asked {
			g.States[id] = watchdog.Goroutine{State: "select", Frame: "main.f (/f.go:1)", Caller: fmt.Sprintf("/f.go:%d", id)}
		}
		return g
	}
	return s
}

// key makes goroutine owner the owner of key, and others wait for it.
func (s *scene) key(key string, owner uint64, kind queue.Kind, others ...uint64) *entry {
	e, err := s.m.use(key, s.m.defaults)
	if err != nil {
		s.t.Fatal(err)
	}
	s.grants++
	w := &queue.Waiter{Owner: owner, Kind: kind}
	e.q.Enter(w)
	e.q.Granted(s.grants)
	if _, err := e.q.Wait(context.Background(), w); err != nil {
		s.t.Fatal(err)
	}
	s.wait(e, kind, others...)
	return e
}

func (s *scene) wait(e *entry, kind queue.Kind, others ...uint64) {
	for _, id := range others {
		w := &queue.Waiter{Owner: id, Kind: kind, Note: &e.terms}
		e.q.Enter(w)
		s.waiters[id] = w
	}
}

// leave ends the wait of a goroutine.
func (s *scene) leave(e *entry, id uint64) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := e.q.Wait(ctx, s.waiters[id]); err == nil {
		s.t.Fatalf("goroutine %d came in", id)
	}
}

// events ends the Manager's events and returns those of a kind.
func (s *scene) events(kind EventKind) (list []Event) {
	s.m.events.stop()
	for _, e := range *s.raised {
		if e.Kind == kind {
			list = append(list, e)
		}
	}
	return list
}

// Goroutines are looked at once in 30 s for long waits, and for deadlocks beside that.
func TestLookout_ScansRarely(t *testing.T) {
	s := newScene(t, Config{})
	now := time.Now()
	s.key("a", 1, queue.Deaf, 2, 3)
	s.l.look(now)
	s.l.look(now.Add(31 * time.Second))
	s.key("b", 4, queue.Deaf, 5)
	s.l.look(now.Add(45 * time.Second))
	if s.scans != 1 {
		t.Errorf("%d scans", s.scans)
	}
	s.key("c", 6, queue.Deaf, 7)
	e := s.key("d", 7, queue.Deaf, 6)
	s.l.look(now.Add(46 * time.Second))
	s.l.look(now.Add(47 * time.Second)) // the deadlock is one since the look before
	if s.scans != 2 {
		t.Errorf("%d scans after a deadlock", s.scans)
	}
	s.wait(e, queue.Deaf, 8)
	s.l.look(now.Add(100 * time.Second))
	waits, deadlocks := s.events(EventLongWait), s.events(EventDeadlock)
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
	s.l.scan = func([]int64) scanning { return scanning{Reason: "100000 goroutines are too many to look at"} }
	now := time.Now()
	s.key("a", 1, queue.Deaf, 2)
	s.key("b", 2, queue.Deaf, 1)
	s.l.look(now)
	s.l.look(now.Add(31 * time.Second))
	for _, ev := range append(s.events(EventLongWait), s.events(EventDeadlock)...) {
		if !strings.Contains(ev.Text, "too many to look at; Config.RecordCallSites") {
			t.Errorf("%s: %q", ev.Kind, ev.Text)
		}
	}
	if len(*s.raised) != 3 {
		t.Errorf("%d events", len(*s.raised))
	}
}

// The text of a deadlock names its keys only as the log may.
func TestLookout_ATextNamesKeysWithLogKeysOnly(t *testing.T) {
	for _, logKeys := range []bool{false, true} {
		s := newScene(t, Config{LogKeys: logKeys})
		s.key("customer:anna", 1, queue.Deaf, 2)
		s.key("customer:bert", 2, queue.Deaf, 1)
		s.l.look(time.Now())
		s.l.look(time.Now())
		evs := s.events(EventDeadlock)
		if len(evs) != 1 {
			t.Fatalf("%+v", evs)
		}
		for _, key := range []string{"customer:anna", "customer:bert"} {
			if text := s.m.events.text(&evs[0]); strings.Contains(text, key) != logKeys || strings.Contains(text, keyHash(key)) == logKeys {
				t.Errorf("LogKeys %v: %q", logKeys, text)
			}
			if strings.Contains(evs[0].Text, key) {
				t.Errorf("LogKeys %v: the event's text is %q", logKeys, evs[0].Text)
			}
		}
	}
}

// The longest queue is not walked where nothing says that a cycle may go through it, and
// is where something does.
func TestLookout_SparesTheLongestQueue(t *testing.T) {
	s := newScene(t, Config{})
	var many []uint64
	for id := range uint64(1000) {
		many = append(many, 1000+id)
	}
	long := s.key("long", 1, queue.Deaf, many...)
	s.key("short", 2, queue.Deaf, 3)
	s.key("other", 4, queue.Deaf, 5, 6)
	s.l.look(time.Now())
	stuckKeys := func() map[uint64]*stuckKey {
		s.l.stuck = nil
		for _, e := range s.m.entries {
			if f, waited := e.q.Front(); waited {
				s.l.stuck = append(s.l.stuck, stuckKey{e, f})
			}
		}
		return s.l.waitsOfOwners()
	}
	s.wait(long, queue.Deaf, 2) // the owner of short waits there
	if waits := stuckKeys(); len(waits) != 0 {
		t.Errorf("the longest queue was walked: %v", waits)
	}
	s.leave(long, 2)
	s.wait(s.m.entries["short"], queue.Deaf, 1)
	if waits := stuckKeys(); len(waits) != 1 {
		t.Errorf("%d owners wait, want 1", len(waits))
	}
	s.wait(long, queue.Deaf, 2)
	if waits := stuckKeys(); len(waits) != 2 {
		t.Errorf("%d owners wait, want both", len(waits))
	}
	s.wait(s.m.entries["other"], queue.Refusable, 4)
	if waits := stuckKeys(); len(waits) != 3 {
		t.Errorf("%d owners wait, want the one that waits for itself too", len(waits))
	}
}

// Many deadlocks at once are ten events and one for the rest.
func TestLookout_ABurstOfDeadlocks(t *testing.T) {
	s := newScene(t, Config{})
	for i := range uint64(15) {
		a, b := 2*i+1, 2*i+2
		s.key(fmt.Sprintf("a:%d", i), a, queue.Deaf, b)
		s.key(fmt.Sprintf("b:%d", i), b, queue.Deaf, a)
	}
	for range 3 {
		s.l.look(time.Now())
	}
	evs := s.events(EventDeadlock)
	if len(evs) != 11 || evs[10].Key != "" || evs[10].Text != "5 further deadlocks" {
		t.Errorf("%d events, the last: %+v", len(evs), evs[len(evs)-1])
	}
}

// A cycle of many goroutines is told with all its links; its text names the first.
func TestLookout_ALongCycle(t *testing.T) {
	s := newScene(t, Config{})
	const n = 500
	for i := range uint64(n) {
		s.key(fmt.Sprintf("key:%03d", i), i+1, queue.Deaf, (i+n-1)%n+1)
	}
	s.l.look(time.Now())
	s.l.look(time.Now())
	evs := s.events(EventDeadlock)
	if len(evs) != 1 || len(evs[0].Waits) != n || evs[0].Key != "key:000" || len(evs[0].Text) > 2000 || !strings.Contains(evs[0].Text, "and 492 more") {
		t.Errorf("%d events: %+v", len(evs), evs)
	}
}

// Nothing is kept of keys that nobody waits for any more.
func TestLookout_KeepsNothing(t *testing.T) {
	s := newScene(t, Config{})
	a := s.key("a", 1, queue.Deaf, 2)
	b := s.key("b", 2, queue.Deaf, 1)
	s.l.look(time.Now())
	s.l.look(time.Now())
	if len(s.l.seen) != 2 || len(s.l.told) != 2 {
		t.Errorf("%d keys seen, %d told", len(s.l.seen), len(s.l.told))
	}
	s.leave(a, 2)
	s.leave(b, 1)
	for _, e := range []*entry{a, b} {
		if _, o := e.q.Exit(e.q.Current().Number, false); o != queue.SendRelease {
			t.Fatal(o)
		}
		e.q.Released()
		e.unref()
	}
	s.l.look(time.Now())
	for _, e := range s.l.entries[:cap(s.l.entries)] {
		if e != nil {
			t.Error("an entry is kept alive")
		}
	}
	if len(s.l.seen) != 0 || len(s.l.told) != 0 || len(s.l.stuck) != 0 || len(s.l.overdue) != 0 {
		t.Errorf("%d seen, %d told, %d stuck, %d overdue", len(s.l.seen), len(s.l.told), len(s.l.stuck), len(s.l.overdue))
	}
}

// Looking ends with stop, whenever that comes and however often, and no look comes after.
func TestLookout_Stops(t *testing.T) {
	s := newScene(t, Config{})
	s.key("a", 1, queue.Deaf, 2)
	for i := range 300 {
		l := newLookout(s.m)
		l.every = time.Duration(i%7) * 10 * time.Microsecond
		l.start()
		if i%3 == 0 {
			time.Sleep(time.Duration(i) * time.Microsecond)
		}
		var both sync.WaitGroup
		both.Go(l.stop)
		both.Go(l.stop)
		both.Wait()
		looks := l.looks
		time.Sleep(50 * time.Microsecond)
		if l.looks != looks {
			t.Fatal("a look after stop")
		}
		l.start() // does nothing
	}
	off := newLookout(s.m)
	off.limit = -1
	off.start()
	if off.timer != nil {
		t.Error("a lookout that is switched off looks")
	}
	off.stop()
}
