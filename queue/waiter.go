package queue

import (
	"errors"
	"time"
)

// ErrRefused is what Wait returns to a Try kind when the attempt that it shared was refused, or was granted and went
// to another waiter: either way somebody else has the lock. Enter returns it to a Try kind that would have to wait.
var ErrRefused = errors.New("queue: refused: the lock is held by another")

// Kind is how a waiter waits: three independent properties. The waiter of the zero Kind waits until it is admitted or
// its context ends, and its owner can be notified of a loss, so a lost tenure lets the queue move on at once.
type Kind uint8

const (
	// Try never waits for an owner: it shares one attempt and fails at the first refusal or failure (I12).
	Try Kind = 1 << iota
	// Refusable: Fail may end the wait, since the caller can return an error.
	Refusable
	// Deaf: the owner cannot be notified of a loss, and its goroutine may re-enter. A lost tenure keeps the lock
	// closed in this process until its own exits (I11).
	Deaf
)

// String names the properties.
func (k Kind) String() string {
	s := ""
	for _, p := range []struct {
		bit  Kind
		name string
	}{{Try, "Try"}, {Refusable, "Refusable"}, {Deaf, "Deaf"}} {
		if k&p.bit == 0 {
			continue
		}
		if s != "" {
			s += "|"
		}
		s += p.name
	}
	if s == "" {
		return "Plain"
	}
	return s
}

// IsTry reports whether the waiter fails instead of waiting for an owner.
func (k Kind) IsTry() bool { return k&Try != 0 }

// IsDeaf reports whether the owner cannot be notified of a loss and its goroutine may re-enter.
func (k Kind) IsDeaf() bool { return k&Deaf != 0 }

// IsRefusable reports whether Fail may end the wait.
func (k Kind) IsRefusable() bool { return k&Refusable != 0 }

// phase is where a waiter is in its life. It only moves forward, with one exception: GiveBack returns an admitted
// waiter to the queue.
type phase uint8

const (
	phaseNew    phase = iota
	phaseQueued       // linked in the list
	phaseIn           // admitted: its tenure is current, or was
	phaseOut          // refused by Enter, cancelled, or failed
)

// Waiter is one goroutine's request to be admitted. It is single-use: a second Enter panics, unless Reset has made it
// new. The caller allocates it, so a parked goroutine costs one Waiter and one channel beside its stack (about 230
// bytes).
type Waiter struct {
	// Owner is the goroutine's id, or 0 for a tenure that no goroutine may re-enter by its id. Set by the caller
	// before Enter and not changed after that.
	Owner uint64
	// Kind is how the waiter waits. Set by the caller before Enter and not changed after that.
	Kind Kind
	// NoBarge lets a waiter of a non-fair Synchronizer queue even where it could take the grant at once. It is for a
	// caller that could not use that grant: it would give up what those who wait can use. Set by the caller before
	// Enter.
	NoBarge bool
	// Began is when the wait began, counted from the zero of the Synchronizer. A caller that has read the clock already
	// sets it before Enter; 0 means that it has not, and the Synchronizer sets it when the waiter is queued.
	Began time.Duration
	// Note is opaque to this package and is returned by HeadNote, Front and Find. Set by the caller before
	// Enter and not changed after that.
	Note any

	// Grant is the number that was given to Granted. Valid once Enter has returned in or Wait has returned nil.
	Grant uint64
	// Number is that of the tenure: unique within the Synchronizer, increasing, never 0. Valid as Grant is.
	Number uint64
	// HandOffs is the number of hand-offs between the beginning of the turn and this admission. Valid as Grant is.
	HandOffs int

	// The fields below are guarded by the Synchronizer's mu, except that ready is made before the waiter is linked
	// and never replaced, so its goroutine may receive from it without mu.

	prev, next *Waiter
	failure    error // set before the wake-up that reports it; the waiter is out of the list by then
	ready      chan struct{}
	spare      chan struct{} // the channel that Reset keeps for ready; empty
	phase      phase
	woken      bool // a wake-up is on its way and has not been looked at: ready never holds more than one token
	owed       bool // woken in vain after StarvationThreshold: nobody may pass it any more (I6)
}

// Reset makes an admitted waiter new again, but keeps the channel on which it parks, so a caller that passes many
// goroutines through many keys need not allocate for each. It panics if w was not admitted: the channel of a
// cancelled or failed waiter may still hold a wake-up that nobody has looked at. The caller must not need Grant,
// Number and HandOffs any more, and nobody else may know w; the Synchronizer does not look at Note after the
// admission.
func (w *Waiter) Reset() {
	if w.phase != phaseIn {
		panic("queue: Reset of a Waiter that was not admitted")
	}
	if w.ready == nil {
		w.ready = w.spare // it was admitted without having queued
	}
	*w = Waiter{spare: w.ready}
}

// makeReady prepares w to park at s. A waiter that parks again after GiveBack keeps its channel, which is then empty,
// and the moment since which it waits.
func (w *Waiter) makeReady(s *Synchronizer) {
	if w.ready != nil {
		return
	}
	if w.Began == 0 {
		w.Began = s.now()
	}
	w.ready = w.spare
	if w.ready == nil {
		w.ready = make(chan struct{}, 1)
	}
}

// wake lets the waiter's goroutine look again. The send never blocks: ready holds one token, and woken says whether
// it is taken. A second wake-up before the first is looked at is not needed, since looking happens under mu and sees
// the newest state. The caller holds mu.
func (w *Waiter) wake() {
	if !w.woken {
		w.woken = true
		w.ready <- struct{}{}
	}
}

// park blocks until the waiter is woken or done is closed. It does not say which: the caller finds out under mu,
// where nothing can change between the check and the action.
func (w *Waiter) park(done <-chan struct{}) {
	if done == nil {
		<-w.ready
		return
	}
	select {
	case <-w.ready:
	case <-done:
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
	len, tries int32 // tries: how many of len are Try kinds
}

// hasPatient reports whether a waiter is queued that goes on waiting after a refusal.
func (q *fifo) hasPatient() bool { return q.len > q.tries }

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
	if w.Kind.IsTry() {
		q.tries++
	}
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
	if w.Kind.IsTry() {
		q.tries--
	}
}
