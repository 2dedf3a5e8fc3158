package queue

import (
	"errors"
	"math"
	"time"
)

// This file is for the code that talks to the server: what it sends, and what it reports here.

// Forever is the deadline of units that the caller checks itself.
const Forever time.Duration = 1<<63 - 1

// need is the part of a Demand that makes a command.
type need struct {
	keep, want     int32
	flags          needFlags
	keepOf, wantOf int64 // of a Semaphore
}

type needFlags uint8

const (
	needAgain needFlags = 1 << iota
	needTry
	needIdle
	needBarred
	needBack // with Policy.Returns: nobody uses the units, and nobody may
)

// needLocked is the part of the Demand that makes a command.
func (s *Synchronizer) needLocked() (n need) {
	if s.lost {
		return n // those inside rely on units that are gone, and nobody else could use any
	}
	used, head := s.usedLocked(), s.waiters.head
	n.keep = s.units
	if s.over {
		n.keep = used
	}
	if s.p.sem != nil {
		s.p.sem.need(&n, head, used)
	}
	n.want = n.keep
	if head != nil {
		n.want = max(n.keep, s.withLocked(head))
		if head.Kind.IsTry() {
			n.flags |= needTry
		}
		if s.over && n.want == n.keep && s.word.Load()&exclusiveBit == 0 {
			n.flags |= needAgain
		}
	}
	if s.units > 0 && used == 0 {
		switch {
		case !s.p.Returns && head == nil && s.since(s.word.Load()) == 1:
			n.flags |= needIdle
		case s.p.Returns && s.over:
			n.flags |= needBack
		}
	}
	return n
}

// usedLocked is how many units those inside need.
func (s *Synchronizer) usedLocked() int32 {
	word := s.word.Load()
	switch {
	case s.lost:
		return 0
	case word&exclusiveBit != 0:
		return s.p.All
	case s.p.All == 0:
		return s.held + s.loose
	case s.held > 0 || word&insideMask > 0:
		return 1
	}
	return 0
}

// Granted reports that the server has granted what was asked for, by an answer or a call: so many units in all, until the
// deadline, under a number that is not 0 and changes with each grant to a process that had none. The waiter whom they are
// for comes in, even if the turn is over. A turn begins if the process had nothing, or did not know that another waits.
// contended: another process waits.
//
// With Policy.Returns it returns false, and nothing has changed, if nobody here wants them (any more), and the caller gives
// them back. Otherwise it returns true: Demand says how many are kept.
func (s *Synchronizer) Granted(grant uint64, units int64, contended bool, deadline time.Duration) (taken bool, order Order) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.p.Returns && (s.units > 0 || s.lost || s.waiters.len == 0) {
		return false, Nothing
	}
	if s.units == 0 || !s.contended {
		s.base = numberOf(s.word.Load())
		if s.p.Turn > 0 {
			s.turnEnds = s.now() + s.p.Turn
		}
	}
	s.grant.Store(grant)
	s.units, s.deadline, s.contended, s.over = int32(units), deadline, false, false
	if head := s.waiters.head; head != nil {
		s.oweLocked(head)
	}
	if w := s.passLocked(false); w != nil { // before the turn may be over
		w.unpark(true)
	}
	return true, s.renewedLocked(contended)
}

// Renewed reports an answer that grants nothing new: the units count until the deadline. contended: another process waits.
func (s *Synchronizer) Renewed(contended bool, deadline time.Duration) Order {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deadline = deadline
	return s.renewedLocked(contended)
}

// Contended reports that another process waits, or that the moment TurnEnds has come. From the end of the turn on nobody
// comes in, and the units that are not used go back.
func (s *Synchronizer) Contended() Order {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.renewedLocked(true)
}

func (s *Synchronizer) renewedLocked(contended bool) Order {
	s.contended, s.over = contended, s.over && contended
	until := int64(s.deadline)
	if contended {
		until = min(until, int64(s.turnEnds))
	}
	if until != s.until.Load() {
		s.until.Store(until)
	}
	s.admitsLocked()
	return s.settleLocked(false)
}

// Shrink gives back all units but keep, before the command is sent that says so. False: those inside need more, since
// somebody came in meanwhile, and nothing has changed.
func (s *Synchronizer) Shrink(keep int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shrinkLocked(keep)
}

func (s *Synchronizer) shrinkLocked(keep int64) bool {
	s.word.Or(closedBit) // close first, then count
	ok := int64(s.usedLocked()) <= keep
	if ok && keep < int64(s.units) {
		s.units = int32(keep)
		if keep == 0 {
			s.grant.Store(0)
			s.contended, s.over, s.lingers = false, false, false
			if s.p.sem != nil {
				s.p.sem.of = 0
			}
		}
	}
	s.settleLocked(false) // the caller sends what is needed now
	return ok
}

// EndLinger ends a linger: GiveBack if the units lingered, else nothing has changed.
func (s *Synchronizer) EndLinger() Order {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.lingers {
		return Nothing
	}
	s.word.Or(closedBit)
	s.lingers = false
	return s.settleLocked(false)
}

// Lose reports that the units of that grant are gone in the server, or too old to be trusted. Those inside that can be
// notified are not inside any more, and their exits change nothing. The others keep new ones out until they have left.
// It returns the exclusive one that was inside. If the grant is not the present one, or is being given back, nothing has
// changed: the release wins.
func (s *Synchronizer) Lose(grant uint64) (who *Stay, order Order) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if grant != s.grant.Load() || s.units == 0 || s.statedFlags&needBack != 0 {
		return nil, Nothing
	}
	s.word.Or(closedBit) // close first, then count
	if who = s.owner.Load(); who != nil && who.Kind.CanNotify() {
		s.owner.Store(nil)
		s.word.And(^uint64(exclusiveBit))
	}
	if s.p.sem != nil {
		s.p.sem.lose()
	}
	s.losses++
	s.units, s.held, s.contended, s.over, s.lingers, s.lost = 0, 0, false, false, false, true
	return who, s.settleLocked(false)
}

// Close lets nobody in any more. Who waits stays, until Fail or the end of its context.
func (s *Synchronizer) Close() Order {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return s.settleLocked(false)
}

// Refuse reports that the server refused what was asked for or gave no usable answer: a Try that waits, which is the first
// then (I10), fails with err, all others stay. It panics if err is nil, which Park would return as success.
func (s *Synchronizer) Refuse(err error) Order { return s.fail(err, 1, Kind.IsTry) }

// Fail ends the wait of every Refusable waiter with err. It panics if err is nil, which Park would return as success.
func (s *Synchronizer) Fail(err error) Order { return s.fail(err, math.MaxInt, Kind.IsRefusable) }

// fail ends the wait of those among the first n waiters that fails says.
func (s *Synchronizer) fail(err error, n int, fails func(Kind) bool) Order {
	if err == nil {
		panic(errors.New("queue: a waiter cannot fail with a nil error"))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := s.waiters.head; w != nil && n > 0; n-- {
		next := w.next
		if fails(w.Kind) {
			if s.heir == w {
				s.heir = nil
			}
			s.dequeueLocked(w)
			w.phase, w.failure = phaseOut, err
			w.unpark(true)
		}
		w = next
	}
	return s.settleLocked(false)
}
