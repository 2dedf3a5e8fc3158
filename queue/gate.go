package queue

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// The word of a Gate. TryJoin and Leave change it without mu, but the closed bit is written under mu only.
//
//	 63             33   32   31                     0
//	+-----------------+--------+----------------------+
//	|   admissions    | closed |    readers inside    |
//	+-----------------+--------+----------------------+
//
// Admissions of all kinds count up for ever, and overflow out of the word.
const (
	insideMask   = 1<<32 - 1
	closedBit    = 1 << 32
	oneAdmission = 1 << 33
	oneReader    = oneAdmission | 1
)

// Gate admits the goroutines of one process to one shared key, of which Redis has given the process some units. Of an
// RWMutex a writer needs all units and is alone, and readers need one together. Of a semaphore each waiter needs its own
// number of permits. Like a Synchronizer it asks Redis nothing itself. All methods are safe for concurrent use. Make one
// with Init; it must not be copied.
//
// In the terminology of the Go memory model, the exit of a writer synchronizes before the next admission, and the exits of
// readers before that of the next writer. That holds within this process.
type Gate struct {
	word  atomic.Uint64
	until atomic.Int64 // from this moment on nobody joins by the word: see aimLocked

	// mu makes each transition one step, but for those of readers through an open gate. Nothing blocks and nobody is
	// called while it is held. It is held for a walk over the queue in Fail and Peek, and when readers come in together.
	mu      sync.Mutex
	waiters fifo
	heir    *Waiter // woken, but not admitted, and has not run yet: the gate is open for it and for newcomers
	writers int     // of the waiters
	owed    int     // of the waiters, those that nobody may pass
	writer  *Waiter // inside
	held    int64   // readers or permits inside whose owners can be notified of a loss
	loose   int64   // permits inside whose owners cannot. Such readers are in the word

	units     int64         // that Redis has given
	deadline  time.Duration // the units count until then
	turnEnds  time.Duration // a contended process gives way from then on
	contended bool          // another process waits
	over      bool          // the turn is: nobody comes in before the next grant
	lost      bool          // somebody inside relies on lost units and cannot be notified
	closed    bool          // for good
	grant     uint64        // 1 + the number of losses: a loss ends the stays of those that are notified
	base      uint32        // the admissions before this turn
	stated    need          // what somebody was last ordered to state

	all     int64 // what a writer needs; 0: a semaphore. These four are written by Init only
	fair    bool
	handOff time.Duration
	zero    time.Time
}

// Init makes the zero g a Gate without units. A writer of an RWMutex needs all of them; all is 0 for a semaphore. A fair
// Gate admits in the order of arrival; one that is not lets newcomers pass a waiter that was woken and has not run yet:
// see StarvationThreshold. handOff is how long a turn lasts at most while another process waits. Init is called once,
// before anybody else knows g. Moments are counted from zero, which has a monotonic reading: see Waiter.Began.
func (g *Gate) Init(all int64, fair bool, handOff time.Duration, zero time.Time) {
	g.all, g.fair, g.handOff, g.zero, g.grant = all, fair, handOff, zero, 1
	g.word.Store(closedBit)
}

// TryJoin is the way in for a reader that cannot be notified of a loss, while the gate is open. now is a moment before
// the call. True: the reader is in, and must Leave. False: the caller must call Enter, though it only tries: an addition
// in vain may have held up others, whose order Enter returns.
func (g *Gate) TryJoin(now time.Duration) bool {
	if g.word.Load()&closedBit != 0 {
		return false
	}
	if g.word.Add(oneReader)&closedBit == 0 && int64(now) < g.until.Load() {
		return true
	}
	g.withdraw()
	return false
}

// withdraw takes back an addition in vain. It counted as a reader inside, so it passes on if it was the last (I15).
func (g *Gate) withdraw() {
	if word := g.word.Add(^uint64(oneReader - 1)); word&(closedBit|insideMask) == closedBit {
		g.mu.Lock()
		g.arrangeLocked(false)
		g.mu.Unlock()
	}
}

