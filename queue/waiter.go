package queue

import (
	"cmp"
	"strings"
	"time"
)

// Kind is how a waiter waits: three independent properties. The waiter of the zero Kind waits until it is admitted or
// its context ends, and its owner can be notified of a loss, so a lost tenure lets the queue move on immediately.
type Kind uint8

const (
	// Try never waits for an owner: it waits for the answer to one attempt, of which it is the reason (I12).
	Try Kind = 1 << iota
	// Refusable: Fail may end the wait, since the caller can return an error.
	Refusable
	// NoNotify: the owner cannot be notified of a loss, and its goroutine may re-enter. A lost tenure keeps the lock
	// closed in this process until its own exits (I11).
	NoNotify
)

// String names the properties.
func (k Kind) String() string {
	var names []string
	for i, name := range []string{"Try", "Refusable", "NoNotify"} {
		if k&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return cmp.Or(strings.Join(names, "|"), "Plain")
}

// IsTry reports whether the waiter fails instead of waiting for an owner.
func (k Kind) IsTry() bool { return k&Try != 0 }

// CanNotify reports whether the owner can be notified of a loss.
func (k Kind) CanNotify() bool { return k&NoNotify == 0 }

// IsRefusable reports whether Fail may end the wait.
func (k Kind) IsRefusable() bool { return k&Refusable != 0 }

// phase is where a waiter is in its life. It only moves forward, until Reset or Again makes the waiter new.
type phase uint8

const (
	phaseNew    phase = iota
	phaseQueued       // linked in the list
	phaseIn           // admitted: its tenure is current, or was
	phaseOut          // refused by Enter, cancelled, or failed
)

// Waiter is one goroutine's request to be admitted. It is single-use: a second Enter panics, unless Reset or Again has
// made it new. The caller allocates it, so a parked goroutine costs one Waiter and one channel beside its stack (about
// 240 bytes).
type Waiter struct {
	// Owner is the goroutine's id, or 0 for a tenure that no goroutine may re-enter by its id. This field and the next
	// six are set by the caller before Enter and not changed after that.
	Owner uint64
	// Kind is how the waiter waits.
	Kind Kind
	// First: the waiter is queued before all others but a Try and those that Take, and nobody may pass it. It is for one
	// that was admitted to a grant that proved to be over; see Again.
	First bool
	// Takes: the same, behind those that Take already. It is for one that takes the lock from its holder.
	Takes bool
	// Began is when the wait began, counted from the zero of the Synchronizer. A caller that has read the clock already
	// sets it; 0 means that it has not, and the Synchronizer sets it when the waiter is queued.
	Began time.Duration
	// Note is opaque to this package and is returned by Front, Peek and Find.
	Note any
	// Need is for a Gate: how many units the waiter needs, at least 1. Downgrade makes it 1. A Synchronizer ignores it.
	Need int64

	// Grant is the number that was given to Granted. Valid once Enter has returned in or Wait has returned nil.
	Grant uint64
	// Number is that of the tenure: unique within the Synchronizer, increasing, never 0. Valid as Grant is.
	Number uint64
	// HandOffs is the number of hand-offs between the beginning of the turn and this admission. Valid as Grant is.
	HandOffs int

	// The fields below are guarded by the Synchronizer's mu. Once true is sent on ready, only the waiter's goroutine
	// knows w, and reads them without mu.

	prev, next *Waiter
	failure    error     // set before the wake-up that reports it; the waiter is out of the list by then
	ready      chan bool // true: the wait is over; false: check whether it is. Made before w is linked, and kept
	phase      phase
	woken      bool // a wake-up is on its way and has not been received: ready never holds more than one
	owed       bool // gets the next grant; nobody may pass it any more (I6, I12)
}

// Reset makes an admitted waiter new, but keeps the channel on which it parks, so a caller that passes many goroutines
// through many keys need not allocate for each. It panics if w was not admitted: the channel of a cancelled or failed
// waiter may still hold a wake-up that nobody has received. The caller must not need Grant, Number and HandOffs any
// more, and nobody else may know w; the Synchronizer does not read Note after the admission.
func (w *Waiter) Reset() {
	if w.phase != phaseIn {
		panic("queue: Reset of a Waiter that was not admitted")
	}
	*w = Waiter{ready: w.ready}
}

// Again makes an admitted waiter new and First, with its Owner, Kind, Note and Began: before its caller returned to
// its own caller, it found that the grant is over (the process was stopped, or the wake-up came late). The tenure has
// ended or is exited by the caller, which then enters w again. It panics if w was not admitted.
func (w *Waiter) Again() {
	old := *w
	w.Reset()
	w.Owner, w.Kind, w.First, w.Takes, w.Began, w.Note, w.Need = old.Owner, old.Kind, true, old.Takes, old.Began, old.Note, old.Need
}

// wake lets the waiter's goroutine check again, or ends its wait. The send never blocks: ready has
// room for one wake-up, and woken says whether it is taken. A second one before the first is received is not needed,
// since the check happens under mu and sees the newest state. The caller holds mu.
func (w *Waiter) wake(over bool) {
	if !w.woken {
		w.woken = true
		w.ready <- over
	}
}

// park blocks until the waiter is woken or done is closed, and reports whether the wait is known to be over.
func (w *Waiter) park(done <-chan struct{}) (over bool) {
	if done == nil {
		return <-w.ready
	}
	select {
	case over = <-w.ready:
		return over
	case <-done:
		return false
	}
}

// isClosed reports, without blocking, whether a context's done channel is closed. A nil channel never is.
func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// fifo answers "Who waits, in which order?": a doubly linked list through the waiters themselves, so that joining
// allocates nothing and removal from any place is O(1). It knows nothing of states and admission. Guarded by the
// Synchronizer's mu; the zero value is an empty list.
type fifo struct {
	head, tail *Waiter
	len        int
}

// insertAfter links w behind p, or as the first if p is nil.
func (q *fifo) insertAfter(p, w *Waiter) {
	w.prev = p
	if p == nil {
		w.next = q.head
		q.head = w
	} else {
		w.next = p.next
		p.next = w
	}
	if w.next == nil {
		q.tail = w
	} else {
		w.next.prev = w
	}
	q.len++
}

// remove unlinks w, which must be linked here, and clears its links, so that a removed waiter keeps no other alive.
func (q *fifo) remove(w *Waiter) {
	if w.prev == nil {
		q.head = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		q.tail = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next = nil, nil
	q.len--
}
