package queue

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// StarvationThreshold is how long a waiter of a non-fair Synchronizer may be passed: nobody passes one that is unparked
// in vain after that. The value is that of Go's own sync.Mutex, for the same reason: below it barging buys throughput;
// above it the tail of the waiting times pays for it.
const StarvationThreshold = time.Millisecond

// MaxHandOffs is the largest number of hand-offs within one turn of a Mutex (I9).
const MaxHandOffs = 65535

// Policy is all in which a Mutex, an RWMutex and a Semaphore differ. It is never changed; many Synchronizers may share one.
type Policy struct {
	// All is how many units a waiter needs to be alone: 1 for a Mutex. 0: a Semaphore, where nobody needs to be.
	All int32
	// Fair: waiters are admitted in the order of arrival. A Semaphore is always fair.
	Fair bool
	// Returns: units that nobody here uses or waits for go back at once, unless the last one has let them Linger. Otherwise
	// the caller decides when they do: see Demand.
	Returns bool
	// Turn is how long a turn lasts at most while another process waits; see Contended. A Mutex ends its turns by Release.
	Turn time.Duration
	// Zero is the moment from which moments are counted, with a monotonic reading.
	Zero time.Time

	sem *semaphore // of one Synchronizer alone; nil of other locks. Here it costs a Mutex no memory
}

// Order is what the caller of a transition must do now, outside the lock. Each is given to one caller (I2), and nobody else
// carries it out: if it is dropped, the key hangs. A caller that reads Demand and sends that in any case may drop a Restate.
type Order uint8

const (
	// Nothing is to be done.
	Nothing Order = iota
	// Restate: what the server must be told has changed. Read Demand, and send that.
	Restate
	// GiveBack: nobody may use the units any more, nor does. Shrink to 0 and release them in the server. It is given
	// only with Policy.Returns.
	GiveBack
)

// String returns the order's name.
func (o Order) String() string { return nameOf(o, "Nothing", "Restate", "GiveBack") }

// Synchronizer admits the goroutines of one process to one key by units that a server has granted to the process. It
// decides whom, and says what the server must be told; it talks to nobody itself. All methods are safe for concurrent
// use. Make one with Init; it must not be copied.
//
// In the terminology of the Go memory model, the Release of an exclusive stay synchronizes before the next admission, and
// those of shared ones before that of the next exclusive one. That holds within this process.
type Synchronizer struct {
	word  atomic.Uint64        // see word.go
	until atomic.Int64         // from this moment on nobody comes in by the word: the deadline or the end of the turn
	owner atomic.Pointer[Stay] // the exclusive stay; nil for a moment at both ends of one that is by the word
	grant atomic.Uint64        // the number of the present one, or of the lost one on which somebody relies; 0: none. Written under mu

	// mu makes each transition one step, but for those by the word. Nothing blocks and nobody is called while it is held.
	// It is held for a walk over the queue in Fail, Peek, AppendWaiting and Find, when shared waiters come in together, and past
	// those that Take when another one does.
	mu      sync.Mutex
	waiters fifo
	heir    *Waiter // unparked, but not admitted, and has not run yet: the gate is open for it and for newcomers
	owed    int32   // of the waiters, those that nobody may pass
	units   int32   // that the server has granted
	held    int32   // shared units inside whose owners can be notified of a loss
	loose   int32   // permits inside whose owners cannot. Such readers are in the word

	deadline  time.Duration // the units count until then
	turnEnds  time.Duration // a contended process gives way from then on
	base      uint32        // the admissions before this turn
	losses    uint32        // so many: each ends the stays of those that can be notified
	contended bool          // another process waits
	over      bool          // the turn is: nobody comes in before the next grant
	lingers   bool          // the last one has let the units linger
	lost      bool          // somebody inside relies on lost units and cannot be notified
	closed    bool          // for good
	selfWait  bool          // see Demand.OwnerWaits

	statedFlags            needFlags // what somebody was last ordered to state, field by field for their size
	statedKeep, statedWant int32

	p *Policy
}

