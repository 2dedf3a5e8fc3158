package lettucecompat

import (
	"context"
	"sync"
	"time"
)

const (
	// maxBatch bounds the commands that share one round trip (beyond it by one call's at
	// most), so that one slow connection delays a bounded number of callers.
	maxBatch = 256
	// strandedPerSlot bounds the abandoned flights of a lane to this many times its
	// limit. Beyond it new calls wait: a hung server costs a bounded number of
	// goroutines and connections.
	strandedPerSlot = 4
)

// lane sends calls to one shard. A call goes at once while the lane has room (see room,
// at most limit flights); otherwise it queues, and a flight that lands takes its share of what is queued
// into its next round trip.
//
// A flight is carried by a goroutine of the lane, so that its callers are free to leave.
// The exception is a caller that has no wish to leave, on a client that is known to return
// by itself in time (bounded), while nothing else is under way: it carries its own call,
// which spares it two changes of goroutine, about as much as the round trip itself on the
// same machine. While nothing is under way no goroutine exists, but for one that lingers a
// moment.
//
// The awaited calls stand in one list in the order of their arrival: first those that are
// flying, then, from queued on, those that are not.
type lane struct {
	c     *Client
	limit int

	mu         sync.Mutex
	live       int  // flights that somebody waits for
	slow       int  // those of them that have been under way for long: see lane.room
	total      int  // live and abandoned flights
	boarding   bool // a goroutine is on its way to take what is queued
	crowded    bool // more than two calls were awaited when the last flight left
	head, tail *call
	awaited    int         // calls from head to tail
	queued     *call       // the first that is not flying
	idle       chan<- bool // a goroutine that lingers; nil: none. true: fly
	idleEnd    time.Time   // until when it does
	spare      scope       // for the next flight; may be empty
	alarm      *time.Timer
	alarmAt    time.Time // when it rings; zero: it does not
	closed     bool
	brisk      bool          // a goroutine without work ends at once
	quiet      chan struct{} // set by close: closed when live is 0
}

// do sends k, now, and waits until it is answered (nil), ctx ends, or timeout passes. When it
// returns an error, k is not written any more if it was not yet, and command.result
// tells which. A caller is free at once, whatever the connection does.
func (l *lane) do(ctx context.Context, k *call, now time.Time, timeout time.Duration) error {
	if ctx.Err() != nil {
		return k.withdraw(context.Cause(ctx))
	}
	k.ctx, k.timeout, k.end = ctx, timeout, now.Add(timeout)
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return k.withdraw(ErrClosed)
	}
	l.push(k)
	l.ringLocked(k.end, now)
	if l.carriesItself(k) {
		f := l.boardLocked(now)
		l.departLocked(f, k.end)
		l.mu.Unlock()
		return l.carry(f, k)
	}
	k.done = make(chan struct{}, 1)
	l.startLocked(now)
	l.mu.Unlock()
	select {
	case <-k.done:
		return k.err
	case <-ctx.Done():
		return l.leave(k, context.Cause(ctx))
	}
}

// carriesItself tells whether the caller of k, which was queued just now, sends it on its
// own goroutine.
func (l *lane) carriesItself(k *call) bool {
	return l.c.bounded && k.ctx.Done() == nil && k.wait == nil && l.queued == k && l.live == 0 && !l.boarding && !l.crowded && l.roomLocked()
}

// leave gives k up with err, unless its answer or the end of its time came first.
func (l *lane) leave(k *call, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k.state != callAnswered && k.state != callLeft {
		l.leaveLocked(k, err)
	}
	return k.err
}

// leaveLocked ends k with err. A queued call is never sent; the flight of the last caller
// that leaves becomes stranded and gives its slot back, and its context ends, which frees
// it where it only waits for a connection.
func (l *lane) leaveLocked(k *call, err error) {
	switch k.state {
	case callQueued:
		l.remove(k)
		l.landedLocked()
	case callFlying:
		l.remove(k)
		f := k.flight
		if f.present--; f.present == 0 {
			f.abandoned = true
			f.endLocked()
			l.freeLocked(f)
			l.landedLocked()
			defer l.startLocked(time.Now())
		}
	}
	k.state, k.err = callLeft, k.withdraw(err)
}

// startLocked sends a goroutine for what is queued while the lane has room. One at a time
// is on its way, and sends for the next where it leaves something behind. Where there is no
// room the lane looks again when the flights under way have become slow.
func (l *lane) startLocked(now time.Time) {
	if l.queued == nil || l.boarding {
		return
	}
	if !l.roomLocked() {
		if l.live < l.limit {
			l.ringLocked(now.Add(l.patience()), now)
		}
		return
	}
	l.boarding = true
	if l.idle != nil {
		l.idle <- true
		l.idle = nil
		return
	}
	go l.fly()
}

// boardLocked takes a share of what is queued, up to maxBatch, into a flight: the one that
// its first call has with it. A call that waits for replicas travels alone: WAIT speaks
// about one connection and holds it up.
func (l *lane) boardLocked(now time.Time) *flight {
	l.crowded = l.awaited > 2
	share := min(l.share(), maxBatch)
	f := &l.queued.lead
	f.calls = f.alone[:0]
	if share > 1 {
		f.calls = make([]*call, 0, share)
	}
	for commands := 0; l.queued != nil && len(f.calls) < share && commands < maxBatch; {
		k := l.queued
		if len(f.calls) > 0 && (k.wait != nil || f.calls[0].wait != nil) {
			break
		}
		k.state, k.flight, k.sentAt = callFlying, f, now
		f.calls = append(f.calls, k)
		commands += len(k.cmds)
		l.queued = k.next
	}
	f.present, f.began = len(f.calls), now
	l.live++
	l.total++
	return f
}

// landLocked answers the callers of f that are still there.
func (l *lane) landLocked(f *flight) {
	for _, k := range f.calls {
		if k.state != callFlying {
			continue
		}
		k.state = callAnswered
		l.remove(k)
		if k.done != nil {
			k.done <- struct{}{}
		}
	}
	if f.ended || f.calls[0].ctx != context.Background() {
		f.scope.cancel()
	} else {
		l.spare = f.scope
	}
	l.total--
	if !f.abandoned {
		l.freeLocked(f)
	}
	l.landedLocked()
}

// landedLocked tells close when the last awaited flight is over.
func (l *lane) landedLocked() {
	if l.quiet != nil && l.live == 0 && l.queued == nil {
		close(l.quiet)
		l.quiet = nil
	}
}

// close refuses new calls. What is queued or under way goes on; the channel it returns
// is closed when nobody waits for anything any more, which the callers' own time limits
// bound.
func (l *lane) close() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.dismissLocked()
	if l.quiet == nil {
		l.quiet = make(chan struct{})
	}
	quiet := l.quiet
	l.landedLocked()
	return quiet
}

// hurry ends the goroutine that lingers; none does from then on.
func (l *lane) hurry() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.brisk = true
	l.dismissLocked()
}

// push appends k to the awaited calls.
func (l *lane) push(k *call) {
	k.prev = l.tail
	if l.tail == nil {
		l.head = k
	} else {
		l.tail.next = k
	}
	l.tail = k
	l.awaited++
	if l.queued == nil {
		l.queued = k
	}
}

// remove takes k out of them.
func (l *lane) remove(k *call) {
	if l.queued == k {
		l.queued = k.next
	}
	if k.prev == nil {
		l.head = k.next
	} else {
		k.prev.next = k.next
	}
	if k.next == nil {
		l.tail = k.prev
	} else {
		k.next.prev = k.prev
	}
	k.next, k.prev = nil, nil
	l.awaited--
}
