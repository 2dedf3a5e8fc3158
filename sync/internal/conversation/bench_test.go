package conversation

import (
	"testing"
)

// BenchmarkPair is what the machine costs a lock that nobody else wants: an acquire and a release, with their answers.
func BenchmarkPair(b *testing.B) {
	c := Conversation{Terms: &Terms{Lease: 30 * second, Call: 2 * second, Life: 30 * second, Margin: 1500 * ms, Late: second}}
	n := uint64(1)
	for b.Loop() {
		now := Moment(n)
		c, _, _ = c.Next(Demand{Want: 1}, n, now)
		c, _ = c.Handle(Event{Kind: Has, N: n, Record: n, Units: 1, Lease: 2 * second}, now)
		c, _, _ = c.Next(Demand{}, n+1, now)
		c, _ = c.Handle(Event{Kind: HasNot, N: n + 1}, now)
		n += 2
	}
	if c.State != Idle {
		b.Error(c.State)
	}
}
