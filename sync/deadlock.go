package anteroom

import (
	"slices"
	"strings"
	"time"

	"github.com/anteroom/anteroom/queue"
)

// stuckKey is a key that had the same owner at the last look, and waiters then and now.
// Only such keys can be part of a deadlock that the last look could have seen too, and a
// busy program has few.
type stuckKey struct {
	e     *entry
	front queue.Front
}

// owner is the goroutine that locked the key, or acquired its Hold.
func (k *stuckKey) owner() uint64 { return k.front.Current.Owner }

// link is a goroutine that waits for a key; the next link's goroutine owns that key, and
// the first one's that of the last link.
type link struct {
	key    *stuckKey
	waiter queue.WaiterInfo
}

// cycle is goroutines that wait for each other.
type cycle []link

// deadlocks returns the cycles that are to be reported.
//
// Why such a cycle is real, although its parts were read one after the other: let A be the
// moment when the last look had read all keys (read), and B the one when this look began.
// Each wait was seen after B and began before A (cycleFrom demands it), so it lasted from A
// to B. Each tenure was seen after B, and its goroutine took it before it began the wait in
// which it is now; tenures that have ended never come back, so it was current from A to B
// too. So the whole cycle existed at once, for nearly the distance of two looks. (Since may be
// read shortly before the waiter is queued, but in the same call of Lock or Acquire:
// its goroutine gives nothing back between.)
//
// It also lasts: the tenure of a Lock ends by its own goroutine's Unlock only, whatever
// becomes of the lease, and that goroutine waits. What ends by itself is a wait with a
// limit (TryLockFor, Acquire with a context that ends). Where another goroutine may end a
// tenure, the cycle is a possible deadlock only, and is reported when every wait in it is
// as long as a long wait: see certain.
//
// It is found at the second look after it came about, that is after 10 s at most (half a
// LongWait where that is below 20 s); a possible one then or when it is old enough. Tries
// have no part in it: they wait for no owner.
func (l *lookout) deadlocks(now time.Time) []cycle {
	for e, number := range l.told {
		if e.q.Current().Number != number {
			delete(l.told, e)
		}
	}
	waits := l.waitsOfOwners()
	if len(waits) == 0 {
		return nil
	}
	var cycles []cycle
	visited := map[uint64]int{} // by which walk
	for i := range l.stuck {
		g, onWay := l.stuck[i].owner(), true
		for onWay && visited[g] == 0 {
			visited[g] = i + 1
			var k *stuckKey
			if k, onWay = waits[g]; onWay {
				g = k.owner()
			}
		}
		if !onWay || visited[g] != i+1 {
			continue // it ends at a goroutine that does not wait, or joins a walk before it
		}
		if c := l.cycleFrom(g, waits); c != nil && l.isDue(c, now) {
			cycles = append(cycles, c)
			for _, n := range c {
				l.told[n.key.e] = n.key.front.Current.Number
			}
		}
	}
	return cycles
}

// waitsOfOwners tells which of the goroutines that own a stuck key wait for a stuck key,
// and for which: a goroutine waits for one at a time. It walks queues under their mutex,
// the longest one last, and spares that where nothing found before says that a cycle may
// go through it. So one key with 100,000 waiters is not walked because some other key
// stands still, too.
func (l *lookout) waitsOfOwners() map[uint64]*stuckKey {
	longest, last := 0, len(l.stuck)-1
	owners := make(map[uint64]bool, len(l.stuck))
	for i := range l.stuck {
		owners[l.stuck[i].owner()] = true
		if l.stuck[i].front.Waiting > l.stuck[longest].front.Waiting {
			longest = i
		}
	}
	if last >= 0 {
		l.stuck[longest], l.stuck[last] = l.stuck[last], l.stuck[longest]
	}
	waits := map[uint64]*stuckKey{}
	var ids []uint64
	for i := range l.stuck {
		k := &l.stuck[i]
		if i == last && !k.front.OwnerWaits && waits[k.owner()] == nil {
			break
		}
		ids = k.e.q.AppendWaiting(slices.Grow(ids[:0], k.front.Waiting+k.front.Waiting/8))
		for _, g := range ids {
			if owners[g] {
				waits[g] = k
			}
		}
	}
	return waits
}

// cycleFrom returns the cycle that g is part of, beginning with the smallest key, or nil
// where a wait or a tenure has ended since, or a wait has begun after the last look.
func (l *lookout) cycleFrom(g uint64, waits map[uint64]*stuckKey) cycle {
	var c cycle
	for first := g; len(c) == 0 || g != first; {
		k := waits[g]
		w, waiting := k.e.q.Find(g)
		if !waiting || !w.Since.Before(l.read) {
			return nil
		}
		// A waiter that was admitted, and whose process was stopped before it could look at
		// its grant, gives its place back: it waits, in the same call, for a key of which it
		// was the owner a moment ago.
		if k.e.q.Current().Number != k.front.Current.Number {
			return nil
		}
		c = append(c, link{k, w})
		g = k.owner()
	}
	smallest := 0
	for i := range c {
		if strings.Compare(c[i].key.e.key, c[smallest].key.e.key) < 0 {
			smallest = i
		}
	}
	return slices.Concat(c[smallest:], c[:smallest])
}

// isDue tells whether c is to be reported now. It is reported once: as long as its keys
// have the same owners it is the same deadlock, also where a wait ends and is tried again.
func (l *lookout) isDue(c cycle, now time.Time) bool {
	if len(c) == 1 && c.isSelfDeadlock() {
		return false
	}
	news, old := false, true
	for _, n := range c {
		number, known := l.told[n.key.e]
		news = news || !known || number != n.key.front.Current.Number
		old = old && now.Sub(n.waiter.Since) >= l.limit
	}
	return news && (c.certain() || old)
}

// isSelfDeadlock tells that Mutex.lock has reported this one, as EventSelfDeadlock: a
// goroutine locks what its own Acquire holds.
func (c cycle) isSelfDeadlock() bool {
	k := c[0].key
	return k.e.cfg.Reentrancy == ByGoroutine && c[0].waiter.Kind.IsDeaf() && !k.front.Current.Kind.IsDeaf()
}

// certain tells that no goroutine but those of the cycle can end one of its tenures. A Hold
// may have been passed on to one that will release it, and a NotReentrant lock may be
// unlocked by any.
func (c cycle) certain() bool {
	for _, n := range c {
		if !n.key.front.Current.Kind.IsDeaf() || n.key.e.cfg.Reentrancy != ByGoroutine {
			return false
		}
	}
	return true
}
