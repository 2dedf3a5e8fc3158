package lock

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom/queue"
)

// hasUnits is a conversation that has some units of seven, since the moment 0.
func hasUnits(t *testing.T, units int64) UnitsConversation {
	t.Helper()
	c := UnitsConversation{Terms: Terms{Lease: 30 * time.Second, Call: 2 * time.Second, Life: 30 * time.Second}, Capacity: 7}
	c, _, _ = c.Next(&queue.Demand{Waiting: 1, Want: units}, 1, 0)
	c, e := c.Heard(UnitsNews{Word: Has, N: 1, Units: units, Lease: 2 * time.Second}, 0)
	if e != Granted {
		t.Fatal(e)
	}
	return c
}

// Who lets readers in without Redis asks each second whether another client waits, unless it knows that one does.
func TestUnits_S22_AsksEachSecond(t *testing.T) {
	c := hasUnits(t, 1)
	d := &queue.Demand{Units: 1, Used: 1, Keep: 1, Readers: 1}
	if _, s, _ := c.Next(d, 2, hearsBy-ms); s != nil {
		t.Errorf("states %+v", s)
	}
	if _, s, _ := c.Next(d, 2, hearsBy); s == nil || s.Keep != 1 || s.Want != 1 {
		t.Errorf("states %+v", s)
	}
	c = c.NoteContended(1)
	if _, s, _ := c.Next(d, 2, hearsBy); s != nil {
		t.Errorf("states %+v, though another client waits", s)
	}
}

// A process whose turn is over waits in line though it has enough.
func TestUnits_S23_WaitsAgain(t *testing.T) {
	c := hasUnits(t, 2)
	d := &queue.Demand{Units: 2, Used: 1, Keep: 2, Waiting: 1, Want: 2, Again: true}
	if _, s, _ := c.Next(d, 2, 0); s == nil || !s.Again {
		t.Errorf("states %+v", s)
	}
}

// Nobody asks Redis for more units than there are: somebody of this process has to leave first.
func TestUnits_S28_FirstSomebodyLeaves(t *testing.T) {
	c := hasUnits(t, 5)
	d := &queue.Demand{Units: 5, Used: 5, Keep: 5, Waiting: 1, Want: 8}
	if _, s, _ := c.Next(d, 2, 0); s != nil {
		t.Errorf("states %+v", s)
	}
	d.Want = 7
	if _, s, _ := c.Next(d, 2, 0); s == nil || s.Want != 7 {
		t.Errorf("states %+v", s)
	}
}

// Units that nobody uses are given back in place of a renewal.
func TestUnits_S30_NoRenewalOfWhatNobodyUses(t *testing.T) {
	c := hasUnits(t, 1).soon(0)
	if _, s, _ := c.Next(&queue.Demand{Units: 1, Used: 1, Keep: 1}, 2, 1); s == nil || s.Keep != 1 {
		t.Errorf("used: states %+v", s)
	}
	if _, s, _ := c.Next(&queue.Demand{Units: 1, Keep: 1}, 2, 1); s == nil || s.Keep != 0 {
		t.Errorf("unused: states %+v", s)
	}
}
