package lock

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom/queue"
	"github.com/anteroom/anteroom/sync/internal/conversation"
)

// hasUnits is a key that has some units of seven, since the moment 0.
func hasUnits(t *testing.T, units int64) *Key {
	t.Helper()
	k := &Key{u: newUnits(&Settings{Capacity: 7})}
	k.conv.Terms = &conversation.Terms{Lease: 30 * time.Second, Call: 2 * time.Second, Life: 30 * time.Second}
	_, demand, _ := k.meansLocked(&queue.Demand{Waiting: 1, Want: units}, 0)
	k.conv, _, _ = k.conv.Next(demand, 1, 0)
	if f := k.handleLocked(conversation.Event{Kind: conversation.Has, N: 1, Record: 1, Units: units, Lease: 2 * time.Second}, 0, 0); f != conversation.Granted {
		t.Fatal(f)
	}
	return k
}

// states returns what k would state as command 2.
func (k *Key) states(d *queue.Demand) conversation.Command {
	_, demand, _ := k.meansLocked(d, 1)
	_, cmd, _ := k.conv.Next(demand, 2, 1)
	return cmd
}

// Who lets goroutines in without Redis asks each second whether another client waits, unless it knows that one does.
func TestUnits_S22_AsksEachSecond(t *testing.T) {
	k := hasUnits(t, 1)
	d := &queue.Demand{Units: 1, Used: 1, Keep: 1, Admissions: 1}
	if k.asksLocked(d, asksAfter-ms) {
		t.Error("asks within a second after the grant")
	}
	if !k.asksLocked(d, asksAfter) || k.asksLocked(d, asksAfter) {
		t.Error("does not ask once")
	}
	if k.asksLocked(d, 3*asksAfter) {
		t.Error("asks though nobody has come in")
	}
	if d.Admissions++; k.asksLocked(d, 2*asksAfter-ms) || !k.asksLocked(d, 2*asksAfter) {
		t.Error("does not ask a second later")
	}
	k.notifiedLocked(1)
	if d.Admissions++; k.asksLocked(d, 3*asksAfter) {
		t.Error("asks though another client waits")
	}
}

// A process whose turn is over waits in line though it has enough.
func TestUnits_S23_WaitsAgain(t *testing.T) {
	k := hasUnits(t, 2)
	d := &queue.Demand{Units: 2, Used: 1, Keep: 2, Waiting: 1, Want: 2, Again: true}
	if s := k.states(d); s.N == 0 || !s.Again {
		t.Errorf("states %v", s)
	}
}

// Nobody asks Redis for more units than there are: somebody of this process has to leave first.
func TestUnits_S28_FirstSomebodyLeaves(t *testing.T) {
	k := hasUnits(t, 5)
	d := &queue.Demand{Units: 5, Used: 5, Keep: 5, Waiting: 1, Want: 8, Barred: true}
	if s := k.states(d); s.N > 0 {
		t.Errorf("states %v", s)
	}
	d.Want, d.Barred = 7, false
	if s := k.states(d); s.N == 0 || s.Want != 7 {
		t.Errorf("states %v", s)
	}
}

// Units that nobody uses are given back in place of a renewal.
func TestUnits_S30_NoRenewalOfWhatNobodyUses(t *testing.T) {
	k := hasUnits(t, 1)
	k.u.idle = true
	if s := k.states(&queue.Demand{Units: 1, Used: 1, Keep: 1}); s.N > 0 {
		t.Errorf("used: states %v", s)
	}
	if s := k.states(&queue.Demand{Units: 1, Keep: 1}); s.N == 0 || s.Keep != 0 {
		t.Errorf("unused: states %v", s)
	}
}
