package lock

import (
	"testing"
	"time"
)

// P5, P9: the notification of a loss gives up what earlier statements bring. The answer to a renewal that comes after the
// deadline lets nobody in while an owner that was notified may still react.
func TestUnits_P9_NobodyComesInWithinTheMargin(t *testing.T) {
	p := newUnitsPlay(t)
	p.has(10, 5)
	p.c = p.c.soon(p.now)
	p.states(11, 10, 5, 5, 5)
	p.now = 2*time.Second - 200*ms // the deadline: the call lease less its margin
	p.hears(UnitsNews{Word: Ended, N: 10, Lease: 200 * ms}, None)
	p.demands(0, 5) // somebody of this process waits
	p.now += 10 * ms
	p.hears(UnitsNews{Word: Has, N: 11, Units: 5, Lease: 30 * time.Second}, None)
	if p.c.usable {
		t.Errorf("5 units may be used at %v, and an owner that was notified reacts until %v", p.now, p.c.not)
	}
}
