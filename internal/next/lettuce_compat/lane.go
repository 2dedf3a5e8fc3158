package lettucecompat

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"
)

// The alarm of a lane rings again no sooner than walkSpacing after it has looked at manyCalls
// parcels, and in proportion with more of them: some ten times what the walk takes.
const (
	manyCalls   = 2000
	walkSpacing = time.Millisecond
)

// lane sends parcels to one server. A parcel goes at once while the lane has room (see room);
// otherwise it queues, and who comes back from a trip takes a share of what is queued along
// on the next one.
//
// Trips are made by goroutines of the lane, so that callers are free to leave. A caller that
// cannot leave may make its own, see carriesItselfLocked: that spares it two changes of
// goroutine, about as much as the round trip itself on the same machine. While nothing is
// under way the lane has no goroutine, but for one that lingers a moment.
//
// The awaited parcels stand in one list in the order of their arrival: first those that are
// under way, then, from queued on, those that are not.
type lane struct {
	c     *Client
	limit int // see room

	mu         sync.Mutex
	head, tail *parcel
	queued     *parcel     // the first that is not under way
	awaited    int         // parcels from head to tail
	live       int         // trips that somebody waits for
	slow       int         // those of them that have been under way for long
	total      int         // live and abandoned trips
	starting   bool        // a goroutine is on its way to take what is queued
	crowded    bool        // more than two parcels were awaited when the last trip began
	answeredAt time.Time   // when the last trip began, if it was answered
	spare      tripContext // for the next trip; may be empty
	idle       chan<- bool // wakes a goroutine that lingers, true: for a trip; nil: none does
	idleEnd    time.Time   // until when it does
	hasty      bool        // none lingers
	alarm      *time.Timer
	alarmAt    time.Time // when it rings; zero: it does not
	closed     bool
	drained    chan struct{} // set by close: closed when nobody waits for anything
}

// parcel is what one caller waits for: usually one command, several where a batch goes
// to a cluster node.
type parcel struct {
	ctx     context.Context // the caller's; only its values travel on
	cmds    []*command
	wait    *waitFor      // set: an acquire whose replicas are waited for; travels alone
	timeout time.Duration // after which its caller is free
	end     time.Time     // when that is
	// mayBeHeld: its caller cannot leave, and agrees to be held beyond end by a client that
	// does not mind deadlines.
	mayBeHeld bool
	done      chan struct{} // receives once when the parcel is answered or its time is over; nil: the caller carries it itself

	// Guarded by lane.mu.
	over       bool      // answered or left
	trip       *trip     // nil: queued
	sentAt     time.Time // before anything was handed to go-redis; zero: never was
	err        error     // why it was ended without an answer
	next, prev *parcel   // place among the awaited
	lead       trip      // the one that begins with this parcel, if one does
}

// withdraw marks every command of k as never sent, where that is still possible.
func (k *parcel) withdraw(err error) error {
	for _, c := range k.cmds {
		c.withdraw()
	}
	return err
}

