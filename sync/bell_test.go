package anteroom

import (
	"sync"
	"testing"
	"time"
)

// A ring is kept until somebody waits, also where nobody has waited yet and there is no
// channel to put it into.
func TestBell_IsHeardLater(t *testing.T) {
	var b bell
	b.ring()
	for _, when := range []string{"before the first wait", "after it"} {
		select {
		case <-b.channel():
		default:
			t.Errorf("rung %s: not heard", when)
		}
		select {
		case <-b.channel():
			t.Errorf("rung once %s, and heard twice", when)
		default:
		}
		b.ring()
		b.ring()
	}
}

// A bell that was rung before the first wait, and is rung again in the moment of that wait, does not hold the one who
// waits: there is room for one ring.
func TestBell_RungAgainInTheMomentOfTheFirstWait(t *testing.T) {
	for round := range 100_000 {
		var b bell
		b.ring()
		var ringing sync.WaitGroup
		ringing.Go(func() { b.ring(); b.ring() })
		heard := make(chan struct{})
		go func() { <-b.channel(); close(heard) }()
		select {
		case <-heard:
		case <-time.After(5 * time.Second):
			t.Fatalf("round %d: who waits stands at its own send", round)
		}
		ringing.Wait()
	}
}
