package waits

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/anteroom/anteroom/queue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scene is queues without goroutines behind the waiters, and a Lookout that checks when the
// test says so.
type scene struct {
	t       testing.TB
	l       *Lookout
	live    []Key
	reports []Report
	grants  uint64
	waiters map[uint64]*queue.Waiter
}

func newScene(t testing.TB, limit time.Duration) *scene {
	s := &scene{t: t, waiters: map[uint64]*queue.Waiter{}}
	s.l = New(limit, s.each, func(r Report) {
		r.Overdue = slices.Clone(r.Overdue)
		s.reports = append(s.reports, r)
	})
	return s
}

func (s *scene) each(yield func(Key) bool) {
	for _, k := range s.live {
		if !yield(k) {
			return
		}
	}
}

// key makes goroutine owner the owner of a key, and others wait for it.
func (s *scene) key(name string, owner uint64, kind queue.Kind, others ...uint64) *queue.Synchronizer {
	q := s.free(name)
	s.own(q, owner, kind)
	s.wait(q, kind, others...)
	return q
}

func (s *scene) free(name string) *queue.Synchronizer {
	q := new(queue.Synchronizer)
	q.Init(&queue.Policy{All: 1, Fair: true, Returns: true, Zero: time.Now()})
	s.live = append(s.live, Key{Name: name, Queue: q, Limit: s.l.limit, OwnerUnlocks: true})
	return q
}

// own makes goroutine owner the owner of a free key.
func (s *scene) own(q *queue.Synchronizer, owner uint64, kind queue.Kind) *queue.Waiter {
	s.grants++
	w := &queue.Waiter{Stay: &queue.Stay{Goroutine: owner, Kind: kind, Need: 1}}
	q.Acquire(w)
	q.Granted(s.grants, 1, false, queue.Forever)
	if _, err := q.Park(context.Background(), w); err != nil {
		s.t.Fatal(err)
	}
	return w
}

func (s *scene) wait(q *queue.Synchronizer, kind queue.Kind, others ...uint64) {
	for _, id := range others {
		w := &queue.Waiter{Stay: &queue.Stay{Goroutine: id, Kind: kind, Need: 1}}
		q.Acquire(w)
		s.waiters[id] = w
	}
}

// leave ends the wait of a goroutine.
func (s *scene) leave(q *queue.Synchronizer, id uint64) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := q.Park(ctx, s.waiters[id]); err == nil {
		s.t.Fatalf("goroutine %d came in", id)
	}
}

// A long wait is reported once, and a key again when somebody else waits for too long.
func TestLookout_ReportsAWaitOnce(t *testing.T) { synctest.Test(t, testReportsAWaitOnce) }

func testReportsAWaitOnce(t *testing.T) {
	s := newScene(t, 30*time.Second)
	now := time.Now()
	q := s.key("a", 1, queue.NoNotify, 2, 3)
	for _, after := range []time.Duration{29, 31, 40, 90} {
		s.l.Check(now.Add(after * time.Second))
	}
	if len(s.reports) != 1 || len(s.reports[0].Overdue) != 1 || s.reports[0].Overdue[0].Waiter.Goroutine != 2 || s.reports[0].Overdue[0].Waiting != 2 {
		t.Fatalf("%+v", s.reports)
	}
	s.leave(q, 2)
	s.leave(q, 3)
	s.l.Check(now.Add(91 * time.Second))
	s.wait(q, queue.NoNotify, 4)
	s.l.Check(now.Add(130 * time.Second))
	if len(s.reports) != 2 || s.reports[1].Overdue[0].Waiter.Goroutine != 4 {
		t.Errorf("%+v", s.reports)
	}
}

// A cycle is reported at the second check that sees it, and once.
func TestLookout_ReportsACycleOnce(t *testing.T) {
	s := newScene(t, time.Hour)
	s.key("b", 1, queue.NoNotify, 2)
	s.key("a", 2, queue.NoNotify, 1)
	s.key("other", 3, queue.NoNotify, 2, 4)
	for i, want := range []int{0, 1, 1} {
		if s.l.Check(time.Now()); len(s.reports) != want {
			t.Fatalf("%d reports after check %d", len(s.reports), i+1)
		}
	}
	c := s.reports[0].Cycles[0]
	if len(c) != 2 || c[0].Name != "a" || c[0].Waiter.Goroutine != 1 || c[1].Name != "b" || c[1].Waiter.Goroutine != 2 || !c.Certain() {
		t.Errorf("%+v", c)
	}
}

// Who was admitted to a grant that is over, since the process was stopped, and goes back to the head of the queue, does
// not wait for itself.
func TestLookout_AWaiterThatGoesBackDoesNotWaitForItself(t *testing.T) {
	s := newScene(t, time.Hour)
	a := s.free("a")
	w := s.own(a, 1, queue.Refusable)
	s.wait(a, queue.NoNotify, 2)
	s.key("b", 3, queue.NoNotify, 4, 5, 6)
	s.l.Check(time.Now())
	// The next check, in steps: it has seen the tenure when the waiter gives it back.
	s.l.checks++
	for _, k := range s.live {
		s.l.visit(k, time.Now())
	}
	if len(s.l.stuck) != 2 {
		t.Fatalf("%d stuck keys", len(s.l.stuck))
	}
	if exit, _ := a.Release(w.Stay, queue.EndTurn); exit != queue.Final {
		t.Fatal(exit)
	}
	a.Shrink(0)
	w.Again()
	w.First, w.Began = true, 1 // it has waited since before the last check
	if in, _, err := a.Acquire(w); in || err != nil {
		t.Fatal(in, err)
	}
	if cycles := s.l.cycles(time.Now().Add(2 * time.Hour)); len(cycles) != 0 {
		t.Errorf("goroutine %d waits for itself, certain: %v", cycles[0][0].Waiter.Goroutine, cycles[0].Certain())
	}
}