// Init makes the zero s a Synchronizer without units. It is called once, before anybody else knows s.
func (s *Synchronizer) Init(p *Policy) {
	s.p = p
	if p.All == 0 {
		own := *p
		own.sem = &semaphore{named: map[*Stay]int64{}}
		s.p = &own
	}
	s.word.Store(closedBit)
}

// Acquire admits w immediately or queues it: as the last, unless it is First or Takes. It never blocks. If in is true, w
// must Release. The only error is ErrRefused, for a Try: w is not queued, and is used up. Otherwise the caller must call
// Park. The order must be carried out in any case, before or during that. It panics if w was used or needs nothing.
func (s *Synchronizer) Acquire(w *Waiter) (in bool, order Order, err error) {
	if w.phase != phaseNew || w.Need < 1 {
		panic("queue: Acquire with a Waiter that has been used or needs nothing")
	}
	if s.p.All == 1 && s.acquireByWord(w) {
		return true, Nothing, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	free := (s.waiters.len == 0 || s.heir != nil && !w.Kind.IsTry()) && s.admitsLocked()
	switch {
	case free && !s.barredLocked(w) && s.sufficesLocked(w):
		s.admitLocked(w)
		in = true
	case w.Kind.IsTry() && (s.waiters.len > 0 || s.over || s.lost || s.barredLocked(w) || s.sufficesLocked(w)):
		w.phase, err = phaseOut, ErrRefused
	default: // a Try waits for the answer of the server only (I10)
		s.enqueueLocked(w)
		if s.waiters.tail == w && s.waiters.len > 1 && s.heir == nil && !s.contended && s.statedWant > 0 {
			return false, Nothing, nil // behind others, for whom something is asked for, it changes nothing
		}
	}
	return in, s.settleLocked(false), err
}

// ErrRefused is what Acquire returns to a Try that would have to wait for more than an answer of the server.
var ErrRefused = errors.New("queue: refused: the lock is held by another, or another waits for it")

// Park waits until w is admitted (nil), ctx ends (context.Cause(ctx)), or w fails with the error given to Refuse or Fail.
// On an error w is out and used up. The order must be carried out in any case. A context that has ended wins over an
// admission, up to the moment of return (I11), and a failure over both. It is called once for each Acquire that queued w, by
// one goroutine.
func (s *Synchronizer) Park(ctx context.Context, w *Waiter) (Order, error) {
	if w.ready == nil {
		panic("queue: Park with a Waiter that was never queued")
	}
	done := ctx.Done()
	for {
		if decided := w.park(done); decided && !isClosed(done) {
			return Nothing, w.failure
		}
		if order, err, over := s.checkWaiter(isClosed(done), w); over {
			if err == errEnded { //nolint:errorlint // ctx may be the user's own, which is not called under mu
				err = context.Cause(ctx)
			}
			return order, err
		}
	}
}

// errEnded stands for the cause of a context.
var errEnded = errors.New("queue: the context has ended")

// checkWaiter finds what has become of w, which was unparked or whose context has ended. over: Park returns.
func (s *Synchronizer) checkWaiter(ended bool, w *Waiter) (order Order, err error, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.woken = false
	switch {
	case w.failure != nil:
		return Nothing, w.failure, true
	case ended && w.phase == phaseIn:
		_, exclusive := s.leaveLocked(w.Stay, w.Of)
		w.phase = phaseOut
		return s.settleLocked(exclusive), errEnded, true
	case ended:
		s.dequeueLocked(w)
		w.phase = phaseOut
		return s.settleLocked(false), errEnded, true
	case w.phase == phaseIn:
		return Nothing, nil, true
	case s.heir != nil && s.admitsLocked() && !s.barredLocked(w) && s.sufficesLocked(w):
		s.dequeueLocked(w)
		s.admitLocked(w)
		return s.settleLocked(false), nil, true
	}
	if s.heir == w {
		s.heir = nil
		s.closeLocked()
	}
	if s.now()-w.Began > StarvationThreshold {
		s.oweLocked(w)
	}
	return Nothing, nil, false
}

// now is the present moment, counted from the policy's Zero.
func (s *Synchronizer) now() time.Duration { return time.Since(s.p.Zero) }
