package anteroom_test

import (
	"context"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/pace"
	"github.com/anteroom/anteroom/internal/testredis"
	anteroom "github.com/anteroom/anteroom/sync"
)

// A slot moves from one master to another, and of a lock's keys only its own is there: what is held stays held, can be
// released, and people can look at it and end it. Every kind of hold does without its line.
func TestCluster_HoldsOutliveASlotThatMoves_Lab(t *testing.T) {
	t.Parallel()
	c := testredis.StartCluster(t, 2, 0)
	lease := pace.Scale(3 * time.Second)
	m, _ := manager(t, c.Client(t), anteroom.Config{
		CommandTimeout: pace.Scale(time.Second), Defaults: anteroom.LockConfig{LeaseTime: lease, Fencing: true},
	})
	const forced = "{k}forced"
	rw, sem := m.RWMutex("{k}reader"), m.Semaphore("{k}permits", 5)
	holds := map[string]theHold{
		"a Mutex":              acquire(t, m.Mutex("{k}mutex")),
		"a reader with a Hold": must[theHold](t)(rw.RAcquire(bg)),
		"a writer":             must[theHold](t)(m.RWMutex("{k}writer").Acquire(bg)),
		"permits":              must[theHold](t)(sem.Acquire(bg, 2)),
		"what is forced":       must[theHold](t)(m.RWMutex(forced).RAcquire(bg)),
	}
	rw.RLock()
	more := must[theHold](t)(sem.Acquire(bg, 2))
	slot := c.Slot("{k}mutex")
	to := c.Masters()[0]
	if to == c.Master(slot) {
		to = c.Masters()[1]
	}
	move := c.BeginMove(slot, to)
	began := time.Now()

	if info, err := m.Inspect(bg, forced); err != nil || !info.Locked {
		t.Errorf("Inspect: %+v, %v", info, err)
	}
	if err := m.Ping(bg, "{k}mutex"); err != nil {
		t.Errorf("Ping: %v", err)
	}
	if broken, err := m.ForceRelease(bg, forced); err != nil || len(broken) != 1 {
		t.Errorf("ForceRelease: %v, %v", broken, err)
	}
	ended, stop := context.WithTimeout(bg, pace.Hang)
	defer stop()
	select {
	case <-holds["what is forced"].Context().Done():
	case <-ended.Done():
		t.Error("the holder of what was forced is not notified")
	}
	_ = holds["what is forced"].Release(bg)
	delete(holds, "what is forced")
	if err := more.Release(bg); err != nil { // some of the permits that its process has
		t.Errorf("some permits: %v", err)
	}

	time.Sleep(time.Until(began.Add(2 * lease)))
	for name, h := range holds {
		if err := h.Err(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	rw.RUnlock()
	for name, h := range holds {
		if err := h.Release(bg); err != nil {
			t.Errorf("release of %s: %v", name, err)
		}
	}
	move.MoveKeys()
	move.End()
	ok(t, acquire(t, m.Mutex("{k}mutex")).Release(bg))
	ok(t, must[theHold](t)(m.RWMutex(forced).Acquire(bg)).Release(bg))
}
