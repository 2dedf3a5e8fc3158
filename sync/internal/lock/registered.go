package lock

import "slices"

// This file registers grants, and owners of units, for Close and for the watchdog.

// grown is how many numbers in Locks.came may be of what has ended, beside as many as are registered: short holds come and go by
// thousands between two visits of the watchdog.
const grown = 1024

// ofUnits is in the numbers of grants of units, and of their owners. The rest is that of a command, or one that no command has.
const ofUnits = 1 << 63

// OfUnits reports whether a number that Changes has named is of an RWMutex or a Semaphore.
func OfUnits(n uint64) bool { return n&ofUnits != 0 }

func (l *Locks) register(g *Held) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := g.Number()
	l.grants[n] = g
	l.cameLocked(n)
	l.youngLocked(g)
}

// unregister takes out g, which is given back or lost. Where owner, who had it, cannot be notified, it stays registered
// as lost until that one exits: should its goroutine have ended, nobody else would.
func (l *Locks) unregister(g *Held, owner *Owner) {
	defer untrack(g)
	l.mu.Lock()
	defer l.mu.Unlock()
	n := g.Number()
	delete(l.grants, n)
	l.wentLocked(n, g.watched)
	if owner != nil && owner.live() { // its last exit may have come a moment ago
		l.lost[n] = g
		l.came = append(l.came, n)
	}
	l.changedLocked()
}

// unregisterLost takes out g, whose last owner has exited.
func (l *Locks) unregisterLost(g *Held) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := g.Number(); l.lost[n] == g {
		delete(l.lost, n)
		l.wentLocked(n, g.watched)
	}
}

// registerOwner makes Changes name o, which has units, under a number of its own, until unregisterOwner.
func (l *Locks) registerOwner(o *Owner) {
	n := l.number.Add(1) | ofUnits
	l.mu.Lock()
	defer l.mu.Unlock()
	o.Share().number.Store(n)
	l.owners[n] = o
	l.cameLocked(n)
}

func (l *Locks) unregisterOwner(o *Owner) {
	s := o.Share()
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := s.number.Load(); l.owners[n] == o {
		delete(l.owners, n)
		l.wentLocked(n, s.watched)
	}
}

// cameLocked notes that n is registered, and forgets what came and went between two calls of Changes.
func (l *Locks) cameLocked(n uint64) {
	l.came = append(l.came, n)
	if len(l.came) > 2*(len(l.grants)+len(l.owners))+grown {
		l.came = slices.DeleteFunc(l.came, func(n uint64) bool { return l.registered(n) == nil && l.owners[n] == nil })
	}
}

func (l *Locks) wentLocked(n uint64, watched bool) {
	if watched {
		l.went = append(l.went, n)
	}
}

func (l *Locks) registered(n uint64) *Held {
	if g := l.grants[n]; g != nil {
		return g
	}
	return l.lost[n]
}

// OfNumber returns what has the number: a grant, unless it was given back, or lost and its owner has exited; or an owner of units,
// until it has exited or lost them; or neither.
func (l *Locks) OfNumber(n uint64) (*Held, *Owner) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.registered(n), l.owners[n]
}

// HeldAll returns the grants of many numbers, nil in place of what is none.
func (l *Locks) HeldAll(ns []uint64) []*Held {
	list := make([]*Held, len(ns))
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, n := range ns {
		list[i] = l.registered(n)
	}
	return list
}

// Changes returns the numbers of what has come since it was last called, and of what it has named before and that has ended. A
// grant that is lost comes again where its owner has not exited.
func (l *Locks) Changes() (came, went []uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	came, went = l.came, l.went
	l.came, l.went = nil, nil
	for _, n := range came {
		if g := l.registered(n); g != nil {
			g.watched = true
		} else if o := l.owners[n]; o != nil {
			o.Share().watched = true
		}
	}
	return came, went
}
