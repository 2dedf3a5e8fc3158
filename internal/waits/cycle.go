package waits

import (
	"slices"
	"strings"
	"time"
)

// Cycle is goroutines that wait for each other: the goroutine of each Wait owns the key of
// the one before, and that of the first one the key of the last. The smallest key is first.
type Cycle []Wait

// Certain reports whether no goroutine but those of the cycle can end one of its tenures. A Hold
// may have been passed on to one that will release it, and some locks any goroutine may
// unlock.
func (c Cycle) Certain() bool {
	for _, w := range c {
		if w.Owner.Kind.CanNotify() || !w.OwnerUnlocks {
			return false
		}
	}
	return true
}

// isSelfDeadlock reports whether the caller has got an error for this one when it came about: a
// goroutine locks what it has itself.
func (c Cycle) isSelfDeadlock() bool { return len(c) == 1 && !c[0].Waiter.Kind.CanNotify() }

// cycles returns the cycles that are to be reported.
//
// Why such a cycle is real, although its parts were read one after the other: let A be the
// moment when the last check had read all keys (read), and B the one when this check began.
// Each wait was seen after B and began before A (cycleFrom demands it), so it lasted from A
// to B. Each tenure was seen after B, and its goroutine took it before it began the wait in
// which it is now; tenures that have ended never come back, so it was current from A to B
// too. So the whole cycle existed at one time, for nearly the distance of two checks. (Since may
// be read shortly before the waiter is queued, but in the same call of Lock or Acquire:
// its goroutine gives nothing back between.)
//
// It also lasts: the tenure of a Lock ends by its own goroutine's Unlock only, even after
// the lease has ended, and that goroutine waits. What ends by itself is a wait with a
// limit (TryLockFor, Acquire with a context that ends). Where another goroutine may end a
// tenure, the cycle is a possible deadlock only, and is reported when every wait in it is
// as long as a long wait: see Certain.
//
// It is found at the second check after it came about, that is after 10 s at most (half a
// limit where that is below 20 s); a possible one then or when it is old enough. Tries
// have no part in it: they wait for no owner.
func (l *Lookout) cycles(now time.Time) []Cycle {
	for q, tenure := range l.reported {
		if f := q.Front(); f.Owner.Number != tenure {
			delete(l.reported, q)
		}
	}
	waits := l.waitsOfOwners()
	if len(waits) == 0 {
		return nil
	}
	var cycles []Cycle
	visited := map[uint64]int{} // by which walk
	for i := range l.stuck {
		g, onWay := l.stuck[i].Owner.Goroutine, true
		for onWay && visited[g] == 0 {
			visited[g] = i + 1
			var w *Wait
			if w, onWay = waits[g]; onWay {
				g = w.Owner.Goroutine
			}
		}
		if !onWay || visited[g] != i+1 {
			continue // it ends at a goroutine that does not wait, or joins a walk before it
		}
		if c := l.cycleFrom(g, waits); c != nil && l.isDue(c, now) {
			cycles = append(cycles, c)
			for _, w := range c {
				l.reported[w.Queue] = w.Owner.Number
			}
		}
	}
	return cycles
}

// waitsOfOwners returns which of the goroutines that own a stuck key wait for a stuck key,
// and for which: a goroutine waits for one at a time. It walks queues under their mutex,
// the longest one last, and spares that where nothing found before says that a cycle may
// go through it. So one key with 100,000 waiters is not walked because some other key
// does not move, either.
func (l *Lookout) waitsOfOwners() map[uint64]*Wait {
	longest, last := 0, len(l.stuck)-1
	owners := make(map[uint64]bool, len(l.stuck))
	for i := range l.stuck {
		owners[l.stuck[i].Owner.Goroutine] = true
		if l.stuck[i].Waiting > l.stuck[longest].Waiting {
			longest = i
		}
	}
	if last >= 0 {
		l.stuck[longest], l.stuck[last] = l.stuck[last], l.stuck[longest]
	}
	waits := map[uint64]*Wait{}
	var ids []uint64
	for i := range l.stuck {
		w := &l.stuck[i]
		if i == last && !w.OwnerWaits && waits[w.Owner.Goroutine] == nil {
			break
		}
		ids = w.Queue.AppendWaiting(slices.Grow(ids[:0], w.Waiting+w.Waiting/8))
		for _, g := range ids {
			if owners[g] {
				waits[g] = w
			}
		}
	}
	return waits
}

// cycleFrom returns the cycle that g is part of, or nil where a wait or a tenure has ended
// since, or a wait has begun after the last check.
func (l *Lookout) cycleFrom(g uint64, waits map[uint64]*Wait) Cycle {
	var c Cycle
	for first := g; len(c) == 0 || g != first; {
		w := *waits[g]
		var waiting bool
		if w.Waiter, waiting = w.Queue.Find(g); !waiting || !w.Waiter.Since.Before(l.read) {
			return nil
		}
		// A waiter that was admitted, and whose process was stopped before it could use
		// its grant, gives its place back: it waits, in the same call, for a key of which it
		// was the owner a moment ago.
		if f := w.Queue.Front(); f.Owner.Number != w.Owner.Number {
			return nil
		}
		c = append(c, w)
		g = w.Owner.Goroutine
	}
	smallest := 0
	for i := range c {
		if strings.Compare(c[i].Name, c[smallest].Name) < 0 {
			smallest = i
		}
	}
	return slices.Concat(c[smallest:], c[:smallest])
}

// isDue reports whether c is to be reported now. It is reported once: as long as its keys
// have the same owners it is the same deadlock, also where a wait ends and is tried again.
func (l *Lookout) isDue(c Cycle, now time.Time) bool {
	if c.isSelfDeadlock() {
		return false
	}
	news, old := false, true
	for _, w := range c {
		number, known := l.reported[w.Queue]
		news = news || !known || number != w.Owner.Number
		old = old && now.Sub(w.Waiter.Since) >= l.limit
	}
	return news && (c.Certain() || old)
}
