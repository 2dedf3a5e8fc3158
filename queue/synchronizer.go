package queue

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// StarvationThreshold is how long a waiter of a non-fair Synchronizer may be passed: one that is woken in vain after
// waiting longer than this gets the next grant or hand-off, and no newcomer may take it. The value is that of Go's
// own sync.Mutex, for the same reason: below it barging buys throughput; above it the tail of the waiting times pays
// for it.
const StarvationThreshold = time.Millisecond

// ErrRefused is what Enter returns to a Try kind unless the key is Free or Lingers: a goroutine of this process owns it, waits
// for it, or asks for it or releases it on behalf of one that did.
var ErrRefused = errors.New("queue: refused: the lock is held by another, or another waits for it")

// Order is what the caller of a transition must do now, outside the lock. Each order is given to exactly one caller
// and nobody else carries it out: if it is dropped, the key hangs. StartAttempt and EndAttempt of different callers
// may be carried out in either order, so a caller that carries one out goes by the present state.
type Order uint8

const (
	// Nothing is to be done.
	Nothing Order = iota
	// StartAttempt: the state became Acquiring. Somebody wants the key: ask Redis for it, until Granted or Free.
	StartAttempt
	// EndAttempt: the state became Free because the last waiter left. Nobody wants the key any more.
	EndAttempt
	// SendRelease: the state became Releasing. Call Released, and release the grant in Redis.
	SendRelease
	// Restate: the Demand of a Gate has changed. State it.
	Restate
)

// String returns the order's name.
func (o Order) String() string {
	return nameOf(o, "Nothing", "StartAttempt", "EndAttempt", "SendRelease", "Restate")
}

// Synchronizer admits the goroutines of one process to one key, one after the other. It decides whom, and orders what
// Redis must be asked; it asks nothing itself. All methods are safe for concurrent use. Make one with Init; it must
// not be copied.
//
// In the terminology of the Go memory model, the Exit that ends a tenure synchronizes before the return of the Enter
// or Wait that begins the next one. That holds within this process; what a holder may assume of other processes
// depends on the lease (docs/guarantees.md).
type Synchronizer struct {
	// word is the state. Written under mu only; read without it by Word.
	word atomic.Uint32

	// These fields are here for their size: they fill word's eight bytes, and a process may have 100,000
	// Synchronizers.
	kind       Kind // of the tenure
	ownerWaits bool // see Front
	fair       bool // written by Init only

	// owner is the goroutine id of the tenure, or 0, and its lowest bit says whether the tenure is of a NoNotify kind.
	// Written under mu only, before the word that makes the tenure current; see OwnedBy.
	owner atomic.Uint64

	// mu makes each transition one step, and guards what has no rule of its own. Held for a few loads and stores, and
	// for a walk over the queue in Fail, in Peek, AppendWaiting and Find. Nothing
	// blocks and nobody is called while it is held.
	mu      sync.Mutex
	waiters fifo
	grant   uint64 // of the states Granted, Owned, Releasing and Lost; without meaning in the others
	number  uint64 // of the tenure in the states Owned and Lost, else of the last one: no number is used twice

	zero time.Time // from which moments are counted, with a monotonic reading; written by Init only
}

// Init makes the zero s a free Synchronizer. A fair one admits in the order of arrival. A non-fair one lets a newcomer
// take a grant that nobody owns yet, which saves the switch to a parked goroutine; see StarvationThreshold for the
// bound. Init is called once, before anybody else knows s. Moments are counted from zero, which has a monotonic
// reading: see Waiter.Began.
func (s *Synchronizer) Init(fair bool, zero time.Time) { s.fair, s.zero = fair, zero }

// now is the present moment, counted from zero. Waiters are timed by it instead of the time of day: it reads one
// clock where time.Now reads two, and takes a third of the space.
func (s *Synchronizer) now() time.Duration { return time.Since(s.zero) }

// setLocked is the only place that writes the word.
func (s *Synchronizer) setLocked(state State, count, handOffs int) {
	s.word.Store(uint32(pack(state, count, handOffs)))
}

// Enter admits w immediately or queues it. It never blocks. If in is true, w took a grant that nobody owned: it is the
// owner and must Exit. The only error is ErrRefused, for a Try kind unless the state is Free or Lingers: w is not queued, and is
// used up. Otherwise w is queued: the caller must call Wait, and carry out the order before or during that. It panics
// if w has been used before.
func (s *Synchronizer) Enter(w *Waiter) (in bool, order Order, err error) {
	if w.phase != phaseNew {
		panic("queue: Enter with a Waiter that has been used")
	}
	s.mu.Lock()
	word := s.Word()
	switch {
	case w.Kind.IsTry() && word.State() != Free && word.State() != Lingers:
		w.phase, err = phaseOut, ErrRefused
	case word.State() == Granted, word.State() == Lingers: // a woken head has not run yet, and is not owed (I4): w passes it
		s.admitLocked(w, word.HandOffs())
		in = true
	default:
		s.enqueueLocked(w)
		if word.State() == Free {
			order = s.restartLocked()
		}
	}
	s.mu.Unlock()
	return in, order, err
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
	w.owed = w.First || w.Takes || w.Kind.IsTry() // a Try waits for the answer that comes next and for no other (I12)
	if w.Owner != 0 && w.Owner == s.ownerLocked() {
		s.ownerWaits = true
	}
	behind := s.waiters.tail
	if w.First || w.Takes {
		behind = nil
		for other := s.waiters.head; other != nil && (other.Kind.IsTry() || other.Takes); other = other.next {
			behind = other
		}
	}
	s.waiters.insertAfter(behind, w)
}

