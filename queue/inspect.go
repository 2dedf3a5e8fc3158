package queue

import "time"

// The getters of this file are for monitoring, not for synchronization control: the answer may be wrong by the time
// the caller reads it. Word, OwnedBy and Current also serve the lock path, and Len does so as a hint.

// Tenure is a consistent copy of who owns the lock. Number distinguishes one tenure from another. Fields without
// meaning in a state are zero: Grant is set in Granted, Owned, Releasing and Lost; Number, Owner, Kind and Count in
// Owned and Lost.
type Tenure struct {
	State    State
	Number   uint64
	Grant    uint64
	Owner    uint64
	Kind     Kind
	Count    int
	HandOffs int
}

// WaiterInfo is a copy of what is known about a queued waiter.
type WaiterInfo struct {
	Owner uint64
	Kind  Kind
	Note  any
	Need  int64     // units, of a Gate
	Since time.Time // when it was first queued, with a monotonic reading
}

// Word returns the state word without taking the lock.
func (s *Synchronizer) Word() Word { return Word(s.word.Load()) }

// OwnedBy reports whether the goroutine owner, which must be the calling one, owns the lock, or has lost it and not
// exited yet, and whether it was admitted by a NoNotify kind. It takes no lock. A byLock of true is exact and stays so
// until the goroutine itself exits; a tenure of another kind may be ended by anybody at any moment.
//
// Only the goroutine itself can become the owner, and it sees its own writes. After its exit, a word that says Owned
// is that of a later tenure, which wrote its owner before: so the word is read first.
func (s *Synchronizer) OwnedBy(owner uint64) (owned, byLock bool) {
	if s.Word().Count() == 0 || owner == 0 {
		return false, false
	}
	o := s.owner.Load()
	return o>>1 == owner, o == ownership(owner, NoNotify)
}

// ownership packs the value of Synchronizer.owner.
func ownership(owner uint64, kind Kind) uint64 {
	if kind.CanNotify() || owner == 0 {
		return owner << 1
	}
	return owner<<1 | 1
}

// Front is a consistent copy of who owns the lock and of who waits longest for it.
type Front struct {
	Current Tenure
	// Waiting is the number of waiters; First is the head, which has waited longest unless a First waiter is before it.
	Waiting int
	First   WaiterInfo
	// OwnerWaits: the goroutine that owns the lock has queued for it behind itself. It may have left the queue since.
	// Never true for owner 0, which means no goroutine.
	OwnerWaits bool
}

// Current returns the state and the tenure, both from the same moment.
func (s *Synchronizer) Current() Tenure {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.currentLocked()
}

func (s *Synchronizer) currentLocked() Tenure {
	word := s.Word()
	t := Tenure{State: word.State(), Count: word.Count(), HandOffs: word.HandOffs()}
	if t.State != Free && t.State != Acquiring {
		t.Grant = s.grant
	}
	if t.Count > 0 {
		t.Number, t.Owner, t.Kind = s.number, s.ownerLocked(), s.kind
	}
	return t
}

// ownerLocked returns the goroutine id of the current tenure, or 0.
func (s *Synchronizer) ownerLocked() uint64 {
	if s.Word().Count() == 0 {
		return 0
	}
	return s.owner.Load() >> 1
}

// Len returns the number of waiters.
func (s *Synchronizer) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiters.len
}

// Peek returns the tenure, the first waiter and the first n of them, or all with a negative n, all from the same
// moment. It holds the lock for the walk over those n, so it costs the lock path in proportion: meant for a person,
// not for a loop.
func (s *Synchronizer) Peek(n int) (Front, []WaiterInfo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.frontLocked()
	if n < 0 || n > f.Waiting {
		n = f.Waiting
	}
	infos := make([]WaiterInfo, 0, n)
	for w := s.waiters.head; len(infos) < n; w = w.next {
		infos = append(infos, s.infoLocked(w))
	}
	return f, infos
}

// Front returns the tenure and the first waiter, both from the same moment, and false if nobody waits. Its cost
// does not depend on the number of waiters.
func (s *Synchronizer) Front() (f Front, waited bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiters.len == 0 {
		return Front{}, false
	}
	return s.frontLocked(), true
}

func (s *Synchronizer) frontLocked() Front {
	f := Front{Current: s.currentLocked(), Waiting: s.waiters.len}
	f.OwnerWaits = s.ownerWaits && f.Current.Count > 0
	if f.Waiting > 0 {
		f.First = s.infoLocked(s.waiters.head)
	}
	return f
}

// AppendWaiting appends the goroutines of the waiters to ids, first to last. Like Peek it holds the lock for the
// walk, but it copies eight bytes for each, and allocates nothing if ids has the capacity.
func (s *Synchronizer) AppendWaiting(ids []uint64) []uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := s.waiters.head; w != nil; w = w.next {
		ids = append(ids, w.Owner)
	}
	return ids
}

// Find returns what is known about the goroutine owner if it waits. It walks the queue. Owner 0 means no
// goroutine and is never found.
func (s *Synchronizer) Find(owner uint64) (WaiterInfo, bool) {
	if owner == 0 {
		return WaiterInfo{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := s.waiters.head; w != nil; w = w.next {
		if w.Owner == owner {
			return s.infoLocked(w), true
		}
	}
	return WaiterInfo{}, false
}

func (s *Synchronizer) infoLocked(w *Waiter) WaiterInfo {
	return WaiterInfo{Owner: w.Owner, Kind: w.Kind, Note: w.Note, Since: s.zero.Add(w.Began)}
}