// do sends k, now, and waits until it is answered (nil), ctx ends, or timeout (0:
// Options.CommandTimeout) passes. When it
// returns an error, k is not written any more if it was not yet, and command.result
// tells which. A caller is free at once, whatever the connection does.
func (l *lane) do(ctx context.Context, k *parcel, now time.Time, timeout time.Duration) error {
	if ctx.Err() != nil {
		return k.withdraw(context.Cause(ctx))
	}
	timeout = cmp.Or(timeout, l.c.opt.CommandTimeout)
	k.ctx, k.timeout, k.end = ctx, timeout, now.Add(timeout)
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return k.withdraw(ErrClosed)
	}
	l.push(k)
	l.ringLocked(k.end, now)
	if l.carriesItselfLocked(k, now) {
		t := l.takeLocked(1, now)
		t.ctx.end = k.end
		l.mu.Unlock()
		return l.carryOwn(t, k)
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

// one sends a parcel of a single command down a lane and returns what is known about it.
func (c *Client) one(ctx context.Context, l *lane, k *parcel, now time.Time, limit time.Duration) (Outcome, error) {
	left := l.do(ctx, k, now, limit)
	return k.cmds[0].result(left)
}

// leave gives k up with err, unless its answer or the end of its time came first.
func (l *lane) leave(k *parcel, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !k.over {
		l.leaveLocked(k, err)
	}
	return k.err
}

// leaveLocked ends k with err. A queued parcel is never sent. A trip whose last caller leaves
// is abandoned: it gives its place up, and its context ends, which frees it where it only
// waits for a connection.
func (l *lane) leaveLocked(k *parcel, err error) {
	l.remove(k)
	k.over, k.err = true, k.withdraw(err)
	if t := k.trip; t != nil {
		if t.present--; t.present == 0 {
			t.ctx.stop()
			l.freeLocked(t)
			l.startLocked(time.Now())
		}
	}
	l.drainLocked()
}

// close refuses new parcels. What is queued or under way goes on; the channel it returns
// is closed when nobody waits for anything any more, which the callers' own time limits
// bound.
func (l *lane) close() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.dismissLocked()
	if l.drained == nil {
		l.drained = make(chan struct{})
	}
	drained := l.drained
	l.drainLocked()
	return drained
}

// drainLocked tells close when nobody waits for anything any more.
func (l *lane) drainLocked() {
	if l.drained != nil && l.live == 0 && l.queued == nil {
		close(l.drained)
		l.drained = nil
	}
}

// A lane has one timer for all that ends by time: the waits of its callers and the
// lingering of its goroutine. It is set when something is to end before
// it rings, and not when that is over: most parcels are answered long before, so that it rings
// once a time limit for nothing, where a timer for each parcel would be set and stopped for
// each.

// ringLocked sees to it that the alarm rings at the moment at, or before.
func (l *lane) ringLocked(at, now time.Time) {
	if !l.alarmAt.IsZero() && !at.Before(l.alarmAt) {
		return
	}
	l.alarmAt = at
	if l.alarm == nil {
		l.alarm = time.AfterFunc(at.Sub(now), l.rang)
		return
	}
	l.alarm.Reset(at.Sub(now))
}

// rang ends what is due and sets the alarm for the next.
func (l *lane) rang() {
	late := false
	l.mu.Lock()
	now := time.Now()
	l.alarmAt = time.Time{}
	if l.idle != nil && !now.Before(l.idleEnd) {
		l.dismissLocked()
	}
	if l.idle != nil {
		l.ringLocked(l.idleEnd, now)
	}
	// Where a great many wait, those that end soon after one another end together: a walk
	// over all of them for each would keep the lane for itself.
	var looked int
	var first time.Time
	for k := l.head; k != nil; looked++ {
		next := k.next
		l.markLocked(k.trip, now)
		switch {
		case now.Before(k.end):
			if first.IsZero() || k.end.Before(first) {
				first = k.end
			}
		default:
			// A caller that carries k itself comes back when the client lets it. It does not
			// wait for a connection any more, and sends nothing; its place is free.
			l.leaveLocked(k, k.timedOut())
			if k.done != nil {
				k.done <- struct{}{}
			}
			late = true
		}
		k = next
	}
	if !first.IsZero() {
		if soonest := now.Add(time.Duration(looked/manyCalls) * walkSpacing); first.Before(soonest) {
			first = soonest
		}
		l.ringLocked(first, now)
	}
	l.startLocked(now) // beside trips that have become slow
	l.mu.Unlock()
	if late {
		l.c.relocate() // a node that hangs may have been replaced; its own error comes much later
	}
}

// timedOut is the error of a parcel whose time is over.
func (k *parcel) timedOut() error { return fmt.Errorf("%w (%v)", ErrTimeout, k.timeout) }

// push appends k to the awaited parcels.
func (l *lane) push(k *parcel) {
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
func (l *lane) remove(k *parcel) {
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
