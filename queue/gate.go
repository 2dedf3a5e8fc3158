package queue

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// The word of a Gate, written without mu by TryJoin and Leave. Only holders of mu write the bit closed.
//
//	 63             33   32   31                     0
//	+-----------------+--------+----------------------+
//	|   admissions    | closed |    readers inside    |
//	+-----------------+--------+----------------------+
//
// Readers inside are those that cannot be notified of a loss; the others count in held. Admissions of all kinds only
// count up, and overflow out of the word.
const (
	insideMask   = 1<<32 - 1
	closedBit    = 1 << 32
	oneAdmission = 1 << 33
	oneReader    = oneAdmission | 1
)

// Gate admits the goroutines of one process to one shared key, of which Redis has given the process some units. Of an
// RWMutex a writer needs all units and is alone; readers need one together. Of a semaphore each waiter needs a number
// of its own. Like a Synchronizer it asks Redis nothing itself. All methods are safe for concurrent use. Make one with
// Init; it must not be copied.
//
// In the terminology of the Go memory model, the exit of a writer synchronizes before the admission of whoever comes
// next, and those of readers before that of the next writer. That holds within this process.
type Gate struct {
	word  atomic.Uint64
	until atomic.Int64 // from this moment on nobody joins by the word: see aimLocked
	_     [48]byte     // what changes under mu does not share a cache line with what readers write

	// mu makes each transition one step, but for those of readers through an open gate. Nothing blocks and nobody is
	// called while it is held; it is held for a walk over the queue in Fail, in Peek, and where many come in together.
	mu      sync.Mutex
	waiters fifo
	writers int     // of those that wait
	writer  *Waiter // inside
	held    int64   // permits, or readers, inside that are notified of a loss
	loose   int64   // permits inside that are not

	units    int64         // that Redis has given
	deadline time.Duration // the units count until then
	turnEnds time.Duration // who is told by then gives way then, else when told
	told     bool          // another process waits
	over     bool          // the turn is: nobody comes in before the next grant
	lost     bool          // somebody is inside that relies on lost units and cannot be notified
	grant    uint64        // counts the losses, from 1: what was admitted before one is not inside after it
	base     uint32        // admissions before this turn
	stated   need          // of which somebody was last given the order to state it

	all     int64 // these four are written by Init only
	fair    bool
	handOff time.Duration
	zero    time.Time
}

// Init makes the zero g a Gate without units. Of an RWMutex all is what a writer needs, of a semaphore it is 0. handOff
// is how long a turn lasts if another process waits. Moments are counted from zero, which has a monotonic reading. Init
// is called once, before anybody else knows g.
func (g *Gate) Init(all int64, fair bool, handOff time.Duration, zero time.Time) {
	g.all, g.fair, g.handOff, g.zero, g.grant = all, fair, handOff, zero, 1
	g.word.Store(closedBit)
}

// TryJoin lets a reader in that cannot be notified of a loss, if the gate is open and now, a moment from before the
// call, is not past the end. True: it must Leave. False: the caller must call Enter, which also carries on what the
// attempt may have held up, even if only a try is wanted.
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

// withdraw takes back an addition in vain. Meanwhile it counted as a reader inside, so it passes on if it was the last.
// The order is left to the Enter that follows.
func (g *Gate) withdraw() {
	if word := g.word.Add(^uint64(oneReader - 1)); word&closedBit != 0 && word&insideMask == 0 {
		g.mu.Lock()
		g.passLocked(false)
		g.mu.Unlock()
	}
}

// Leave is the way out of a reader that cannot be notified, however it came in. It panics if none is inside.
func (g *Gate) Leave() Order {
	word := g.word.Add(^uint64(0))
	if inside := int32(word & insideMask); inside < 0 || inside == 0 && word&closedBit != 0 {
		return g.drained(inside < 0)
	}
	return Nothing
}

