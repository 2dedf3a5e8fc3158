package queue

import (
	"cmp"
	"math"
	"slices"
)

// semaphore is what a Synchronizer of a Semaphore has beside: those who use it may count with different capacities. Guarded by its
// mu.
type semaphore struct {
	held  capacities      // of those inside who can be notified of a loss
	loose capacities      // and of those who cannot
	named map[*Stay]int64 // the capacities of the former, but for the usual one
	usual int64           // what the first one has counted with
	of    int64           // the capacity that the granted units count with: who counts with less does not come in by them. 0: there are none

	statedKeepOf, statedWantOf int64 // as Synchronizer.statedKeep
}

// capacities are units by the capacity with which they count, each once. Most often that is one, and never are they many.
type capacities []struct{ of, units int64 }

func (c *capacities) add(of, units int64) {
	for i := range *c {
		if (*c)[i].of == of {
			(*c)[i].units += units
			return
		}
	}
	*c = append(*c, struct{ of, units int64 }{of, units})
}

// take takes at most so many units off those that count with of, and returns how many.
func (c *capacities) take(of, units int64) int64 {
	for i, u := range *c {
		if u.of == of && units < u.units {
			(*c)[i].units -= units
			return units
		} else if u.of == of {
			*c = slices.Delete(*c, i, i+1)
			return u.units
		}
	}
	return 0
}

// least returns the least of them, math.MaxInt64 if there are no units.
func (c capacities) least() int64 {
	least := int64(math.MaxInt64)
	for _, u := range c {
		least = min(least, u.of)
	}
	return least
}

// add notes that w is inside.
func (o *semaphore) add(w *Waiter) {
	of := w.Of
	switch o.usual = cmp.Or(o.usual, of); {
	case of == 0:
		return
	case !w.Kind.CanNotify():
		o.loose.add(of, int64(w.Need))
		return
	case of != o.usual:
		o.named[w.Stay] = of
	}
	o.held.add(of, int64(w.Need))
}

// remove notes that w is not inside any more, of those who can be notified of a loss.
func (o *semaphore) remove(w *Stay) {
	of := cmp.Or(o.named[w], o.usual)
	delete(o.named, w)
	o.held.take(of, int64(w.Need))
}

// release takes so many units off those who cannot be notified, first of who counts with of, then of who counts with least.
func (o *semaphore) release(units, of int64) {
	units -= o.loose.take(of, units)
	for units > 0 && len(o.loose) > 0 {
		units -= o.loose.take(o.loose.least(), units)
	}
}

// lose notes that the units are gone, and nobody is inside any more who can be notified of that.
func (o *semaphore) lose() {
	clear(o.named)
	o.held, o.of = o.held[:0], 0
}

// least returns the least capacity that those inside count with, math.MaxInt64 if nobody is inside.
func (o *semaphore) least() int64 { return min(o.held.least(), o.loose.least()) }

// need adds to n what it says of capacities. head is the first waiter, or nil, and those inside use so many units.
func (o *semaphore) need(n *need, head *Waiter, used int32) {
	least := o.least()
	if n.keepOf = least; least == math.MaxInt64 {
		n.keepOf = o.of
	}
	if n.wantOf = n.keepOf; head == nil || head.Of == 0 {
		return
	}
	of := min(least, head.Of)
	if int64(used)+int64(head.Need) > of {
		n.flags |= needBarred
		return
	}
	n.keepOf, n.wantOf = min(least, max(o.of, of)), of
	if n.wantOf < n.keepOf { // what nobody uses would have to fit, too
		n.keep = used
	}
}

// restated reports whether what n says of capacities differs from the last command, and notes it for the next.
func (o *semaphore) restated(n need) bool {
	same := n.keepOf == o.statedKeepOf && n.wantOf == o.statedWantOf
	o.statedKeepOf, o.statedWantOf = n.keepOf, n.wantOf
	return !same
}

// CountsWith reports the capacity that the units of a Semaphore count with: before the command is sent that says so if it is a
// larger one, and after the answer otherwise. False: it is larger, somebody inside counts with less, and nothing has changed.
func (s *Synchronizer) CountsWith(of int64) bool {
	if s.p.sem == nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if of > s.p.sem.of && of > s.p.sem.least() {
		return false
	}
	s.p.sem.of = of
	return true
}
