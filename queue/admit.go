package queue

// This file is about who comes into a Gate next, and who waits.

// settleLocked ends a transition: it admits those who may come in now, and orders the caller to state what has changed for
// Redis. together: readers that wait come in before the first writer, if the Gate is not fair; so it is after a writer.
func (g *Gate) settleLocked(together bool) Order {
	g.arrangeLocked(together)
	if n := g.needLocked(); n != g.stated {
		g.stated = n
		return Restate
	}
	return Nothing
}

// arrangeLocked admits those who may come in now, and opens or closes the gate. The first reader of a turn comes in while
// the gate is closed, so that its exit is noticed if it was the only one.
func (g *Gate) arrangeLocked(together bool) {
	if g.contended {
		g.admitsLocked() // notices the end of the turn
	}
	g.passLocked(together)
	open := g.all > 0 && g.units > 0 && !g.over && !g.lost && !g.closed && g.writer == nil &&
		(g.waiters.len == 0 || g.heir != nil) && g.admissionsLocked() > 1
	switch isOpen := g.word.Load()&closedBit == 0; {
	case open && !isOpen:
		g.word.And(^uint64(closedBit))
	case !open && isOpen:
		g.word.Or(closedBit)
	}
}

// passLocked admits the head, and those after it as long as the units suffice. With a reader all readers that wait come in, in a
// fair Gate those before the first writer. If the Gate is not fair and nobody is owed, they are woken instead, and come
// in when they run, unless a newcomer is quicker. An heir whose wake-up is on its way passes on, so no other is woken.
func (g *Gate) passLocked(together bool) {
	if g.lost && g.word.Load()&insideMask == 0 && g.writer == nil && g.loose == 0 {
		g.lost = false
	}
	together = together || g.heir != nil && !g.whole(g.heir)
	g.heir = nil
	if g.waiters.len == 0 || !g.admitsLocked() {
		return
	}
	together = together && g.writers < g.waiters.len
	barge := !g.fair && g.all > 0 && g.owed == 0
	for w := g.waiters.head; w != nil; {
		next := w.next
		switch {
		case together && !g.fair && g.whole(w) && !w.owed: // the readers behind it pass it
		case g.barredLocked(w) || !g.sufficesLocked(w):
			return
		case barge && g.heir == nil && (w.woken || g.whole(w)):
			g.heir = w
			w.wake(false)
			return
		case barge:
			if g.heir == nil {
				g.heir = w
			}
			w.wake(false)
			together = true
		default:
			together = g.all > 0 && !g.whole(w)
			g.dequeueLocked(w)
			g.admitLocked(w)
			w.wake(true) // from here on only its goroutine knows w
		}
		w = next
	}
}

// whole reports whether w is a writer.
func (g *Gate) whole(w *Waiter) bool { return w.Need == g.all }

// barredLocked reports whether those inside keep w out, whatever Redis gives.
func (g *Gate) barredLocked(w *Waiter) bool {
	if !g.whole(w) {
		return g.writer != nil
	}
	// Close first, then count: a reader that joins after this sees the bit, and one that joined before is counted (I15).
	return g.word.Or(closedBit)&insideMask > 0 || g.held > 0 || g.writer != nil
}

// sufficesLocked reports whether the units suffice with w inside.
func (g *Gate) sufficesLocked(w *Waiter) bool { return g.withLocked(w) <= g.units }

// admitLocked lets w in, which is not linked.
func (g *Gate) admitLocked(w *Waiter) {
	admission := uint64(oneAdmission)
	switch {
	case g.whole(w):
		g.writer = w
	case w.Kind.CanNotify():
		g.held += w.Need
	case g.all == 0:
		g.loose += w.Need
	default:
		admission = oneReader
	}
	g.word.Add(admission)
	w.phase, w.Grant = phaseIn, g.grant
}

// enqueueLocked links w as the last, or if it is First as the first but for a Try.
func (g *Gate) enqueueLocked(w *Waiter) {
	if w.ready == nil {
		w.ready = make(chan bool, 1)
	}
	if w.Began == 0 {
		w.Began = g.now()
	}
	w.phase = phaseQueued
	behind := g.waiters.tail
	if w.First {
		behind = nil
		if head := g.waiters.head; head != nil && head.Kind.IsTry() {
			behind = head
		}
	}
	g.waiters.insertAfter(behind, w)
	if g.whole(w) {
		g.writers++
	}
	if w.First || w.Kind.IsTry() {
		g.oweLocked(w)
	}
}

// dequeueLocked unlinks w.
func (g *Gate) dequeueLocked(w *Waiter) {
	g.waiters.remove(w)
	if g.whole(w) {
		g.writers--
	}
	if w.owed {
		g.owed--
	}
}

// oweLocked lets nobody pass w any more.
func (g *Gate) oweLocked(w *Waiter) {
	if !w.owed {
		w.owed = true
		g.owed++
	}
}
