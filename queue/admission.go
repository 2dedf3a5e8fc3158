package queue

import "time"

// StarvationThreshold is how long a waiter of a non-fair Synchronizer may be passed: one that is woken in vain after
// waiting longer than this gets the next grant or hand-off, and no newcomer may take it. The value is that of Go's
// own sync.Mutex, for the same reason: below it barging buys throughput; above it the tail of the waiting times pays
// for it.
const StarvationThreshold = time.Millisecond

// This file answers "May this waiter be admitted?". The answer depends on the state, on which waiter is head, and on
// what the waiter says of itself, never on how the list is built.

// mayBargeLocked reports whether the newcomer w may take the grant although others wait: only while nobody owns it, only
// in non-fair mode, only if it can use the grant, and never past a head that is owed the next one (I5, I6). Granted
// implies that somebody waits (I4), so the queue is not empty here.
func (s *Synchronizer) mayBargeLocked(w *Waiter) bool {
	return s.Word().State() == Granted && !s.fair && !w.NoBarge && !s.waiters.head.owed
}

// mayTakeLocked reports whether a queued waiter may be admitted: only the head may take a grant that nobody owns.
func (s *Synchronizer) mayTakeLocked(w *Waiter) bool {
	return s.Word().State() == Granted && s.waiters.head == w
}

// mayShareLocked reports whether a Try kind may queue for the answer of an attempt: the running one, the one that
// follows the release in progress, or a first one. It may not where there is an owner (it would wait for that owner,
// I12), nor behind a waiter that stays after a refusal (that one is ahead of it, so the grant would not be the
// Try's).
func (s *Synchronizer) mayShareLocked() bool {
	switch s.Word().State() {
	case Free, Acquiring, Releasing:
		return !s.waiters.hasPatient()
	default:
		return false
	}
}

// wokenInVainLocked notes that w was woken and may not be admitted: a newcomer took the grant, the grant was lost, or
// a given-back waiter is now before it. Past the threshold w is owed the next one. The mark belongs to the waiter and
// leaves the queue with it, so a head that gives up does not pass its privilege to a waiter that has only just
// arrived.
func (s *Synchronizer) wokenInVainLocked(w *Waiter) {
	if !s.fair && s.now()-w.Began > StarvationThreshold {
		w.owed = true
	}
}

// admitLocked makes w the owner of the grant: a new tenure begins, with count 1. Try kinds that are still queued are
// thereby refused (I12).
func (s *Synchronizer) admitLocked(w *Waiter) {
	handOffs := s.Word().HandOffs()
	s.lastNumber++
	s.number = s.lastNumber
	s.kind = w.Kind
	s.owner.Store(ownership(w.Owner, w.Kind))
	s.setLocked(Owned, 1, handOffs)

	w.phase = phaseIn
	w.owed = false
	w.Grant, w.Number, w.HandOffs = s.grant, s.number, handOffs
	if s.waiters.tries > 0 {
		s.failLocked(Kind.IsTry, ErrRefused)
	}
}

// failLocked removes all queued waiters of the chosen kinds, wakes them with err, and returns how many there were.
// O(number of waiters).
func (s *Synchronizer) failLocked(chosen func(Kind) bool, err error) int {
	n := 0
	for w := s.waiters.head; w != nil; {
		next := w.next
		if chosen(w.Kind) {
			s.waiters.remove(w)
			w.expel(err)
			n++
		}
		w = next
	}
	return n
}

// expel ends the wait of w, which is not linked, with err. The caller holds mu.
func (w *Waiter) expel(err error) {
	w.phase = phaseOut
	w.failure = err
	w.wake()
}