// The longest queue is not walked where nothing says that a cycle may go through it, and
// is where something does.
func TestLookout_SparesTheLongestQueue(t *testing.T) {
	s := newScene(t, time.Hour)
	var many []uint64
	for id := range uint64(1000) {
		many = append(many, 1000+id)
	}
	long := s.key("long", 1, queue.NoNotify, many...)
	short := s.key("short", 2, queue.NoNotify, 3)
	other := s.key("other", 4, queue.NoNotify, 5, 6)
	s.l.Check(time.Now())
	waits := func() map[uint64]*Wait {
		s.l.stuck = nil
		for _, k := range s.live {
			if f := k.Queue.Front(); f.Waiting > 0 {
				s.l.stuck = append(s.l.stuck, Wait{k, f, f.First})
			}
		}
		return s.l.waitsOfOwners()
	}
	s.wait(long, queue.NoNotify, 2) // the owner of short waits there
	if w := waits(); len(w) != 0 {
		t.Errorf("the longest queue was walked: %v", w)
	}
	s.leave(long, 2)
	s.wait(short, queue.NoNotify, 1)
	if w := waits(); len(w) != 1 {
		t.Errorf("%d owners wait, want 1", len(w))
	}
	s.wait(long, queue.NoNotify, 2)
	if w := waits(); len(w) != 2 {
		t.Errorf("%d owners wait, want both", len(w))
	}
	s.wait(other, queue.Refusable, 4)
	if w := waits(); len(w) != 3 {
		t.Errorf("%d owners wait, want the one that waits for itself too", len(w))
	}
}

// Nothing is kept of keys that nobody waits for any more.
func TestLookout_KeepsNothing(t *testing.T) {
	s := newScene(t, time.Hour)
	a := s.key("a", 1, queue.NoNotify, 2)
	b := s.key("b", 2, queue.NoNotify, 1)
	s.l.Check(time.Now())
	s.l.Check(time.Now())
	if len(s.l.seen) != 2 || len(s.l.reported) != 2 {
		t.Errorf("%d keys seen, %d reported", len(s.l.seen), len(s.l.reported))
	}
	s.leave(a, 2)
	s.leave(b, 1)
	for _, q := range []*queue.Synchronizer{a, b} {
		if _, o := q.Release(q.Owner(), queue.EndTurn); o != queue.GiveBack {
			t.Fatal(o)
		}
		q.Shrink(0)
	}
	s.live = nil
	s.l.Check(time.Now())
	for _, w := range s.l.stuck[:cap(s.l.stuck)] {
		if w.Queue != nil {
			t.Error("a key is kept alive")
		}
	}
	if len(s.l.seen) != 0 || len(s.l.reported) != 0 || len(s.l.stuck) != 0 || len(s.l.overdue) != 0 {
		t.Errorf("%d seen, %d reported, %d stuck, %d overdue", len(s.l.seen), len(s.l.reported), len(s.l.stuck), len(s.l.overdue))
	}
}

// The checks end with Stop, whenever that comes and however often, and none comes after.
func TestLookout_Stops(t *testing.T) {
	s := newScene(t, time.Hour)
	s.key("a", 1, queue.NoNotify, 2)
	for i := range 300 {
		l := New(time.Hour, s.each, func(Report) {})
		l.every = time.Duration(i%7) * 10 * time.Microsecond
		l.Start()
		if i%3 == 0 {
			time.Sleep(time.Duration(i) * time.Microsecond)
		}
		var both sync.WaitGroup
		both.Go(l.Stop)
		both.Go(l.Stop)
		both.Wait()
		checks := l.checks
		time.Sleep(50 * time.Microsecond)
		if l.checks != checks {
			t.Fatal("a check after Stop")
		}
		l.Start() // does nothing
	}
	off := New(-1, s.each, nil)
	off.Start()
	if off.timer != nil {
		t.Error("a Lookout that is switched off checks")
	}
	off.Stop()
}

// A lock with a short limit makes the checks closer, and none is ever farther apart.
// A check that took long, for example since the machine was suspended meanwhile, delays the next one by a minute at most.
func TestLookout_PausesForAMinuteAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var checks []time.Time
		l := New(20*time.Second, func(func(Key) bool) {
			checks = append(checks, time.Now())
			time.Sleep(time.Hour)
		}, func(Report) {})
		l.Start()
		time.Sleep(2*time.Hour + 10*time.Minute)
		l.Stop()
		if len(checks) != 3 {
			t.Fatalf("%d checks: %v", len(checks), checks)
		}
		for i, at := range checks[1:] {
			if pause := at.Sub(checks[i]) - time.Hour; pause != maxPause {
				t.Errorf("it paused for %v", pause)
			}
		}
	})
}

func TestLookout_Serve(t *testing.T) {
	l := New(time.Hour, nil, nil)
	for _, c := range []struct{ limit, every time.Duration }{{-1, maxEvery}, {time.Minute, maxEvery}, {2 * time.Second, time.Second / 2}, {time.Minute, time.Second / 2}} {
		if l.Serve(c.limit); l.every != c.every {
			t.Errorf("after %v: every %v, want %v", c.limit, l.every, c.every)
		}
	}
}
