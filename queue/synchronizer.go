package queue

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Order is what the caller of a transition must do now, outside the lock. Each order is given to exactly one caller
// and nobody else carries it out: if it is dropped, the key hangs.
type Order uint8

const (
	// Nothing is to be done.
	Nothing Order = iota
	// StartAttempt: the state became Acquiring. Start the key's driver, which ends with Granted or with an Abandon that
	// answers true.
	StartAttempt
	// SendRelease: the state became Releasing, or stays so. Release the grant in Redis, then call Released (or
	// Resumed, if the grant was kept).
	SendRelease
	// RecallAttempt: the waiters that the driver works for have changed. The last one left the queue, or a Try kind
	// entered an empty one or was given back (the driver may have had its refusal already, and a Try must not wait for
	// a release). Wake the driver: it calls Abandon, and where that returns false it attempts at once. The wake-up must
	// be kept until the driver next waits; one that finds no driver is void.
	RecallAttempt
)

// String returns the order's name.
func (o Order) String() string {
	switch o {
	case Nothing:
		return "Nothing"
	case StartAttempt:
		return "StartAttempt"
	case SendRelease:
		return "SendRelease"
	case RecallAttempt:
		return "RecallAttempt"
	}
	return "Order(?)"
}

// Synchronizer admits the goroutines of one process to one key, one after the other. It decides whom, and orders what
// Redis must be asked; it asks nothing itself. All methods are safe for concurrent use. Make one with New or Init; it
// must not be copied.
//
// In the terminology of the Go memory model, the Exit that ends a tenure synchronizes before the return of the Enter
// or Wait that begins the next one. That holds within this process; what a holder may assume of other processes
// depends on the lease (docs/guarantees.md).
type Synchronizer struct {
	// word is the state. Written under mu only; read without it by Word.
	word atomic.Uint32

	// These fields are here for their size: they fill word's eight bytes, and a process may have 100,000
	// Synchronizers. All but fair are guarded by mu.
	kind       Kind // of the current tenure
	ownerWaits bool // see Front
	fair       bool // written by Init only

	// owner is the goroutine id of the current tenure, or 0, and its lowest bit tells whether the tenure is of a Deaf
	// kind. Written under mu only. A goroutine that reads another id than its own here is not the owner: only the
	// goroutine itself could have become the owner, and it sees its own writes.
	owner atomic.Uint64

	// mu makes each transition one step. Held for a few loads and stores, and for a walk over the queue where Try
	// kinds or Refusable waiters fail, in GiveBack, and in Front, AppendWaiting and Find. Nothing blocks and nobody
	// is called while it is held.
	mu         sync.Mutex
	waiters    fifo
	grant      uint64 // of the states Granted, Owned, Releasing and Lost; else 0
	number     uint64 // of the tenure, in the states Owned and Lost; else 0
	lastNumber uint64 // the last one given: no number is used twice

	zero time.Time // from which moments are counted, with a monotonic reading; written by Init only
}

// Init makes the zero s a free Synchronizer. A fair one admits in the order of arrival. A non-fair one lets a newcomer
// take a grant that nobody owns yet, which saves the switch to a parked goroutine; see StarvationThreshold for the bound.
// Init is called once, before anybody else knows s. Moments are counted from zero, which has a monotonic reading: see
// Waiter.Began.
func (s *Synchronizer) Init(fair bool, zero time.Time) { s.fair, s.zero = fair, zero }

// now is the present moment, counted from zero. Waiters are timed by it instead of the time of day: it reads one
// clock where time.Now reads two, and takes a third of the space.
func (s *Synchronizer) now() time.Duration { return time.Since(s.zero) }

// setLocked is the only place that writes the word.
func (s *Synchronizer) setLocked(state State, count, handOffs int) {
	s.word.Store(uint32(pack(state, count, handOffs)))
}

