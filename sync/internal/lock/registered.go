package lock

import (
	"slices"
	"sync/atomic"
)

// This file registers grants, for Close and for the watchdog.

// grown is how many numbers in Locks.came may be of grants that have ended, beside as many as are registered: short
// holds come and go by thousands between two visits of the watchdog.
const grown = 1024

func (l *Locks) register(g *Held) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.grants[g.n] = g
	l.came = append(l.came, g.n)
	l.youngLocked(g)
	l.trimLocked()
}

// unregister takes out g, which was released or lost. Where owner, who had it, cannot be notified, it stays registered
// as lost until that one exits: should its goroutine have ended, nobody else would.
func (l *Locks) unregister(g *Held, owner *Owner) {
	defer untrack(g)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.grants, g.n)
	if g.watched {
		l.went = append(l.went, g.n)
	}
	if owner != nil && owner.live() { // its last exit may have come a moment ago
		l.lost[g.n] = g
		l.came = append(l.came, g.n)
	}
	l.changedLocked()
}

// unregisterLost takes out g, whose last owner has exited.
func (l *Locks) unregisterLost(g *Held) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost[g.n] == g {
		delete(l.lost, g.n)
		if g.watched {
			l.went = append(l.went, g.n)
		}
	}
}

func (l *Locks) registered(n uint64) *Held {
	if g := l.grants[n]; g != nil {
		return g
	}
	return l.lost[n]
}

// unitsFrom is above all numbers of statements. Higher ones are of an RWMutex or a Semaphore, for Changes.
const unitsFrom = 1 << 63

// OfUnits reports whether a number that Changes has named is of an RWMutex or a Semaphore.
func OfUnits(n uint64) bool { return n > unitsFrom }

// registration is what a *Share and a *SharedHeld have, for the watchdog.
type registration struct {
	number  atomic.Uint64
	watched bool // Changes has named it; guarded by Locks.mu
}

// Number returns that of Register.
func (r *registration) Number() uint64 { return r.number.Load() }

func (r *registration) itself() *registration { return r }

// registrable is a *Share or a *SharedHeld.
type registrable interface{ itself() *registration }

// Register makes Changes name what, under a number of its own, until Unregister.
func (l *Locks) Register(what registrable) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.registrations++
	n := unitsFrom + l.registrations
	what.itself().number.Store(n)
	l.units[n] = what
	l.came = append(l.came, n)
	if g, is := what.(trackable); is {
		l.youngLocked(g)
	}
	l.trimLocked()
}

// Unregister ends Register.
func (l *Locks) Unregister(what registrable) {
	r := what.itself()
	n := r.Number()
	if g, is := what.(trackable); is {
		defer untrack(g)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.units[n] == what {
		delete(l.units, n)
		if r.watched {
			l.went = append(l.went, n)
		}
	}
}

// trimLocked forgets what came and went between two calls of Changes.
func (l *Locks) trimLocked() {
	if len(l.came) > 2*(len(l.grants)+len(l.units))+grown {
		l.came = slices.DeleteFunc(l.came, func(n uint64) bool { return l.registered(n) == nil && l.units[n] == nil })
	}
}

// OfNumber returns what has the number: a *Held, unless it was given back, or lost and its owner has exited; or else a
// *SharedHeld or a *Share, until Unregister; or nil.
func (l *Locks) OfNumber(n uint64) any {
	l.mu.Lock()
	defer l.mu.Unlock()
	if g := l.registered(n); g != nil {
		return g
	}
	return l.units[n]
}

// HeldAll returns the grants of many numbers, nil in place of what is no *Held.
func (l *Locks) HeldAll(ns []uint64) []*Held {
	list := make([]*Held, len(ns))
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, n := range ns {
		list[i] = l.registered(n)
	}
	return list
}

// Changes returns the numbers of the grants that have come since it was last called, and of those that it has named
// before and that have ended. A grant that is lost comes again where its owner has not exited.
func (l *Locks) Changes() (came, went []uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	came, went = l.came, l.went
	l.came, l.went = nil, nil
	for _, n := range came {
		if g := l.registered(n); g != nil {
			g.watched = true
		} else if u := l.units[n]; u != nil {
			u.itself().watched = true
		}
	}
	return came, went
}
