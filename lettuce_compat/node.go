package lettucecompat

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"
)

const (
	// mostConns is on how many connections to a server new commands may go. The second is made when the first is slow.
	mostConns = 2
	// leastSlow is the least after which others pass a connection that has not answered.
	leastSlow = 5 * time.Millisecond
	// secondIdle is after how long without use the second connection is not kept.
	secondIdle = time.Minute
	// alarmEvery is the least time between two looks at what is over its time.
	alarmEvery = time.Millisecond
	// growEvery is the pause between two attempts to connect for those that wait.
	growEvery = 20 * time.Millisecond
)

var (
	errStale   = errors.New("the server has closed the connection")
	errTwice   = errors.New("a hook has sent the command again, which only its caller may")
	errHung    = errors.New("a command was not answered on the connection within its time limit")
	errRetired = errors.New("the connection is not used any more")
)

// node is one server, with the commands that are under way to it or wait for a connection.
//
//	a connection is quick            commands travel on it, whatever else is under way
//	all are slow, or none is there   commands wait, and one more is made, up to mostConns
//	the oldest one is over its time  the connection is closed once there is another: what was written is unknown, the rest goes there
//
// Who waits and leaves was never sent.
type node struct {
	c       *Client
	connect func(ctx context.Context) (net.Conn, error) // dials, and greets as the user's client does
	lasts   time.Duration                               // how long a connection is used; 0: no matter
	idles   time.Duration                               // how long one is kept that is not used; 0: no matter
	calls   sync.Pool                                   // of *call
	ctx     context.Context                             // ends with close
	stop    context.CancelFunc

	mu         sync.Mutex
	conns      []*conn // the first that is quick is used
	dialing    bool
	generation int // of connections: those that are retired together
	waiting    []*call
	alarm      *time.Timer
	alarmAt    time.Time // zero: it is not set
	firedAt    time.Time
	brief      bool // connections are kept for no longer than something is due
	closed     bool
}

func newNode(c *Client, connect func(ctx context.Context) (net.Conn, error)) *node {
	n := &node{c: c, connect: connect}
	n.ctx, n.stop = context.WithCancel(context.Background())
	n.calls.New = func() any { return &call{wake: make(chan wakeUp, 2)} }
	n.alarm = time.AfterFunc(time.Hour, n.alarmFired)
	n.alarm.Stop()
	return n
}

// do sends cmd and waits until its reply has come, ctx ends, or its time is over. An error: it has no reply, or an error for one. If the
// connection ends before anything of it was written, as one does that the server has closed, it goes to another one, once.
func (n *node) do(ctx context.Context, cmd *redisCmd) (answered bool, err error) {
	if cmd.taken.Swap(true) {
		return false, errTwice
	}
	err = cmd.encode()
	switch {
	case err != nil:
		cmd.taken.Store(false)
		return false, &notSentError{err}
	case ctx.Err() != nil:
		cmd.taken.Store(false)
		return false, cmd.leave(context.Cause(ctx))
	case cmd.state.Load() != cmdWithdrawn: // a hook may have sent it before, with a context of its own that has ended
		cmd.left.Store(nil)
	}
	k := n.calls.Get().(*call)
	k.cmd, k.end = cmd, cmd.end
	n.send(ctx, k)
	if k.unsent && ctx.Err() == nil {
		*k = call{cmd: cmd, end: cmd.end, wake: k.wake}
		n.send(ctx, k)
	}
	if k.conn == nil || k.unsent { // a hook that goes on after an error may send it
		cmd.taken.Store(false)
	}
	err = k.err
	switch {
	case k.left:
		return false, cmd.leave(err) // its reply may be due, so k is not used again
	case k.answered:
		*k = call{wake: k.wake}
		n.calls.Put(k)
		return true, err
	}
	return false, err
}

// send sends k and returns when it is over. Its caller reads and writes for others meanwhile.
func (n *node) send(ctx context.Context, k *call) {
	n.mu.Lock()
	reads := n.enterLocked(k)
	c := k.conn
	n.mu.Unlock()
	if reads {
		c.read(k)
	}
	for done := ctx.Done(); ; {
		select {
		case w := <-k.wake:
			if w == isOver {
				return
			}
			k.conn.read(k)
		case <-done:
			done = nil
			cause := context.Cause(ctx)
			n.mu.Lock()
			n.leaveLocked(k, cause)
			n.mu.Unlock()
		}
	}
}

