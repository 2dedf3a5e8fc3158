package lettucecompat

import (
	"net"
	"runtime"
	"slices"
	"time"
)

const (
	// readsFor is how long a caller reads for all before a goroutine does: its context may end meanwhile. A near server
	// answers earlier.
	readsFor = time.Millisecond
	// mostSpareCalls is the most that the lists of calls and replies keep between two uses.
	mostSpareCalls = 1024
	// staleAfter is after how long without use a connection is looked at before it is used: the server may have closed it.
	staleAfter = time.Millisecond
)

// conn is one connection, on which the commands of all callers travel, each as soon as it is there:
//
//	caller: append the command ─► write what is there, unless somebody does ─► read, unless somebody does ─► wait
//
// Whoever reads answers all whose replies have come, until its own has; then the next one reads whose reply is due. Who writes
// writes what others have appended meanwhile, too. So a lone caller has one write and one read and no other goroutine, and many
// share both: what comes during a write is the next one.
//
// All fields are guarded by node.mu, but for the last ones, which are of who reads.
type conn struct {
	n              *node
	nc             net.Conn
	madeAt, usedAt time.Time
	err            error // why it has ended
	retired        bool  // no new command goes here; it ends with the last reply that is due

	out, spare []byte // to be written, and the other buffer
	writing    bool
	yields     bool      // who is to write lets others append first
	writer     *call     // whose caller writes now; nil: nobody, or a goroutine
	wroteAt    time.Time // when the last write began

	calls     []*call // written or in out, in order; those before first are over and their replies have come
	first     int
	unwritten int // of calls: so many at the end are in out
	reading   bool

	in      inbox
	replies []any // that have come, in order
}

// call is one command and its caller, who waits.
type call struct {
	cmd      *redisCmd
	sentAt   time.Time
	end      time.Time
	conn     *conn       // nil: it waits for one
	over     bool        // answered, failed, or left
	answered bool        // cmd has its reply, which may be an error
	unsent   bool        // nothing of it was written, and nobody else may have
	left     bool        // by its caller
	err      error       // why it is over; nil: cmd has a reply that is no error
	wake     chan wakeUp // cap 2: it is told to read once at a time, and once that it is over
}

// wakeUp is what a caller that waits has to do.
type wakeUp uint8

const (
	isOver wakeUp = iota
	readNow
)

// endLocked ends the wait of the caller.
func (k *call) endLocked(err error) {
	if !k.over {
		k.over, k.err = true, err
		k.wake <- isOver
	}
}

// dueLocked is how many replies are to come.
func (c *conn) dueLocked() int { return len(c.calls) - c.first }

// slowLocked reports whether the oldest command is under way for longer than a round trip takes.
func (c *conn) slowLocked(now time.Time) bool {
	return c.dueLocked() > 0 && now.Sub(c.calls[c.first].sentAt) > c.n.slowAfter()
}

// hungAtLocked is when it is taken for dead if no reply comes: when the oldest command, and its caller, have waited long enough, or
// when a caller has had all of its time and is in a write that takes long. Zero: nothing is due.
func (c *conn) hungAtLocked() (at time.Time) {
	if c.dueLocked() > 0 {
		k := c.calls[c.first]
		at = k.sentAt.Add(c.n.c.opt.CommandTimeout)
		if !k.over && k.end.After(at) {
			at = k.end
		}
	}
	if w := c.writer; w != nil {
		stuck := c.wroteAt.Add(c.n.slowAfter())
		if w.end.After(stuck) {
			stuck = w.end
		}
		if at.IsZero() || stuck.Before(at) {
			at = stuck
		}
	}
	return at
}

// hungLocked reports whether it is taken for dead.
func (c *conn) hungLocked(now time.Time) bool {
	at := c.hungAtLocked()
	return !at.IsZero() && !now.Before(at)
}

// idleLocked is for how long it is not used.
func (c *conn) idleLocked(now time.Time) time.Duration {
	if c.dueLocked() > 0 {
		return 0
	}
	return now.Sub(c.usedAt)
}