// Enter admits w at once or queues it. It never blocks. If in is true, w took a grant that nobody owned: it is the
// owner and must Exit. The only error is ErrRefused, for a Try kind that would have to wait for somebody: w is not
// queued, and is used up. Otherwise w is queued: the caller must call Wait, and carry out the order before or during
// that (StartAttempt if the key was Free; a Try kind may get RecallAttempt). It panics if w has been used before.
func (s *Synchronizer) Enter(w *Waiter) (in bool, order Order, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.phase != phaseNew {
		panic("queue: Enter with a Waiter that has been used")
	}
	if s.mayBargeLocked(w) {
		s.admitLocked(w)
		return true, Nothing, nil
	}
	if w.Kind.IsTry() && !s.mayShareLocked() {
		w.phase = phaseOut
		return false, Nothing, ErrRefused
	}
	first := s.waiters.len == 0
	s.ownerWaits = s.ownerWaits || w.Owner != 0 && s.owner.Load()>>1 == w.Owner
	s.enqueueLocked(s.waiters.tail, w)
	switch state := s.Word().State(); {
	case state == Free:
		return false, s.restartLocked(), nil
	case state == Acquiring && first && w.Kind.IsTry():
		// Between Refused and Abandon, or between the removal of the last waiter and Abandon, the driver owes no
		// answer any more. Later Try kinds share the one that this order brings.
		return false, RecallAttempt, nil
	}
	return false, Nothing, nil
}

// enqueueLocked links w behind p, or first if p is nil.
func (s *Synchronizer) enqueueLocked(p, w *Waiter) {
	w.makeReady(s)
	w.phase = phaseQueued
	s.waiters.insertAfter(p, w)
}

// Wait parks until w is admitted (nil), ctx ends (context.Cause(ctx)), or w fails: ErrRefused or the error given to
// FailTries for a Try kind, or the error given to Fail. On an error w is out of the queue and used up. The order must
// be carried out whatever the error: a waiter that gives up may have to release the grant or to recall the attempt.
//
// A context that has ended always wins, up to the moment of admission, even if the grant was there first (I13): an
// heir that is woken with an ended context passes the grant on. A failure that was decided before that is returned
// unchanged. Wait is called once for each Enter that queued w and for each GiveBack, by one goroutine. It panics if w
// was never queued.
func (s *Synchronizer) Wait(ctx context.Context, w *Waiter) (Order, error) {
	if w.ready == nil {
		panic("queue: Wait with a Waiter that is not queued")
	}
	done := ctx.Done()
	// Repeatedly: park until woken or ctx ends. Then, under the lock: if failed, return the error; else if ctx has
	// ended, leave the queue and pass on what was meant for this waiter; else if first and nobody owns the grant,
	// take it; else somebody was quicker or the grant is gone: park again at the same place.
	for {
		w.park(done)
		s.mu.Lock()
		w.woken = false
		switch {
		case w.failure != nil:
			s.mu.Unlock()
			return Nothing, w.failure
		case isClosed(done):
			order := s.giveUpLocked(w)
			s.mu.Unlock()
			return order, context.Cause(ctx)
		case s.mayTakeLocked(w):
			s.waiters.remove(w)
			s.admitLocked(w)
			s.mu.Unlock()
			return Nothing, nil
		}
		s.wokenInVainLocked(w)
		s.mu.Unlock()
	}
}

// giveUpLocked removes a queued waiter, at whatever place it is.
func (s *Synchronizer) giveUpLocked(w *Waiter) Order {
	s.waiters.remove(w)
	w.phase = phaseOut
	return s.departedLocked()
}

// departedLocked handles what the removal of one or more waiters requires. If the grant was meant for one of them,
// the next gets it; if no waiter remains, the grant is released or the attempt recalled.
func (s *Synchronizer) departedLocked() Order {
	word := s.Word()
	switch {
	case word.State() == Granted:
		return s.offerLocked(word.HandOffs())
	case word.State() == Acquiring && s.waiters.len == 0:
		return RecallAttempt
	default:
		return Nothing
	}
}

// offerLocked offers a grant that nobody owns to the head, which is woken (I4); a wake-up that is already on its way
// is enough. Without waiters nobody wants the grant: it is released.
func (s *Synchronizer) offerLocked(handOffs int) Order {
	if s.waiters.len == 0 {
		s.setLocked(Releasing, 0, handOffs)
		return SendRelease
	}
	s.setLocked(Granted, 0, handOffs)
	s.waiters.head.wake()
	return Nothing
}

// restartLocked continues without a grant: a new attempt if somebody waits, else Free (I1).
func (s *Synchronizer) restartLocked() Order {
	s.grant = 0
	if s.waiters.len == 0 {
		s.setLocked(Free, 0, 0)
		return Nothing
	}
	s.setLocked(Acquiring, 0, 0)
	return StartAttempt
}

// endTenureLocked makes every later Exit of the current tenure Stale (I7).
func (s *Synchronizer) endTenureLocked() {
	s.number = 0
	s.owner.Store(0)
	s.ownerWaits = false
}
