package measure

import "sync/atomic"

// Guard proves that a protected section is protected: each goroutine that enters writes its number, and checks for
// another's number when it enters and when it leaves. It has a cache line of its own.
//
// Entering is one exchange, so of two concurrent goroutines the later one finds the earlier one's number, or the
// earlier one finds the later one's when it leaves.
type Guard struct {
	inside atomic.Uint32 // the number of the goroutine inside, 0 for none
	_      [60]byte
}

// Enter enters, and reports whether nobody else was inside.
func (g *Guard) Enter(number uint32) (alone bool) { return g.inside.Swap(number) == 0 }

// Leave leaves, and reports whether nobody else entered meanwhile.
func (g *Guard) Leave(number uint32) (alone bool) { return g.inside.CompareAndSwap(number, 0) }
