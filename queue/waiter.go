package queue

import (
	"errors"
	"time"
)

// ErrRefused is what Wait returns to a Try kind when the attempt that it shared was refused, or was granted and went to
// another waiter: either way somebody else has the lock.
var ErrRefused = errors.New("queue: refused: the lock is held by another")

// Kind says how a waiter came, by three properties of which none follows from another. The zero Kind waits until it is in or
// its context ends, and its owner can be told of a loss, so a lost tenure lets the queue move on at once.
type Kind uint8

const (
	// Try never waits for an owner: it shares one attempt and fails at the first refusal or failure (I12).
	Try Kind = 1 << iota
	// Refusable: Fail ends the wait, since the caller has a way to be told.
	Refusable
	// Deaf: the owner cannot be told of a loss, and its goroutine may re-enter. A lost tenure stays locally locked until its
	// own exits (I11).
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

// IsTry reports whether the waiter fails rather than wait for an owner.
func (k Kind) IsTry() bool { return k&Try != 0 }

// IsDeaf reports whether the tenure is one whose owner cannot be told of a loss, and which its goroutine may re-enter.
func (k Kind) IsDeaf() bool { return k&Deaf != 0 }

// IsRefusable reports whether Fail may end the wait.
func (k Kind) IsRefusable() bool { return k&Refusable != 0 }

// phase is where a waiter stands. It only moves forward, with one exception: GiveBack takes an admitted waiter back into
// the queue.
type phase uint8

const (
	phaseNew    phase = iota
	phaseQueued       // linked in the list
	phaseIn           // came in: its tenure is current, or was
	phaseOut          // rejected, left, or failed
)

// Waiter is one goroutine's wish to come in. It is single-use: a second Enter panics, unless Reset has made it new. The caller
// allocates it, so that a parked goroutine costs one Waiter and one channel beside its stack (about 230 bytes).
type Waiter struct {
	// Owner is the goroutine's id, or 0 for a tenure that no goroutine may re-enter by its id. Set by the caller before Enter
	// and not changed after.
	Owner uint64
	// Kind is how the waiter came. Set by the caller before Enter and not changed after.
	Kind Kind
	// Began is when the caller's wait began, with a monotonic reading, if the caller has read the clock already; else the
	// moment at which the waiter is queued counts. Set by the caller before Enter and not changed after.
	Began time.Time
	// Note is opaque to this package and comes back in First. Set by the caller before Enter and not changed after.
	Note any

	// Grant is the number that Granted gave. Valid once Enter has answered Admitted or Wait has returned nil.
	Grant uint64
	// Number is that of its tenure, unique within the Synchronizer, increasing, never 0. Valid as Grant is.
	Number uint64
	// HandOffs is the number of hand-offs since the grant at the moment the waiter came in. Valid as Grant is.
	HandOffs int

	// The fields below are guarded by the Synchronizer's mu, save that ready is made before the waiter is linked and never
	// replaced, so that its goroutine may receive from it without mu.

	prev, next *Waiter
	since      time.Duration // when it was first queued, after the Synchronizer was made
	failure    error         // set before the wake-up that reports it; the waiter is out of the list by then
	ready      chan struct{}
	spare      chan struct{} // what Reset has left for ready; empty
	phase      phase
	woken      bool // a wake-up is on its way and has not been looked at: at most one token is ever in ready
	owed       bool // woken in vain after StarvationThreshold: nobody may pass it any more (I6)
}

// Reset makes a waiter that came in new again, as if it had just been made, but keeps the channel on which it parks: whoever
// passes many goroutines through many keys need not allocate for each. It panics where w did not come in: the channel of one
// that left may still hold a wake-up that nobody has looked at. The caller must not need Grant, Number and HandOffs any more,
// and nobody else may know w; what was given to Note is not looked at by the Synchronizer after w has come in.
func (w *Waiter) Reset() {
	if w.phase != phaseIn {
		panic("queue: Reset of a Waiter that did not come in")
	}
	if w.ready == nil {
		w.ready = w.spare // it came in without having queued
	}
	*w = Waiter{spare: w.ready}
}

// makeReady makes what w needs to park at s. A waiter that comes a second time, by GiveBack, keeps its channel, which is empty
// then, and the moment since which it waits.
func (w *Waiter) makeReady(s *Synchronizer) {
	if w.ready != nil {
		return
	}
	if w.Began.IsZero() {
		w.since = s.age()
	} else {
		w.since = w.Began.Sub(s.born)
	}
	w.ready = w.spare
	if w.ready == nil {
		w.ready = make(chan struct{}, 1)
	}
}

// wake lets the waiter's goroutine look again. The send never blocks: ready holds one token, and woken says whether that one
// is taken. A second wake-up before the first is looked at is not needed, since looking happens under mu and sees the
// newest state. Needs mu.
func (w *Waiter) wake() {
	if !w.woken {
		w.woken = true
		w.ready <- struct{}{}
	}
}

// park blocks until the waiter is woken or done is closed. Which of the two it was is not said: the caller finds out under
// mu, where nothing can change between the look and the deed.
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