func (g *Gate) drained(underflow bool) Order {
	if underflow {
		g.word.Add(1)
		panic("queue: Leave of a Gate without a reader inside")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.settleLocked(false)
}

// Enter admits w immediately or queues it behind all others, or if it is First before all but a Try. It never blocks.
// If in is true, w must Exit; or Leave, if it is a reader that cannot be notified. The only error is ErrRefused, for a
// Try kind: w is not queued, and is used up. A Try is queued only if nobody waits, and only units that Redis might give
// keep it out. Without in and error the caller must call Wait. The order must be carried out in any case. It panics if w
// has been used before or needs nothing.
func (g *Gate) Enter(w *Waiter) (in bool, order Order, err error) {
	if w.phase != phaseNew || w.Need < 1 {
		panic("queue: Enter of a Gate with a Waiter that has been used, or needs nothing")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	free := g.waiters.len == 0 && g.admitsLocked()
	barred := g.barredLocked(w)
	switch {
	case free && !barred && g.fitsLocked(w):
		g.admitLocked(w)
		in = true
	case w.Kind.IsTry() && (g.waiters.len > 0 || g.over || g.lost || barred || g.fitsLocked(w)):
		w.phase, err = phaseOut, ErrRefused
	default:
		g.enqueueLocked(w)
	}
	return in, g.settleLocked(false), err
}

func (g *Gate) enqueueLocked(w *Waiter) {
	if w.ready == nil {
		w.ready = make(chan bool, 1)
	}
	if w.Began == 0 {
		w.Began = g.now()
	}
	w.phase = phaseQueued
	behind := g.waiters.tail
	if w.First {
		behind = nil
		if head := g.waiters.head; head != nil && head.Kind.IsTry() {
			behind = head
		}
	}
	g.waiters.insertAfter(behind, w)
	if g.whole(w) {
		g.writers++
	}
}

func (g *Gate) dequeueLocked(w *Waiter) {
	g.waiters.remove(w)
	if g.whole(w) {
		g.writers--
	}
}

// Wait parks until w is admitted (nil), ctx ends (context.Cause(ctx)), or w fails with the error given to Refuse or
// Fail. On an error w is out and used up. The order must be carried out in any case. A context that has ended always
// wins, up to the moment of return. Wait is called once for each Enter that queued w, by one goroutine.
func (g *Gate) Wait(ctx context.Context, w *Waiter) (Order, error) {
	done := ctx.Done()
	if w.park(done) && !isClosed(done) {
		return Nothing, w.failure
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	left := false
	switch {
	case w.failure != nil:
		return Nothing, w.failure
	case w.phase == phaseQueued:
		g.dequeueLocked(w)
	default: // it was admitted meanwhile
		left = g.exitLocked(w)
	}
	w.phase = phaseOut
	return g.settleLocked(left), context.Cause(ctx)
}

// Exit ends the stay of w. If it has ended before, by an Exit or by a loss of which w was notified, nothing changes.
// Afterwards w may be Reset or come Again.
func (g *Gate) Exit(w *Waiter) Order {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.settleLocked(g.exitLocked(w))
}

// Release ends the stay of n permits of a semaphore whose owners cannot be notified of a loss; who took them does not
// matter. It panics if fewer are inside.
func (g *Gate) Release(n int64) Order {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n < 0 || n > g.loose {
		panic("queue: Release of more than is inside")
	}
	g.loose -= n
	return g.settleLocked(false)
}

// Downgrade makes the writer w a reader. Nobody comes between; readers that wait come in beside it. If w is not inside,
// nothing changes.
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

// exitLocked takes w off those inside, and reports whether it was a writer.
func (g *Gate) exitLocked(w *Waiter) (wrote bool) {
	current := w.Grant == g.grant
	switch {
	case w.Grant == 0: // it has exited
	case g.whole(w):
		if wrote = g.writer == w; wrote {
			g.writer = nil
		}
	case w.Kind.CanNotify():
		if current {
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

// settleLocked lets in who may come in now, and returns what the caller must do. Every transition ends with it. wrote:
// a writer has just left.
func (g *Gate) settleLocked(wrote bool) Order {
	g.passLocked(wrote)
	if n := g.needLocked(); n != g.stated {
		g.stated = n
		return Restate
	}
	return Nothing
}

// passLocked lets in who may come in now: the head, and those after it as long as they fit. With a reader, or after a
// writer, all readers that wait come in together; in a fair Gate only those before the next writer.
func (g *Gate) passLocked(wrote bool) {
	if g.lost && g.word.Load()&insideMask == 0 && g.writer == nil && g.loose == 0 {
		g.lost = false
	}
	if g.waiters.len > 0 && g.admitsLocked() {
		readers := wrote && g.writers < g.waiters.len
		for w := g.waiters.head; w != nil; {
			next := w.next
			switch {
			case readers && !g.fair && g.whole(w) && !w.First: // passed
			case !g.barredLocked(w) && g.fitsLocked(w):
				g.dequeueLocked(w)
				g.admitLocked(w)
				w.wake(true)
				readers = g.all > 0 && !g.whole(w)
			default:
				next = nil
			}
			w = next
		}
	}
	// Open only if a reader that comes now needs nobody's leave. The first of a turn is let in by mu, so that its exit is
	// noticed if it was the only one.
	open := g.all > 0 && g.units > 0 && !g.over && !g.lost && g.writer == nil && g.waiters.len == 0 && g.admissionsLocked() > 1
	switch isOpen := g.word.Load()&closedBit == 0; {
	case open && !isOpen:
		g.word.And(^uint64(closedBit))
	case !open && isOpen:
		g.word.Or(closedBit)
	}
}

// whole reports whether w needs to be alone.
func (g *Gate) whole(w *Waiter) bool { return w.Need == g.all }

// barredLocked reports whether somebody inside keeps w out, whatever Redis gives.
func (g *Gate) barredLocked(w *Waiter) bool {
	if !g.whole(w) {
		return g.writer != nil
	}
	// Close first, then count: a reader that joins after this sees the bit, one that joined before is counted.
	return g.word.Or(closedBit)&insideMask > 0 || g.held > 0 || g.writer != nil
}

// fitsLocked reports whether the units suffice with w inside.
func (g *Gate) fitsLocked(w *Waiter) bool { return g.withLocked(w) <= g.units }

// withLocked is how many units the process needs with w inside.
func (g *Gate) withLocked(w *Waiter) int64 {
	if g.all == 0 {
		return g.held + g.loose + w.Need
	}
	return w.Need
}

// admitLocked lets w in, which is not linked.
func (g *Gate) admitLocked(w *Waiter) {
	admission := uint64(oneAdmission)
	switch {
	case g.whole(w):
		g.writer = w
	case w.Kind.CanNotify():
		g.held += w.Need
	case g.all == 0:
		g.loose += w.Need
	default:
		admission = oneReader
	}
	g.word.Add(admission)
	w.phase, w.Grant = phaseIn, g.grant
}

// now is the present moment, counted from zero.
func (g *Gate) now() time.Duration { return time.Since(g.zero) }
