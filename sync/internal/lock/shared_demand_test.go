package lock

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/sync/internal/conversation"
)

// hasUnits is a conversation that has some units of seven, since the moment 0.
func hasUnits(t *testing.T, units int64) sharedTalk {
	t.Helper()
	c := sharedTalk{}
	c.Terms = Terms{Lease: 30 * time.Second, Call: 2 * time.Second, Life: 30 * time.Second}
	c, _, _ = c.next(&queue.Demand{Waiting: 1, Want: units}, 1, 0)
	c, f := c.handle(conversation.Event{Kind: conversation.Has, N: 1, Record: 1, Units: units, Lease: 2 * time.Second}, false, 0, 0)
	if f != conversation.Granted {
		t.Fatal(f)
	}
	return c
}

// Who lets goroutines in without Redis asks each second whether another client waits, unless it knows that one does.
func TestUnits_S22_AsksEachSecond(t *testing.T) {
	c := hasUnits(t, 1)
	d := &queue.Demand{Units: 1, Used: 1, Keep: 1, Admissions: 1}
	if c.asks(d, asksAfter-ms) {
		t.Error("asks within a second after the grant")
	}
	if !c.asks(d, asksAfter) || c.asks(d, asksAfter) {
		t.Error("does not ask once")
	}
	if c.asks(d, 3*asksAfter) {
		t.Error("asks though nobody has come in")
	}
	if d.Admissions++; c.asks(d, 2*asksAfter-ms) || !c.asks(d, 2*asksAfter) {
		t.Error("does not ask a second later")
	}
	c = c.notified(1)
	if d.Admissions++; c.asks(d, 3*asksAfter) {
		t.Error("asks though another client waits")
	}
}

// A process whose turn is over waits in line though it has enough.
func TestUnits_S23_WaitsAgain(t *testing.T) {
	c := hasUnits(t, 2)
	d := &queue.Demand{Units: 2, Used: 1, Keep: 2, Waiting: 1, Want: 2, Again: true}
	if _, s, _ := c.next(d, 2, 0); s.N == 0 || !s.Again {
		t.Errorf("states %v", s)
	}
}

// Nobody asks Redis for more units than there are: somebody of this process has to leave first.
func TestUnits_S28_FirstSomebodyLeaves(t *testing.T) {
	c := hasUnits(t, 5)
	d := &queue.Demand{Units: 5, Used: 5, Keep: 5, Waiting: 1, Want: 8, Barred: true}
	if _, s, _ := c.next(d, 2, 0); s.N > 0 {
		t.Errorf("states %v", s)
	}
	d.Want, d.Barred = 7, false
	if _, s, _ := c.next(d, 2, 0); s.N == 0 || s.Want != 7 {
		t.Errorf("states %v", s)
	}
}

// Units that nobody uses are given back in place of a renewal.
func TestUnits_S30_NoRenewalOfWhatNobodyUses(t *testing.T) {
	c := hasUnits(t, 1)
	c.idle = true
	if _, s, _ := c.next(&queue.Demand{Units: 1, Used: 1, Keep: 1}, 2, 1); s.N > 0 {
		t.Errorf("used: states %v", s)
	}
	if _, s, _ := c.next(&queue.Demand{Units: 1, Keep: 1}, 2, 1); s.N == 0 || s.Keep != 0 {
		t.Errorf("unused: states %v", s)
	}
}
