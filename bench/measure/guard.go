package measure

import "sync/atomic"

// Guard is the proof that a protected section is protected: each goroutine that comes in
// leaves its number, and looks whether another's is there, when it comes and when it
// goes. It has a cache line of its own.
//
// Coming in is one exchange, so of two that are inside at the same time the later one
// finds the earlier one's number, or the earlier one finds the later one's when it goes.
type Guard struct {
	inside atomic.Uint32 // the number of who is inside, 0: nobody
	_      [60]byte
}

// Enter comes in. It reports whether nobody else was there.
func (g *Guard) Enter(number uint32) (alone bool) { return g.inside.Swap(number) == 0 }

// Leave goes. It reports whether nobody else came in meanwhile.
func (g *Guard) Leave(number uint32) (alone bool) { return g.inside.CompareAndSwap(number, 0) }