// enterLocked sends k, or lets it wait for a connection. It reports whether its caller reads for all now.
func (n *node) enterLocked(k *call) (reads bool) {
	if n.closed {
		k.endLocked(ErrClosed)
		return false
	}
	now := time.Now()
	if !now.Before(k.end) { // a hook has had all of its time
		n.leaveLocked(k, k.cmd.timedOut())
		return false
	}
	n.alarmLocked(k.end, now)
	c := n.quickLocked(now)
	if c == nil {
		n.waiting = append(n.waiting, k)
		n.growLocked()
		return false
	}
	c.appendLocked(k, now)
	c.writeLocked(k)
	if c.reading || c.dueLocked() == 0 {
		return false
	}
	c.reading = true
	if n.isNear() {
		return true
	}
	go c.read(nil)
	return false
}

// quickLocked returns a connection on which a command may go now, nil if all are slow or none is there.
func (n *node) quickLocked(now time.Time) *conn {
	n.tendLocked(now)
	for i := 0; i < len(n.conns); {
		c := n.conns[i]
		quick := c.err == nil && !c.retired && !c.slowLocked(now)
		switch {
		case quick && c.idleLocked(now) > staleAfter && isStale(c.nc):
			c.endLocked(errStale)
		case quick:
			return c
		case c.err == nil:
			i++
		}
	}
	return nil
}

// leaveLocked gives k up. If it waits for a connection it is never sent: see takeLocked.
func (n *node) leaveLocked(k *call, err error) {
	if !k.over {
		k.left = true
		k.endLocked(err)
	}
}

// alarmLocked has alarmFired called at that time, or a moment after it was called last: in an outage each of many has a time of its own.
func (n *node) alarmLocked(at, now time.Time) {
	if soon := n.firedAt.Add(alarmEvery); at.Before(soon) {
		at = soon
	}
	if n.alarmAt.IsZero() || at.Before(n.alarmAt) {
		n.alarmAt = at
		n.alarm.Reset(at.Sub(now))
	}
}

// alarmFired gives up what is over its time, and ends connections on which nothing has come. It is set for the first that may be over:
// under load, where all are answered long before, it fires once in a time limit.
func (n *node) alarmFired() {
	if n.expire(time.Now()) {
		n.c.tracking.doubt()
	}
}

// expire is alarmFired, and reports whether a connection was hung.
func (n *node) expire(now time.Time) (hung bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.alarmAt, n.firedAt = time.Time{}, now
	n.waiting = slices.DeleteFunc(n.waiting, func(k *call) bool {
		n.expireLocked(k, now)
		return k.over
	})
	for _, c := range slices.Clone(n.conns) {
		for _, k := range c.calls[c.first:] {
			n.expireLocked(k, now)
		}
		if c.hungLocked(now) {
			hung = true
			n.replaceLocked(c)
		} else if at := c.hungAtLocked(); !at.IsZero() {
			n.alarmLocked(at, now)
		}
	}
	n.tendLocked(now)
	return hung
}

// replaceLocked ends c, which is hung, if there is another connection, and makes one otherwise, which then ends c: see grow. Who must
// ask Sentinels that do not answer cannot connect, and c may only have been slow. A write that hangs is worth nothing, and may be a caller's.
func (n *node) replaceLocked(c *conn) {
	if c.retired || c.writing || n.servingLocked() > 1 {
		c.endLocked(errHung)
	} else {
		n.growLocked()
	}
}

// tendLocked retires connections that are not needed any more, also those to a server of which nobody asks anything.
func (n *node) tendLocked(now time.Time) {
	for i := len(n.conns) - 1; i >= 0; i-- {
		c := n.conns[i]
		if c.tendLocked(now, i > 0); n.idles > 0 && c.err == nil && c.dueLocked() == 0 {
			n.alarmLocked(c.usedAt.Add(n.idles+1), now)
		}
	}
}

// expireLocked gives k up if its time is over, and sets the alarm for it otherwise.
func (n *node) expireLocked(k *call, now time.Time) {
	switch {
	case k.over:
	case now.Before(k.end):
		n.alarmLocked(k.end, now)
	default:
		n.leaveLocked(k, k.cmd.timedOut())
	}
}

// slowAfter is after how long without a reply others pass a connection: several round trips, and more than a short script takes.
func (n *node) slowAfter() time.Duration {
	return max(leastSlow, min(4*time.Duration(n.c.rtt.Load()), n.c.opt.CommandTimeout/8))
}

// isNear reports whether an answer is mostly there before a caller could be missed.
func (n *node) isNear() bool { return time.Duration(n.c.rtt.Load()) < readsFor/2 }
