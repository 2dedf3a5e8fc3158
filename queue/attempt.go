package queue

// This file is for the code that talks to Redis about the key: it reports here what became of the grant.

// Granted reports that Redis granted the key, under a number that no other grant of this Synchronizer has. True: the
// state was Acquiring, and the grant is the head's, or a newcomer's that is quicker. False: nobody wants the grant, or
// there is another; nothing has changed, and the caller gives it back.
func (s *Synchronizer) Granted(grant uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Word().State() != Acquiring {
		return false
	}
	s.grant = grant
	s.offerLocked(0)
	return true
}

// Refuse reports that Redis refused the key or gave no usable answer: a queued Try fails with err, all others stay.
// The state becomes Free if nobody else waits; no order says so, since the caller goes by the state in any case. It
// panics if err is nil, which Wait would return as success.
func (s *Synchronizer) Refuse(err error) {
	mustFailWith(err)
	s.mu.Lock()
	defer s.mu.Unlock()
	if head := s.waiters.head; head != nil && head.Kind.IsTry() { // I12: it is the only one
		s.failLocked(head, err)
		s.departedLocked()
	}
}

// Fail ends the wait of every Refusable waiter with err. The order is for the caller: SendRelease if the grant was
// meant for one of them and no waiter remains, EndAttempt if none remains that wants the key. It panics if err is nil,
// which Wait would return as success.
func (s *Synchronizer) Fail(err error) Order {
	mustFailWith(err)
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := s.waiters.head; w != nil; {
		next := w.next
		if w.Kind.IsRefusable() {
			s.failLocked(w, err)
		}
		w = next
	}
	return s.departedLocked()
}

// failLocked takes w out of the queue and ends its wait with err.
func (s *Synchronizer) failLocked(w *Waiter, err error) {
	s.waiters.remove(w)
	w.phase, w.failure = phaseOut, err
	w.wake(true)
}

// EndLinger leads from Lingers to Releasing. In any other state it changes nothing.
func (s *Synchronizer) EndLinger() Order {
	s.mu.Lock()
	defer s.mu.Unlock()
	word := s.Word()
	if word.State() != Lingers {
		return Nothing
	}
	s.setLocked(Releasing, 0, word.HandOffs())
	return SendRelease
}

func mustFailWith(err error) {
	if err == nil {
		panic("queue: a waiter cannot fail with a nil error")
	}
}

// Released ends the Releasing state: the state becomes Free, or Acquiring with StartAttempt if somebody waits. It
// panics unless the state is Releasing, since two parties then believe that they release the key, which would sooner
// or later break exclusion without a trace.
func (s *Synchronizer) Released() Order {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state := s.Word().State(); state != Releasing {
		panic("queue: Released while " + state.String())
	}
	return s.restartLocked()
}

// Lose reports that grant is gone in Redis, or is too old to be trusted. One step on the word decides between loss
// and hand-off, so a grant is lost either by exactly one owner or while nobody owned it (I8). It returns what it found,
// with the state:
//
//   - Free: there was nothing to lose. The grant is not the current one, was lost before, or is being released, and
//     the release wins. Nothing changed.
//   - Granted: nobody owned the grant yet. A new attempt begins for those who wait.
//   - Lingers: nobody in this process used the grant.
//   - Owned: the owner can be notified. Its tenure has ended, later exits of its units are Stale, and the queue moves
//     on.
//   - Lost: the owner is of a NoNotify kind. The lock stays closed in this process until that owner exits (I11).
//
// The order is StartAttempt if somebody waits and need not wait for the loser.
func (s *Synchronizer) Lose(grant uint64) (was Tenure, order Order) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was = s.currentLocked()
	switch {
	case grant != s.grant || was.State != Granted && was.State != Owned && was.State != Lingers:
		return Tenure{}, Nothing
	case was.State != Owned || s.kind.CanNotify():
		return was, s.restartLocked()
	}
	s.setLocked(Lost, was.Count, was.HandOffs)
	was.State = Lost
	return was, Nothing
}
