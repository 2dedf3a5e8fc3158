package queue

// This file is about who comes in next, and who waits.

// settleLocked ends a transition: it admits those who may come in now, and returns what the caller must do if the server
// is to know of a change. together: shared waiters come in before the first exclusive one, unless the policy is fair; so it is after an
// exclusive stay.
func (s *Synchronizer) settleLocked(together bool) Order {
	s.arrangeLocked(together)
	n, before := s.needLocked(), s.statedFlags
	of := s.p.sem != nil && s.p.sem.restated(n)
	if !of && n.keep == s.statedKeep && n.want == s.statedWant && n.flags == before {
		return Nothing
	}
	s.statedKeep, s.statedWant, s.statedFlags = n.keep, n.want, n.flags
	switch {
	case n.flags&before&needBack != 0: // who gives them back sends what is needed then
		return Nothing
	case n.flags&needBack != 0:
		return GiveBack
	}
	return Restate
}

// arrangeLocked admits those who may come in now, and opens or closes the gate. The first reader of a turn comes in while
// it is closed, so that its exit is noticed if it was the only one. together: an exclusive one may have left.
func (s *Synchronizer) arrangeLocked(together bool) {
	if s.contended {
		s.admitsLocked() // notices the end of the turn
	}
	admitted := s.passLocked(together)
	word := s.word.Load()
	if together && word&exclusiveBit == 0 {
		s.owner.Store(nil)
	}
	if s.p.Returns && s.units > 0 && s.waiters.len == 0 && !s.lingers && word&exclusiveBit == 0 {
		s.over = true
	}
	open := (s.heir != nil || s.waiters.len == 0 && (!s.p.Returns || s.lingers)) && word&exclusiveBit == 0 && s.p.All > 0 &&
		s.units > 0 && !s.over && !s.lost && !s.closed && s.since(word) > 1
	switch isOpen := word&closedBit == 0; {
	case open && !isOpen:
		if s.lingers {
			s.word.Or(lingersBit)
		} else if word&lingersBit != 0 {
			s.word.And(^uint64(lingersBit))
		}
		s.word.And(^uint64(closedBit))
	case !open && isOpen:
		s.word.Or(closedBit)
	}
	if admitted != nil {
		admitted.unpark(true) // last, since it may need mu soon
	}
}

// passLocked admits the head, and those after it as long as the units suffice. With a shared waiter all others that wait
// come in, if the policy is fair those before the first exclusive one. If it is not, and nobody is owed, they are unparked
// instead, and come in when they run, unless a newcomer is quicker. An heir whose unpark is on its way passes on, so no
// other is unparked. It returns an exclusive one that it has admitted, for its caller to unpark.
func (s *Synchronizer) passLocked(together bool) (admitted *Waiter) {
	if s.lost && s.word.Load()&(insideMask|exclusiveBit) == 0 && s.loose == 0 {
		s.lost = false
		if s.units == 0 { // else these were granted meanwhile
			s.grant.Store(0)
		}
	}
	together = together || s.heir != nil && !s.alone(s.heir.Stay)
	s.heir = nil
	if s.waiters.len == 0 || !s.admitsLocked() {
		return nil
	}
	together = together && s.waiters.exclusives < s.waiters.len
	barge := !s.p.Fair && s.p.All > 0 && s.owed == 0
	for w := s.waiters.head; w != nil; {
		next := w.next
		switch {
		case together && !s.p.Fair && s.alone(w.Stay) && !w.owed: // the shared ones behind it pass it
		case s.barredLocked(w) || !s.sufficesLocked(w):
			return nil
		case barge && s.heir == nil && (w.woken || s.alone(w.Stay)):
			s.heir = w
			w.unpark(false)
			return nil
		case barge:
			if s.heir == nil {
				s.heir = w
			}
			w.unpark(false)
			together = true
		default:
			together = s.p.All > 0
			s.dequeueLocked(w)
			s.admitLocked(w)
			if s.alone(w.Stay) {
				return w
			}
			w.unpark(true) // from here on only its goroutine knows w
		}
		w = next
	}
	return nil
}

