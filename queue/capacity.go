package queue

import (
	"cmp"
	"math"
)

// semaphore is what a Synchronizer of a Semaphore has beside: those who use it may count with different capacities. Guarded by its
// mu.
type semaphore struct {
	units map[int64]int64 // inside, by the capacity with which they count. Most often that is one
	named map[*Stay]int64 // the capacities of those who can be notified of a loss, but for the usual one
	usual int64           // what the first one has counted with
	of    int64           // the capacity that the granted units count with: who counts with less does not come in by them

	statedKeepOf, statedWantOf int64 // as Synchronizer.statedKeep
}

// add notes that w is inside.
func (o *semaphore) add(w *Waiter) {
	of := w.Of
	if of == 0 {
		return
	}
	o.usual = cmp.Or(o.usual, of)
	if w.Kind.CanNotify() && of != o.usual {
		o.named[w.Stay] = of
	}
	o.units[of] += int64(w.Need)
}

// remove notes that w is not inside any more, of those who can be notified of a loss.
func (o *semaphore) remove(w *Stay) {
	of := cmp.Or(o.named[w], o.usual)
	delete(o.named, w)
	o.take(of, int64(w.Need))
}

// release takes so many units off, first of those who count with of, then of those who count with least.
func (o *semaphore) release(units, of int64) {
	units -= o.take(of, units)
	for units > 0 && len(o.units) > 0 {
		units -= o.take(o.least(), units)
	}
}

// lose notes that nobody is inside any more who can be notified of a loss: they have so many units.
func (o *semaphore) lose(held int64) {
	for w, of := range o.named {
		o.take(of, int64(w.Need))
		held -= int64(w.Need)
	}
	clear(o.named)
	o.take(o.usual, held)
}

// take takes at most so many units off those who count with of, and returns how many.
func (o *semaphore) take(of, units int64) int64 {
	units = min(units, o.units[of])
	if o.units[of] -= units; o.units[of] == 0 {
		delete(o.units, of)
	}
	return units
}

// least returns the least capacity that those inside count with, math.MaxInt64 if nobody is inside.
func (o *semaphore) least() int64 {
	least := int64(math.MaxInt64)
	for of := range o.units {
		least = min(least, of)
	}
	return least
}

// need adds to n what it says of capacities. head is the first waiter, or nil, and those inside need so many units with it.
func (o *semaphore) need(n *need, head *Waiter, with int64) {
	least := o.least()
	if n.keepOf = least; least == math.MaxInt64 {
		n.keepOf = o.of
	}
	if n.wantOf = n.keepOf; head == nil || head.Of == 0 {
		return
	}
	of := min(least, head.Of)
	if with > of {
		n.flags |= needBarred
		return
	}
	n.keep, n.keepOf, n.wantOf = int32(min(int64(n.keep), of)), min(least, max(o.of, of)), of // what is more than that goes back first
}

// restated reports whether what n says of capacities differs from what was stated last, and is stated now.
func (o *semaphore) restated(n need) bool {
	same := n.keepOf == o.statedKeepOf && n.wantOf == o.statedWantOf
	o.statedKeepOf, o.statedWantOf = n.keepOf, n.wantOf
	return !same
}

// CountsWith reports the capacity that the units of a Semaphore count with: before the statement is sent that says so if it is a
// larger one, and after the answer otherwise. False: somebody inside counts with less, and nothing has changed.
func (s *Synchronizer) CountsWith(of int64) bool {
	if s.p.sem == nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if of > s.p.sem.least() {
		return false
	}
	s.p.sem.of = of
	return true
}