// tendLocked retires what is too old to be used, or has long not been needed.
func (c *conn) tendLocked(now time.Time, second bool) {
	idle := c.idleLocked(now)
	if c.n.lasts > 0 && now.Sub(c.madeAt) > c.n.lasts || c.n.idles > 0 && idle > c.n.idles || second && idle > secondIdle {
		c.retireLocked()
	}
}

// retireLocked lets no new command go here.
func (c *conn) retireLocked() {
	if c.retired = true; c.dueLocked() == 0 {
		c.endLocked(errRetired)
	} else if c.hungLocked(time.Now()) {
		c.endLocked(errHung)
	} else if len(c.n.waiting) > 0 {
		c.n.growLocked()
	}
}

// appendLocked puts a command among those to be written.
func (c *conn) appendLocked(k *call, now time.Time) {
	k.conn, k.sentAt, c.usedAt = c, now, now
	c.out = k.cmd.appendTo(c.out)
	c.calls = append(c.calls, k)
	c.unwritten++
}

// writeLocked writes what is there, unless somebody does. It unlocks meanwhile. If others have commands under way, those that the same
// read has woken append theirs first: who is about to write yields once, and is passed by who has appended a quarter of what is under
// way. All of it in one write would have client and server wait for each other. own writes once, and leaves the rest to a goroutine, as it
// does if it is over or has to read.
func (c *conn) writeLocked(own *call) {
	if c.writing && !(c.yields && 4*c.unwritten >= c.dueLocked()) {
		return
	}
	c.writing = true
	if !c.yields && c.dueLocked() > 1 {
		c.yields = true
		c.n.mu.Unlock()
		runtime.Gosched()
		c.n.mu.Lock()
		if !c.yields { // another one has written
			return
		}
	}
	c.yields, c.writer = false, own
	for first := true; len(c.out) > 0 && c.err == nil; first = false {
		if own != nil && (!first || len(own.wake) > 0) {
			c.writer = nil
			go c.write()
			return
		}
		c.wroteAt = time.Now()
		out, batch := c.out, c.unwritten
		c.out, c.unwritten = c.spare[:0], 0
		c.n.mu.Unlock()
		n, err := c.nc.Write(out)
		c.n.mu.Lock()
		if c.spare = out; cap(out) > spareRoom {
			c.spare = nil
		}
		if err != nil && c.err == nil {
			if n == 0 {
				c.unwritten += batch
			}
			c.endLocked(err)
		}
	}
	c.writing, c.writer = false, nil
}

// write continues a write that its caller has left, or begins one for those that have waited.
func (c *conn) write() {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	c.writing = false
	c.writeLocked(nil)
}

// takeLocked sends what waits for a connection, and was not left.
func (c *conn) takeLocked() {
	now := time.Now()
	for _, k := range c.n.waiting {
		if !k.over {
			c.appendLocked(k, now)
		}
	}
	c.n.waiting = nil
	if !c.writing && len(c.out) > 0 {
		c.writing = true
		go c.write()
	}
	if !c.reading && c.dueLocked() > 0 {
		c.reading = true
		go c.read(nil)
	}
}

// endLocked ends the connection. What was written is unknown, and the rest was not sent: see node.do.
func (c *conn) endLocked(err error) {
	if c.err != nil {
		return
	}
	c.err = err
	go c.nc.Close() // over TLS it may take seconds
	c.n.conns = slices.DeleteFunc(c.n.conns, func(o *conn) bool { return o == c })
	written := c.dueLocked() - c.unwritten
	for i, k := range c.calls[c.first:] {
		switch {
		case k.over: // what is known of it was said
		case i >= written && k.cmd.unsent():
			k.unsent = true
			k.endLocked(&notSentError{err})
		default:
			k.endLocked(&lostError{err})
		}
	}
	c.calls, c.first, c.unwritten, c.out = nil, 0, 0, nil
	if len(c.n.waiting) > 0 {
		c.n.growLocked()
	}
}
