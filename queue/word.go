package queue

import "time"

// The word of a Synchronizer. All but the closed and the lingers bit may be changed without mu, by the functions of this
// file only.
//
//	 63          35     34        33         32     31                  0
//	+--------------+---------+-----------+--------+---------------------+
//	|  admissions  | lingers | exclusive | closed |   readers inside    |
//	+--------------+---------+-----------+--------+---------------------+
//
//	closed                  newcomers must take mu, and so must the last one inside
//	open, nobody inside     a reader may come in by one addition; an exclusive one of a Mutex by one compare-and-swap
//	open, readers           readers come by one addition and leave by one subtraction; after until the last one takes mu
//	open, exclusive         one that came in by the word, and leaves by it unless the gate is closed by then
//
// Admissions of all kinds count up for ever, and overflow out of the word.
const (
	insideMask     = 1<<32 - 1
	closedBit      = 1 << 32
	exclusiveBit   = 1 << 33
	lingersBit     = 1 << 34 // matters while the gate is open: no heir is on its way
	admissionShift = 35
	oneAdmission   = 1 << admissionShift
	oneReader      = oneAdmission | 1
)

// AcquireShared is the way in for a reader that cannot be notified of a loss, while the gate is open. now is a moment
// before the call. True: it must ReleaseShared. False: the caller must call Acquire: an addition in vain may have held up
// others, whose order Acquire returns. It is not for a Try, which passes nobody: the gate is open beside an heir, too.
func (s *Synchronizer) AcquireShared(now time.Duration) bool {
	if s.word.Load()&closedBit != 0 {
		return false
	}
	if s.word.Add(oneReader)&closedBit == 0 && int64(now) < s.until.Load() {
		return true
	}
	s.withdraw()
	return false
}

// withdraw takes back an addition in vain. It counted as a reader inside, so it passes on if it was the last (I12).
func (s *Synchronizer) withdraw() {
	if word := s.word.Add(^uint64(oneReader - 1)); word&(closedBit|insideMask) == closedBit {
		s.mu.Lock()
		s.arrangeLocked(false)
		s.mu.Unlock()
	}
}

// ReleaseShared is the way out for a reader, or for so many permits of a Semaphore, that cannot be notified of a loss,
// however they came in, and by any goroutine. It panics if they are not inside. now is a moment before the call.
//
// The last reader gets Restate where its exit lets units go back, even if the turn has ended and nobody has noticed that, or
// another transition has stated its exit between its two steps: it must not return before that was sent.
func (s *Synchronizer) ReleaseShared(now time.Duration, units, of int64) Order {
	if s.p.All > 0 {
		if s.word.Load()&insideMask == 0 { // before the subtraction, which would borrow the closed bit
			panic("queue: ReleaseShared without a reader inside")
		}
		word := s.word.Add(^uint64(0))
		switch inside := int32(word & insideMask); {
		case inside < 0: // two in parallel
			s.word.Add(1)
			panic("queue: ReleaseShared without a reader inside")
		case inside > 0, word&closedBit == 0 && int64(now) < s.until.Load():
			return Nothing
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.p.All == 0 {
		if units < 0 || units > int64(s.loose) {
			panic("queue: ReleaseShared of more permits than are inside")
		}
		s.loose -= int32(units)
		s.p.sem.release(units, of)
	}
	lost := s.lost
	order := s.settleLocked(false)
	if s.p.All > 0 && !lost && s.usedLocked() == 0 && (s.over || s.units == 0 || s.statedFlags&needIdle != 0) {
		return Restate
	}
	return order
}

// acquireByWord is Acquire for one of a Mutex that cannot be notified of a loss, while the gate is open: an heir is on its
// way and has not run, or the unit lingers. Of what it reads only the grant can change before it leaves, by a loss.
func (s *Synchronizer) acquireByWord(w *Waiter) bool {
	word := s.word.Load()
	if word&(closedBit|exclusiveBit) != 0 || w.Kind&(Try|NoNotify) != NoNotify || !s.word.CompareAndSwap(word, word+oneAdmission|exclusiveBit) {
		return false
	}
	w.in, w.count, w.way, w.number = true, 1, byWord, numberOf(word+oneAdmission)
	if word&lingersBit != 0 {
		w.way = whileLingering
	}
	s.owner.Store(w.Stay)
	w.phase, w.Grant, w.HandOffs = phaseIn, s.grant.Load(), s.since(word)
	return true
}

// releaseByWord is Release for one that came by the word, unless the gate was closed since: then somebody waits for that.
// Of several at once one is claimed to be the last, by the owner, and left without that it goes on under mu.
func (s *Synchronizer) releaseByWord(w *Stay) (left, claimed bool) {
	if s.word.Load()&closedBit != 0 || !s.owner.CompareAndSwap(w, nil) {
		return false, false
	}
	word := s.word.Load() // only the closed bit can change now
	return word&closedBit == 0 && s.since(word) <= MaxHandOffs && s.word.CompareAndSwap(word, word&^exclusiveBit), true
}

// since is how many of the admissions that word counts are of this turn, modulo 2^29.
func (s *Synchronizer) since(word uint64) int {
	return int(uint32(word>>admissionShift)-s.base) & (1<<29 - 1)
}

// numberOf is that of the stay whose admission word counts last.
func numberOf(word uint64) uint32 { return uint32(word >> admissionShift) }