// Leave is the way out for a reader that cannot be notified, however it came in. It panics if no such reader is inside.
func (g *Gate) Leave() Order {
	if g.word.Load()&insideMask == 0 { // before the subtraction, which would borrow the closed bit
		panic("queue: Leave of a Gate without a reader inside")
	}
	word := g.word.Add(^uint64(0))
	switch inside := int32(word & insideMask); {
	case inside < 0: // two in parallel
		g.word.Add(1)
		panic("queue: Leave of a Gate without a reader inside")
	case inside > 0 || word&closedBit == 0:
		return Nothing
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.settleLocked(false)
}

// Enter admits w immediately or queues it: as the last, or if it is First before all but a Try. It never blocks. If in is
// true, w must Exit, or Leave if it is a reader that cannot be notified. The only error is ErrRefused, for a Try: w is
// not queued, and is used up. Otherwise the caller must call Wait. The order must be carried out in any case, before or
// during that. Enter panics if w has been used or needs nothing.
func (g *Gate) Enter(w *Waiter) (in bool, order Order, err error) {
	if w.phase != phaseNew || w.Need < 1 {
		panic("queue: Enter of a Gate with a Waiter that has been used or needs nothing")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	free := (g.waiters.len == 0 || g.heir != nil) && g.admitsLocked()
	barred := g.barredLocked(w)
	switch {
	case free && !barred && g.sufficesLocked(w):
		g.admitLocked(w)
		in = true
	case w.Kind.IsTry() && (g.waiters.len > 0 || g.over || g.lost || barred || g.sufficesLocked(w)):
		w.phase, err = phaseOut, ErrRefused
	default: // a Try waits for the answer of Redis only (I23)
		g.enqueueLocked(w)
	}
	return in, g.settleLocked(false), err
}

// Wait parks until w is admitted (nil), ctx ends (context.Cause(ctx)), or w fails with the error given to Refuse or
// Fail. On an error w is out and used up. The order must be carried out in any case. A context that has ended always
// wins, up to the moment of return (I13). Wait is called once for each Enter that queued w, by one goroutine.
func (g *Gate) Wait(ctx context.Context, w *Waiter) (Order, error) {
	done := ctx.Done()
	// Repeatedly: park until woken or ctx ends. If it is decided and ctx has not ended, return. Else, under the lock: if
	// decided meanwhile, the same; if ctx has ended, leave, and pass on what was meant for this waiter; if the gate is
	// still open for an heir, come in; else somebody was quicker: park again at the same place.
	for {
		if decided := w.park(done); decided && !isClosed(done) {
			return Nothing, w.failure
		}
		if order, err, over := g.checkWaiter(ctx, w); over {
			return order, err
		}
	}
}

// checkWaiter finds what has become of w, which was woken or whose ctx has ended. over: Wait returns.
func (g *Gate) checkWaiter(ctx context.Context, w *Waiter) (order Order, err error, over bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w.woken = false
	switch ended := isClosed(ctx.Done()); {
	case w.failure != nil:
		return Nothing, w.failure, true
	case ended && w.phase == phaseIn:
		wrote := g.exitLocked(w)
		w.phase = phaseOut
		return g.settleLocked(wrote), context.Cause(ctx), true
	case ended:
		g.dequeueLocked(w)
		w.phase = phaseOut
		return g.settleLocked(false), context.Cause(ctx), true
	case w.phase == phaseIn:
		return Nothing, nil, true
	case g.heir != nil && g.admitsLocked() && !g.barredLocked(w) && g.sufficesLocked(w):
		g.dequeueLocked(w)
		g.admitLocked(w)
		return g.settleLocked(false), nil, true
	}
	if g.heir == w {
		g.heir = nil
		g.word.Or(closedBit)
	}
	if g.now()-w.Began > StarvationThreshold {
		g.oweLocked(w)
	}
	return Nothing, nil, false
}

// Exit ends the stay of w. If it has ended before, by an Exit or by a loss of which the owner of w was notified, nothing
// changes. Then w may be Reset, or come Again.
func (g *Gate) Exit(w *Waiter) Order {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.settleLocked(g.exitLocked(w))
}

// exitLocked takes w off those inside, and reports whether it was the writer.
func (g *Gate) exitLocked(w *Waiter) (wrote bool) {
	switch {
	case w.Grant == 0: // it has exited
	case g.whole(w):
		if wrote = g.writer == w; wrote {
			g.writer = nil
		}
	case w.Kind.CanNotify():
		if w.Grant == g.grant {
			g.held -= w.Need
		}
	case g.all == 0:
		g.loose -= w.Need
	default:
		g.word.Add(^uint64(0))
	}
	w.Grant = 0
	return wrote
}

// Release is Exit for n permits whose owners cannot be notified of a loss. Any goroutine may release them. It panics if fewer are
// inside.
func (g *Gate) Release(n int64) Order {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n < 0 || n > g.loose {
		panic("queue: Release of more permits than are inside")
	}
	g.loose -= n
	return g.settleLocked(false)
}

// Downgrade makes the writer w a reader. Nobody comes between; readers that wait come in beside it. If w is not inside as
// a writer, nothing changes.
func (g *Gate) Downgrade(w *Waiter) Order {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.writer != w {
		return Nothing
	}
	g.writer, w.Need = nil, 1
	if w.Kind.CanNotify() {
		g.held++
	} else {
		g.word.Add(1)
	}
	return g.settleLocked(true)
}

// now is the present moment, counted from zero.
func (g *Gate) now() time.Duration { return time.Since(g.zero) }