// alone reports whether w is exclusive.
func (s *Synchronizer) alone(w *Stay) bool { return w.Need == s.p.All }

// barredLocked reports whether those inside keep w out, whatever the server grants.
func (s *Synchronizer) barredLocked(w *Waiter) bool {
	if !s.alone(w.Stay) {
		return s.word.Load()&exclusiveBit != 0
	}
	// Close first, then count: who comes in by the word after this sees the bit, and who did before is counted (I12).
	s.closeLocked()
	return s.word.Load()&(insideMask|exclusiveBit) > 0 || s.held > 0
}

// withLocked is how many units the process needs with w inside: one is enough for all readers.
func (s *Synchronizer) withLocked(w *Waiter) int32 {
	if s.p.All == 0 {
		return s.held + s.loose + w.Need
	}
	return w.Need
}

// sufficesLocked reports whether the units suffice with w inside.
func (s *Synchronizer) sufficesLocked(w *Waiter) bool {
	return s.withLocked(w) <= s.units && (s.p.sem == nil || w.Of == 0 || s.p.sem.of <= w.Of)
}

// admitsLocked reports whether anybody may come in now for whom the units suffice. It notices the end of the turn.
func (s *Synchronizer) admitsLocked() bool {
	if s.over || s.lost || s.closed || s.units == 0 {
		return false
	}
	if !s.contended && s.deadline == Forever {
		return true
	}
	now := s.now()
	s.over = s.contended && now >= s.turnEnds
	return !s.over && now < s.deadline
}

// admitLocked lets w in, which is not linked.
func (s *Synchronizer) admitLocked(w *Waiter) {
	admission := uint64(oneAdmission)
	switch {
	case s.alone(w.Stay):
		admission |= exclusiveBit
		s.owner.Store(w.Stay)
		s.selfWait = false
	case w.Kind.CanNotify():
		s.held += w.Need
	case s.p.All == 0:
		s.loose += w.Need
	default:
		admission = oneReader
	}
	word := s.word.Add(admission)
	w.in, w.count, w.way, w.losses, w.number = true, 1, byMu, s.losses, numberOf(word)
	if s.p.sem != nil {
		s.p.sem.add(w)
	}
	w.phase, w.Grant, w.HandOffs = phaseIn, s.grant.Load(), s.since(word-oneAdmission)
}

// enqueueLocked links w as the last, or if it is First or Takes, behind a Try and those that Take already.
func (s *Synchronizer) enqueueLocked(w *Waiter) {
	if w.ready == nil {
		w.ready = make(chan bool, 1)
	}
	if w.Began == 0 {
		w.Began = s.now()
	}
	w.phase = phaseQueued
	if o := s.owner.Load(); o != nil && w.Goroutine != 0 && w.Goroutine == o.Goroutine {
		s.selfWait = true
	}
	behind := s.waiters.tail
	if w.First || w.Takes {
		behind = nil
		for other := s.waiters.head; other != nil && (other.Kind.IsTry() || other.Takes); other = other.next {
			behind = other
		}
	}
	s.waiters.insertAfter(behind, w)
	if s.alone(w.Stay) {
		s.waiters.exclusives++
	}
	if w.First || w.Takes {
		s.oweLocked(w)
	}
}

// dequeueLocked unlinks w.
func (s *Synchronizer) dequeueLocked(w *Waiter) {
	s.waiters.remove(w)
	if s.alone(w.Stay) {
		s.waiters.exclusives--
	}
	if w.owed {
		s.owed--
	}
}

// oweLocked lets nobody pass w any more.
func (s *Synchronizer) oweLocked(w *Waiter) {
	if !w.owed {
		w.owed = true
		s.owed++
	}
}
