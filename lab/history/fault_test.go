package history

import (
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	anteroom "github.com/anteroom/anteroom/sync"
)

func TestMain(m *testing.M) {
	RunWorker()
	goleak.VerifyTestMain(m)
}

// through is how long callers may take to return when every fault is over: the lease of a killed holder, the pauses
// of a driver after errors, and the queue. The actual time is logged.
const through = 10 * time.Second

// someLocks returns n locks with leases of 1.5 s that differ in everything that matters for admission.
func someLocks(n int) []anteroom.LockConfig {
	var locks []anteroom.LockConfig
	for i := range n {
		c := anteroom.LockConfig{
			Key: fmt.Sprint("key", i), LeaseTime: 1500 * time.Millisecond, WatchdogPeriod: 500 * time.Millisecond,
			Fair: i%2 == 0, Fencing: i%3 != 0, MaxHandoffs: 50, Reentrant: i%4 != 3,
		}
		if i%5 == 4 {
			c.MaxHandoffs = -1
		}
		locks = append(locks, c)
	}
	return locks
}

// judged fails the test for everything that a history must not contain.
func judged(t *testing.T, o *Outcome) {
	t.Helper()
	t.Logf("acquisitions=%d lost=%d overlaps=%d through=%v", o.Acquisitions, o.Lost, o.Overlaps, o.Through)
	for _, f := range o.Findings {
		t.Errorf("%s of %s: %s", f.Rule, f.Key, f.Text)
	}
	for _, p := range append(o.Problems, o.Leaks...) {
		t.Error(p)
	}
	if o.Stuck > 0 {
		t.Errorf("%d callers are stuck", o.Stuck)
	}
	if o.Acquisitions == 0 {
		t.Error("nobody has acquired anything")
	}
}

// Without a fault nothing is lost and nothing overlaps.
func TestHistory_Calm(t *testing.T) {
	t.Parallel()
	l := NewLab(t, Setup{Locks: someLocks(6), Processes: 3, Goroutines: 8, Load: LoadMixed, Seed: 1})
	time.Sleep(1500 * time.Millisecond)
	o := l.Finish(through)
	judged(t, o)
	if o.Overlaps > 0 {
		t.Errorf("%d overlaps, and nothing was removed", o.Overlaps)
	}
}

// fault is one fault of a run, and its name.
type fault struct {
	name string
	do   func(*Lab) error
}

// under injects faults one after the other under load, and judges the whole.
func under(t *testing.T, seed uint64, faults []fault) *Outcome {
	t.Helper()
	l := NewLab(t, Setup{Locks: someLocks(8), Processes: 3, Goroutines: 10, Load: LoadMixed, Seed: seed})
	time.Sleep(settleTime)
	for _, f := range faults {
		if err := f.do(l); err != nil {
			t.Errorf("%s: %v", f.name, err)
		}
		time.Sleep(settleTime)
	}
	o := l.Finish(through)
	judged(t, o)
	return o
}

// settleTime lets the load run between two faults.
const settleTime = 400 * time.Millisecond

// nothingRemoved fails the test if holds overlapped although no lock was removed.
func nothingRemoved(t *testing.T, o *Outcome) {
	t.Helper()
	if o.Overlaps > 0 {
		t.Errorf("%d overlaps, and nothing was removed", o.Overlaps)
	}
}

// Faults of replies and connections: no holds overlap.
func TestHistory_Network(t *testing.T) {
	t.Parallel()
	suffer := func(i int, kind FaultKind, d time.Duration) fault {
		return fault{string(kind), func(l *Lab) error { return l.Suffer(i, kind, d) }}
	}
	nothingRemoved(t, under(t, 2, []fault{
		suffer(0, ReplyLost, 400*time.Millisecond),
		suffer(1, ReplyLate, 600*time.Millisecond),
		suffer(2, Reset, 300*time.Millisecond),
		suffer(0, BlackHole, 2*time.Second), // longer than a lease
		suffer(1, HalfOpen, 600*time.Millisecond),
		suffer(2, Latency, 500*time.Millisecond),
	}))
}