// Wait parks until w is admitted (nil), ctx ends (context.Cause(ctx)), or w fails with the error given to Refuse or
// Fail. On an error w is out of the queue and used up. The order must be carried out after any error: a waiter that
// gives up may be the last that wants the key, or the one that was to have the grant.
//
// A context that has ended always wins, up to the moment of return, even if the grant was there first (I13). A failure
// that was decided before that is returned unchanged. Wait is called once for each Enter that queued w, by one
// goroutine. It panics if w was never queued.
func (s *Synchronizer) Wait(ctx context.Context, w *Waiter) (Order, error) {
	if w.ready == nil {
		panic("queue: Wait with a Waiter that is not queued")
	}
	done := ctx.Done()
	// doc.go has the loop in words.
	for {
		if decided := w.park(done); decided && !isClosed(done) {
			return Nothing, w.failure
		}
		s.mu.Lock()
		w.woken = false
		word := s.Word()
		switch {
		case w.failure != nil:
			s.mu.Unlock()
			return Nothing, w.failure
		case isClosed(done):
			order := s.giveUpLocked(w)
			s.mu.Unlock()
			return order, context.Cause(ctx)
		case word.State() == Granted && s.waiters.head == w:
			s.waiters.remove(w)
			s.admitLocked(w, word.HandOffs())
			s.mu.Unlock()
			return Nothing, nil
		}
		// The mark leaves the queue with w: a head that gives up does not pass its privilege to one that has just arrived.
		w.owed = w.First || w.Takes || s.now()-w.Began > StarvationThreshold
		s.mu.Unlock()
	}
}

// giveUpLocked takes w out, whose context has ended: of the queue, at whatever place it is, or of the tenure that it
// was given meanwhile. The grant then passes on as if w had left before that, with the same count of hand-offs.
func (s *Synchronizer) giveUpLocked(w *Waiter) Order {
	if w.phase == phaseQueued {
		s.waiters.remove(w)
		w.phase = phaseOut
		return s.departedLocked()
	}
	w.phase = phaseOut
	word := s.Word()
	switch {
	case !s.isCurrentLocked(w.Number): // lost, and the queue has moved on
		return Nothing
	case word.State() == Lost:
		return s.restartLocked()
	default:
		return s.offerLocked(word.HandOffs())
	}
}

// departedLocked handles what the removal of one or more waiters requires. If the grant was meant for one of them,
// the next gets it; if no waiter remains, the grant is released or the attempt ends.
func (s *Synchronizer) departedLocked() Order {
	word := s.Word()
	switch {
	case word.State() == Granted:
		return s.offerLocked(word.HandOffs())
	case word.State() == Acquiring && s.waiters.len == 0:
		s.setLocked(Free, 0, 0)
		return EndAttempt
	default:
		return Nothing
	}
}

// offerLocked passes on a grant that nobody owns. A head that nobody may pass is admitted before it runs (I5, I6); any
// other is woken to take the grant, unless a newcomer is quicker; a wake-up that is already on its way is enough (I4).
// Without waiters nobody wants the grant: it is released.
func (s *Synchronizer) offerLocked(handOffs int) Order {
	head := s.waiters.head
	switch {
	case head == nil:
		s.setLocked(Releasing, 0, handOffs)
		return SendRelease
	case s.fair || head.owed:
		s.waiters.remove(head)
		s.admitLocked(head, handOffs)
		head.ready <- true
	default:
		s.setLocked(Granted, 0, handOffs)
		head.wake(false)
	}
	return Nothing
}

// restartLocked continues without a grant: a new attempt if somebody waits, else Free (I1).
func (s *Synchronizer) restartLocked() Order {
	if s.waiters.len == 0 {
		s.setLocked(Free, 0, 0)
		return Nothing
	}
	s.setLocked(Acquiring, 0, 0)
	return StartAttempt
}

// admitLocked makes w, which is not linked, the owner of the grant: a new tenure begins, with count 1.
func (s *Synchronizer) admitLocked(w *Waiter, handOffs int) {
	s.number++
	s.kind, s.ownerWaits = w.Kind, false
	if o := ownership(w.Owner, w.Kind); o != s.owner.Load() {
		s.owner.Store(o)
	}
	s.setLocked(Owned, 1, handOffs)
	w.phase = phaseIn
	w.Grant, w.Number, w.HandOffs = s.grant, s.number, handOffs
}
