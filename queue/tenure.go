package queue

import "errors"

// Exit is the result of Synchronizer.Exit.
type Exit uint8

const (
	// Stale: the tenure is not the current one, or it has ended; nothing changed.
	Stale Exit = iota
	// Nested: one unit exited, others remain. The tenure may be lost.
	Nested
	// HandedOff: the last unit exited, and the grant waits for the next local owner.
	HandedOff
	// Final: the last unit exited, and the state is Releasing; the order is SendRelease.
	Final
	// WasLost: the last unit of a lost tenure exited. There is nothing to release: the key is Free, or a new attempt
	// begins.
	WasLost
)

// String returns the result's name.
func (e Exit) String() string {
	switch e {
	case Stale:
		return "Stale"
	case Nested:
		return "Nested"
	case HandedOff:
		return "HandedOff"
	case Final:
		return "Final"
	case WasLost:
		return "WasLost"
	}
	return "Exit(?)"
}

// Exit takes one unit off the count of the tenure with that number. When the last unit exits, the grant passes to the
// next waiter if mayHandOff says that it is fit for a hand-off, somebody waits and the count of hand-offs has room
// (I10); otherwise it is released. An Exit of a tenure that is not the current one returns Stale and changes nothing
// (I7), so a late or repeated exit never frees a successor.
func (s *Synchronizer) Exit(number uint64, mayHandOff bool) (Exit, Order) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if number == 0 || number != s.number {
		return Stale, Nothing
	}
	word := s.Word()
	if word.Count() > 1 {
		s.setLocked(word.State(), word.Count()-1, word.HandOffs())
		return Nested, Nothing
	}
	s.endTenureLocked()
	if word.State() == Lost {
		return WasLost, s.restartLocked()
	}
	if mayHandOff && s.waiters.len > 0 && word.HandOffs() < MaxHandOffs {
		return HandedOff, s.offerLocked(word.HandOffs() + 1)
	}
	s.setLocked(Releasing, 0, word.HandOffs())
	return Final, SendRelease
}

// Why a tenure cannot be re-entered. Nothing has changed.
var (
	ErrNotOwner   = errors.New("queue: the caller does not own the lock")
	ErrCountLimit = errors.New("queue: the count is at its limit") // MaxCount (I9)
	ErrWasLost    = errors.New("queue: the caller's tenure is lost")
)

// ReenterOwner adds a unit if the goroutine owner, which must be the calling one, owns the lock by a Deaf kind; one
// more Exit is due then. A lost tenure is re-entered only with allowLost. The error is ErrNotOwner, ErrCountLimit or
// ErrWasLost. The number is that of the tenure concerned, or 0 with ErrNotOwner; owner 0 is never the owner.
func (s *Synchronizer) ReenterOwner(owner uint64, allowLost bool) (number uint64, err error) {
	// Most callers are not the owner and learn it without the lock; the field owner says why that is sound.
	if _, byLock := s.OwnedBy(owner); !byLock {
		return 0, ErrNotOwner
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// Checked again: the tenure may have been expelled meanwhile, if its goroutine was taken for ended.
	if _, byLock := s.OwnedBy(owner); !byLock {
		return 0, ErrNotOwner
	}
	return s.number, s.reenterLocked(allowLost)
}

// ReenterTenure adds a unit if the tenure with that number is the current one and not lost. The error is
// ErrCountLimit, ErrWasLost for a lost tenure of a Deaf kind, or ErrNotOwner; a lost tenure of another kind has
// ended, which is also ErrNotOwner. Any goroutine may call it.
func (s *Synchronizer) ReenterTenure(number uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if number == 0 || number != s.number {
		return ErrNotOwner
	}
	return s.reenterLocked(false)
}

// reenterLocked adds a unit to the current tenure, which must exist: the state is Owned or Lost.
func (s *Synchronizer) reenterLocked(allowLost bool) error {
	word := s.Word()
	switch {
	case word.State() == Lost && !allowLost:
		return ErrWasLost
	case word.Count() == MaxCount:
		return ErrCountLimit
	}
	s.setLocked(word.State(), word.Count()+1, word.HandOffs())
	return nil
}

// GiveBack undoes the admission of w: before its caller returned to its own caller, it found that the grant is no
// longer valid (the process was stopped, or the wake-up came late). w goes back to the head of the queue, and its
// caller must call Wait again and carry out the order: StartAttempt where this began a new attempt, RecallAttempt
// where a Try kind joined one. What happens to the invalid grant in Redis is up to the caller; here it is dropped.
//
// If the tenure was lost meanwhile, w becomes head in the present state of the queue, except that a Try kind fails
// with ErrRefused where it would have to wait for another owner (I12); Wait returns that. A head that is owed the
// next grant stays before w (I6). It panics if w was not admitted.
func (s *Synchronizer) GiveBack(w *Waiter) Order {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.phase != phaseIn {
		panic("queue: GiveBack of a Waiter that was not admitted")
	}
	current := s.number != 0 && s.number == w.Number
	state := s.Word().State()
	if !current && w.Kind.IsTry() && (state == Owned || state == Lost) {
		w.makeReady(s)
		w.expel(ErrRefused)
		return Nothing
	}
	var before *Waiter
	for other := s.waiters.head; other != nil; other = other.next {
		if other.owed {
			before = other // it may be behind waiters that were given back before it was woken in vain
		}
	}
	s.enqueueLocked(before, w)
	w.Grant, w.Number, w.HandOffs = 0, 0, 0
	switch {
	case current:
		s.endTenureLocked()
		return s.restartLocked()
	case state == Free:
		return s.restartLocked()
	case state == Granted:
		// The head may have changed; the one that was woken before finds that it is not first and parks again (I4).
		return s.offerLocked(s.Word().HandOffs())
	case state == Acquiring && w.Kind.IsTry():
		return RecallAttempt // the driver may be waiting for a release, which a Try does not wait for (I12)
	}
	return Nothing
}