// Faults of a server that keeps its data.
func TestHistory_ServerAway(t *testing.T) {
	t.Parallel()
	nothingRemoved(t, under(t, 3, []fault{
		{"Redis SIGSTOP", func(l *Lab) error { return l.StopServer(2 * time.Second) }},
		{"Redis SIGKILL, restart with AOF", func(l *Lab) error { return l.Restart(false) }},
		{"script cache flushed", (*Lab).ForgetScripts},
		{"pub/sub killed", (*Lab).KillSubscribers},
		{"CLIENT PAUSE", func(l *Lab) error { return l.PauseClients(600 * time.Millisecond) }},
	}))
}

// Errors of the server.
func TestHistory_Refusals(t *testing.T) {
	t.Parallel()
	nothingRemoved(t, under(t, 4, []fault{
		{"OOM", func(l *Lab) error { return l.OutOfMemory(700 * time.Millisecond) }},
		{"READONLY", func(l *Lab) error { return l.ReadOnly(700 * time.Millisecond) }},
		{"ACL", func(l *Lab) error { return l.Forbid(700 * time.Millisecond) }},
	}))
}

// Faults that remove locks: other holders overlap, inside the bound, and the register keeps every update.
func TestHistory_Removals(t *testing.T) {
	t.Parallel()
	o := under(t, 5, []fault{
		{"FLUSHALL", (*Lab).FlushAll},
		{"DEL", func(l *Lab) error {
			for key := range l.Setup.Locks {
				if err := l.Delete(key); err != nil {
					return err
				}
			}
			return nil
		}},
		{"SET", func(l *Lab) error { return l.Overwrite(1, 300*time.Millisecond) }},
		{"ForceRelease", func(l *Lab) error {
			for key := range l.Setup.Locks {
				if err := l.ForceRelease(key); err != nil {
					return err
				}
			}
			return nil
		}},
		{"Redis SIGKILL, restart empty", func(l *Lab) error { return l.Restart(true) }},
	})
	// Whether two overlap depends on timing; that holders are notified does not.
	if o.Lost == 0 {
		t.Error("the removals have met nobody")
	}
}

// Processes of one goroutine each in one line, of which the first are stopped, killed and cut off.
func TestHistory_TheFirstInLine(t *testing.T) {
	t.Parallel()
	l := NewLab(t, Setup{Locks: someLocks(2), Singles: 8, SingleKeys: 2, Load: LoadMixed, Seed: 7})
	time.Sleep(settleTime)
	for _, f := range []struct {
		name string
		do   func(worker int) error
	}{
		{"SIGSTOP across a call", func(i int) error { return l.StopWorker(i, 300*time.Millisecond) }},
		{"SIGSTOP beyond the lease", func(i int) error { return l.StopWorker(i, 2*time.Second) }},
		{"SIGKILL", l.KillWorker},
		{"half-open", func(i int) error { return l.Suffer(i, HalfOpen, 600*time.Millisecond) }},
		{"reply late", func(i int) error { return l.Suffer(i, ReplyLate, 600*time.Millisecond) }},
		{"pub/sub killed", func(int) error { return l.KillSubscribers() }},
	} {
		i, err := l.FirstInLine([]int{0, 1})
		if err == nil {
			err = f.do(i)
		}
		if err != nil {
			t.Errorf("%s: %v", f.name, err)
		}
		time.Sleep(settleTime)
	}
	o := l.Finish(through)
	judged(t, o)
	nothingRemoved(t, o)
}

// Faults of the processes that hold.
func TestHistory_Processes(t *testing.T) {
	nothingRemoved(t, under(t, 6, []fault{
		{"holder SIGSTOP", func(l *Lab) error { return l.StopWorker(0, 2*time.Second) }},
		{"holder SIGKILL", func(l *Lab) error { return l.KillWorker(1) }},
		{"starved CPU", func(l *Lab) error { return l.Suffer(2, Starved, 500*time.Millisecond) }},
		{"stop the world", func(l *Lab) error { return l.Suffer(0, StopTheWorld, 500*time.Millisecond) }},
	}))
}
