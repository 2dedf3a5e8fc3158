package lettucecompat

import (
	"context"
	"fmt"
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
	// lingerTime is how long a goroutine without work stays for the next.
	lingerTime = 50 * time.Millisecond
	// flightLimit is the deadline of the context that go-redis is given. It matters
	// only where the user's client has no read limit of its own but minds contexts.
	flightLimit = 30 * time.Second
)

// callState is where a call stands. Guarded by lane.mu.
type callState uint8

const (
	callQueued callState = iota
	callFlying
	callAnswered
)

// call is what one caller waits for: usually one command, several where a batch goes
// to a cluster node.
type call struct {
	ctx   context.Context // the caller's; only its values travel on
	cmds  []*command
	wait  *waitFor      // set: an acquire whose replicas are waited for; travels alone
	limit time.Duration // the context given to go-redis lasts at least so long
	done  chan struct{} // closed when answered

	// Guarded by lane.mu.
	state      callState
	flight     *flight
	sentAt     time.Time // before anything was handed to go-redis; zero: never was
	next, prev *call     // place in the queue
}

// flight is one round trip under way, carrying one or more calls.
type flight struct {
	ctx       context.Context
	cancel    context.CancelFunc
	calls     []*call
	present   int  // callers that still wait; guarded by lane.mu
	abandoned bool // present fell to 0; its slot was given back; guarded by lane.mu
}

// lane sends calls to one shard. A call goes at once, on a goroutine of its own, while
// fewer than limit flights are under way; otherwise it queues, and a flight that lands
// takes everything queued into its next round trip. While nothing is under way no
// goroutine exists, but for one that lingers a moment.
type lane struct {
	c     *Client
	limit int

	mu         sync.Mutex
	live       int // flights that somebody waits for
	total      int // live and abandoned flights
	head, tail *call
	idle       chan<- *flight // a goroutine that lingers; nil: none
	closed     bool
	quiet      chan struct{} // set by close: closed when live is 0
}

// do sends k and waits until it is answered (nil), ctx ends, or timeout passes. When it
// returns an error, k is not written any more if it was not yet, and command.result
// tells which. A caller is free at once, whatever the connection does.
func (l *lane) do(ctx context.Context, k *call, timeout time.Duration) error {
	if ctx.Err() != nil {
		return l.withdraw(k, context.Cause(ctx))
	}
	k.ctx, k.done = ctx, make(chan struct{})
	k.limit = 2 * timeout
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return l.withdraw(k, ErrClosed)
	}
	l.push(k)
	l.startLocked()
	l.mu.Unlock()

	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-k.done:
		return nil
	case <-ctx.Done():
		return l.leave(k, context.Cause(ctx))
	case <-timer.C:
		l.c.relocate() // a node that hangs may have been replaced; its own error comes much later
		return l.leave(k, fmt.Errorf("%w (%v)", ErrTimeout, timeout))
	}
}

// withdraw marks every command of k as never sent.
func (l *lane) withdraw(k *call, err error) error {
	for _, c := range k.cmds {
		c.withdraw()
	}
	return err
}

// leave gives k up with err, unless its answer came first (nil). A queued call is never
// sent; the flight of the last caller that leaves becomes stranded and gives its slot
// back, and its context ends, which frees it where it only waits for a connection.
func (l *lane) leave(k *call, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch k.state {
	case callAnswered:
		return nil
	case callQueued:
		l.remove(k)
	case callFlying:
		f := k.flight
		if f.present--; f.present == 0 {
			f.abandoned = true
			f.cancel()
			l.live--
			l.landedLocked()
			defer l.startLocked()
		}
	}
	return l.withdraw(k, err)
}

// startLocked starts flights while calls are queued and the lane has room.
func (l *lane) startLocked() {
	for l.roomLocked() {
		f := l.boardLocked()
		if l.idle != nil {
			l.idle <- f
			l.idle = nil
			continue
		}
		go l.fly(f)
	}
}

// roomLocked reports whether a flight with something to carry may start.
func (l *lane) roomLocked() bool {
	return l.head != nil && l.live < l.limit && l.total < l.limit*(1+strandedPerSlot)
}

// boardLocked takes what is queued, up to maxBatch, into a new flight. A call that
// waits for replicas travels alone: WAIT speaks about one connection and holds it up.
func (l *lane) boardLocked() *flight {
	f := &flight{}
	now := time.Now()
	var ctx context.Context
	for commands := 0; l.head != nil && commands < maxBatch; {
		k := l.head
		if len(f.calls) > 0 && (k.wait != nil || f.calls[0].wait != nil) {
			break
		}
		l.remove(k)
		k.state, k.flight, k.sentAt = callFlying, f, now
		f.calls = append(f.calls, k)
		commands += len(k.cmds)
	}
	if len(f.calls) == 1 {
		ctx = context.WithoutCancel(f.calls[0].ctx) // its trace, not its end
	} else {
		ctx = context.Background()
	}
	limit := flightLimit
	for _, k := range f.calls {
		limit = max(limit, k.limit)
	}
	f.ctx, f.cancel = context.WithTimeout(ctx, limit)
	f.present = len(f.calls)
	l.live++
	l.total++
	return f
}

// fly carries flights one after another until nothing is queued.
func (l *lane) fly(f *flight) {
	for f != nil {
		l.c.send(f)
		if f = l.land(f); f == nil {
			f = l.linger()
		}
	}
}

// linger waits a moment for the next flight, nil: none came. A goroutine that has made
// a round trip has a stack of the right size; making that anew costs a lone caller a
// noticeable part of its round trip. One per lane waits.
func (l *lane) linger() *flight {
	l.mu.Lock()
	if l.idle != nil || l.closed {
		l.mu.Unlock()
		return nil
	}
	next := make(chan *flight, 1)
	l.idle = next
	l.mu.Unlock()
	timer := time.NewTimer(lingerTime)
	defer timer.Stop()
	select {
	case f := <-next:
		return f
	case <-timer.C:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.idle == next {
		l.idle = nil
		return nil
	}
	return <-next // handed over just now
}

// land answers the callers of f and boards the next flight, if any.
func (l *lane) land(f *flight) *flight {
	f.cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range f.calls {
		k.state = callAnswered
		close(k.done)
	}
	l.total--
	if !f.abandoned {
		l.live--
	}
	l.landedLocked()
	if !l.roomLocked() {
		return nil
	}
	next := l.boardLocked()
	l.startLocked() // an abandoned flight may have held up more than one
	return next
}

// landedLocked tells close when the last awaited flight is over.
func (l *lane) landedLocked() {
	if l.quiet != nil && l.live == 0 && l.head == nil {
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
	if l.idle != nil {
		l.idle <- nil
		l.idle = nil
	}
	if l.quiet == nil {
		l.quiet = make(chan struct{})
	}
	quiet := l.quiet
	l.landedLocked()
	return quiet
}

// push appends k to the queue.
func (l *lane) push(k *call) {
	k.prev = l.tail
	if l.tail == nil {
		l.head = k
	} else {
		l.tail.next = k
	}
	l.tail = k
}

// remove takes k out of the queue.
func (l *lane) remove(k *call) {
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
}
