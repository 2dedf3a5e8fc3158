package queue

// This file is for the key's driver, the release and the lease: they report here what Redis answered.
//
// Granted, Refused and Abandon are for the driver, and there is exactly one driver while the state is Acquiring (I2).
// Released and Resumed answer SendRelease. A call out of that order means that two parties believe they are in charge
// of the key, which would sooner or later break exclusion without a trace, so Granted, Released and Resumed then
// panic.

// Granted reports that the attempt was granted, under a number that no other grant of this Synchronizer has. The
// state becomes Granted and the head is woken; without waiters the state becomes Releasing, and the order is
// SendRelease. The driver has ended with this call. It panics unless the state is Acquiring.
func (s *Synchronizer) Granted(grant uint64) Order {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mustBeLocked(Acquiring, "Granted")
	s.grant = grant
	return s.offerLocked(0)
}

// Refused reports that the attempt was refused: every Try kind fails with ErrRefused, the others stay. The driver
// must then call Abandon to learn whether anyone still waits; no order says so. In any state but Acquiring it does
// nothing.
func (s *Synchronizer) Refused() { s.FailTries(ErrRefused) }

// FailTries is Refused with another error, for an attempt that got no usable answer: a Try does not wait for the next
// attempt. It panics if err is nil, which Wait would return as success.
func (s *Synchronizer) FailTries(err error) {
	if err == nil {
		panic("queue: FailTries with a nil error")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Word().State() == Acquiring && s.waiters.tries > 0 {
		s.failLocked(Kind.IsTry, err)
	}
}

// Fail ends the wait of every Refusable waiter with err. The order is for the caller: SendRelease where the grant was
// meant for one of them and no waiter remains, RecallAttempt where none remains during an attempt (a driver that
// calls Fail itself goes on to Abandon). It panics if err is nil, which Wait would return as success.
func (s *Synchronizer) Fail(err error) Order {
	if err == nil {
		panic("queue: Fail with a nil error")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failLocked(Kind.IsRefusable, err) == 0 {
		return Nothing
	}
	return s.departedLocked()
}

// Abandon ends the attempt if nobody waits for it any more: the state becomes Free, and the driver has ended. It then
// returns true. False means that somebody waits (again) and the driver must continue: after Refused it may wait for a
// release first, after a RecallAttempt it attempts at once.
func (s *Synchronizer) Abandon() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Word().State() != Acquiring || s.waiters.len > 0 {
		return false
	}
	s.setLocked(Free, 0, 0)
	return true
}

// Released reports that the release is over, with whatever result: the state becomes Free, or Acquiring with
// StartAttempt if somebody waits. It panics unless the state is Releasing.
func (s *Synchronizer) Released() Order {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mustBeLocked(Releasing, "Released")
	return s.restartLocked()
}

// Resumed reports that the grant was kept instead of released, since no other process wants it: the state becomes
// Granted, the head is woken and the hand-offs count from 0 again. Without waiters the state stays Releasing, and the
// order is SendRelease. It panics unless the state is Releasing.
func (s *Synchronizer) Resumed() Order {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mustBeLocked(Releasing, "Resumed")
	return s.offerLocked(0)
}

// Lose reports that grant is gone in Redis, or is too old to be trusted. One step on the word decides between loss
// and hand-off, so a grant is lost either by exactly one owner or while nobody owned it (I8). It returns the state it
// found:
//
//   - Free: there was nothing to lose. The grant is not the current one, was lost before, or is being released, and
//     the release wins. Nothing changed.
//   - Granted: nobody owned the grant yet. A new attempt begins for those who wait.
//   - Owned: the owner can be notified. Its tenure has ended, later exits of its units are Stale, and the queue moves
//     on.
//   - Lost: the owner is of a Deaf kind. The lock stays closed in this process until that owner exits (I11).
//
// The order is StartAttempt where somebody waits and need not wait for the loser.
func (s *Synchronizer) Lose(grant uint64) (met State, order Order) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if grant != s.grant {
		return Free, Nothing
	}
	word := s.Word()
	switch {
	case word.State() == Granted:
		return Granted, s.restartLocked()
	case word.State() == Owned && s.kind.IsDeaf():
		s.setLocked(Lost, word.Count(), word.HandOffs())
		return Lost, Nothing
	case word.State() == Owned:
		s.endTenureLocked()
		return Owned, s.restartLocked()
	default:
		return Free, Nothing
	}
}

// mustBeLocked panics unless the state is want; call names the method in the panic.
func (s *Synchronizer) mustBeLocked(want State, call string) {
	if state := s.Word().State(); state != want {
		panic("queue: " + call + " while " + state.String())
	}
}
