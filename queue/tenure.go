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
func (e Exit) String() string { return nameOf(e, "Stale", "Nested", "HandedOff", "Final", "WasLost") }

// Exit takes one unit off the count of the tenure with that number. When the last unit exits, the grant passes to the
// next waiter if mayHandOff allows a hand-off, somebody waits and the count of hand-offs has room
// (I10); otherwise it is released. An Exit of a tenure that is not the current one returns Stale and changes nothing
// (I7), so a late or repeated exit never frees a successor.
func (s *Synchronizer) Exit(number uint64, mayHandOff bool) (exit Exit, order Order) {
	s.mu.Lock()
	word := s.Word()
	switch {
	case !s.isCurrentLocked(number):
		exit = Stale
	case word.Count() > 1:
		s.setLocked(word.State(), word.Count()-1, word.HandOffs())
		exit = Nested
	case word.State() == Lost:
		exit, order = WasLost, s.restartLocked()
	case mayHandOff && s.waiters.len > 0 && word.HandOffs() < MaxHandOffs:
		exit, order = HandedOff, s.offerLocked(word.HandOffs()+1)
	default:
		s.setLocked(Releasing, 0, word.HandOffs())
		exit, order = Final, SendRelease
	}
	s.mu.Unlock()
	return exit, order
}

// Keep is Exit for the last unit of a tenure whose grant this process is to keep while nobody wants it: the state becomes
// Lingers, and the next one to enter takes the grant, which counts as a hand-off. False: somebody waits, other units remain, the
// tenure is not the current one or is lost, or the count of hand-offs has no room; nothing changed.
func (s *Synchronizer) Keep(number uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	word := s.Word()
	if !s.isCurrentLocked(number) || word.State() != Owned || word.Count() > 1 || s.waiters.len > 0 || word.HandOffs() >= MaxHandOffs {
		return false
	}
	s.setLocked(Lingers, 0, word.HandOffs()+1)
	return true
}

// isCurrentLocked reports whether the tenure with that number is the current one, lost or not. Every transition out of
// Owned and Lost ends it, and no number is used twice, so it never is again (I7).
func (s *Synchronizer) isCurrentLocked(number uint64) bool {
	return s.Word().Count() > 0 && number == s.number
}

// Why a tenure cannot be re-entered. Nothing has changed.
var (
	ErrNotOwner   = errors.New("queue: the caller does not own the lock")
	ErrCountLimit = errors.New("queue: the count is at its limit") // MaxCount (I9)
	ErrWasLost    = errors.New("queue: the caller's tenure is lost")
)

// ReenterOwner adds a unit if the goroutine owner, which must be the calling one, owns the lock by a NoNotify kind; one
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
// ErrCountLimit, ErrWasLost for a lost tenure of a NoNotify kind, or ErrNotOwner; a lost tenure of another kind has
// ended, which is also ErrNotOwner. Any goroutine may call it.
func (s *Synchronizer) ReenterTenure(number uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isCurrentLocked(number) {
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
