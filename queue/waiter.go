package queue

import (
	"cmp"
	"strings"
	"time"
)

// Kind is how a waiter waits: three independent properties. One of the zero Kind waits until it is admitted or its
// context ends, and can be notified of a loss.
type Kind uint8

const (
	// Try never waits for an owner: it waits for the one answer of the server of which it is the reason (I10).
	Try Kind = 1 << iota
	// Refusable: Fail may end the wait, since the caller can return an error.
	Refusable
	// NoNotify: nobody can notify it of a loss, so it keeps all others of this process out until it leaves (I8).
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
	phaseIn           // admitted: its stay has begun, and may have ended
	phaseOut          // refused, cancelled, or failed
)

// Waiter is one goroutine's request, up to the admission of its Stay. It is single-use, unless Reset or Again makes it new.
type Waiter struct {
	// Stay begins with the admission. It and the fields up to Note are set by the caller before Acquire.
	*Stay
	// First: it is queued before all others but a Try and those that Take, and nobody may pass it. See Again.
	First bool
	// Takes: the same, behind those that Take already. It is for one that takes the lock from its holder.
	Takes bool
	// Began is when the wait began, counted from the policy's Zero; 0: Acquire reads the clock if it queues the waiter.
	Began time.Duration
	// Note is opaque to this package.
	Note any
	// Of is the capacity of a Semaphore with which it counts: of so many units in all. 0: any number.
	Of int64

	// Grant is the number of the grant by which it is inside. This and HandOffs are valid once it is admitted.
	Grant uint64
	// HandOffs is the number of admissions of this turn before its own.
	HandOffs int

	// The fields below are guarded by the Synchronizer's mu. Once true is sent on ready, only the waiter's goroutine
	// knows w, and reads them without mu.

	prev, next *Waiter
	failure    error     // set before the unpark that reports it
	ready      chan bool // true: the wait is over; false: check whether it is. Made before w is linked, and kept
	phase      phase
	woken      bool // an unpark is on its way and has not been received: ready never holds more than one
	owed       bool // nobody may pass it any more (I6)
}

// Reset makes an admitted waiter new, but keeps the channel on which it parks, so that a caller can keep it for others. It
// panics if w was not admitted: the channel of another one may still hold an unpark that nobody has received.
func (w *Waiter) Reset() {
	if w.phase != phaseIn {
		panic("queue: Reset of a Waiter that was not admitted")
	}
	*w = Waiter{ready: w.ready}
}

// Again makes an admitted waiter new and First, with its Stay, which has ended, and what else its caller has set: before
// that returned to its own caller, it found that the grant is over, and comes again.
func (w *Waiter) Again() {
	old := *w
	w.Reset()
	w.Stay, w.First, w.Takes, w.Began, w.Note, w.Of = old.Stay, true, old.Takes, old.Began, old.Note, old.Of
}

// unpark lets the waiter's goroutine check again, or ends its wait. The send never blocks: ready has room for one, and
// woken says whether it is taken. A second one is not needed, since the check sees the newest state. The caller holds mu.
func (w *Waiter) unpark(over bool) {
	if !w.woken {
		w.woken = true
		w.ready <- over
	}
}

// park blocks until the waiter is unparked or done is closed, and reports whether the wait is known to be over.
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

// fifo is a doubly linked list through the waiters themselves: joining allocates nothing, and removal from any place is
// O(1). It knows nothing of admission. The zero value is an empty list.
type fifo struct {
	head, tail *Waiter
	len        int32
	exclusives int32 // of them: its user's to count
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
