package lettucecompat

import (
	"errors"
	"net"
	"slices"
	"time"
)

// This file is how a connection is read, by one caller for all.

// read reads: for own until it is over or a moment has passed, for nil until nothing is due. Then it passes that on.
func (c *conn) read(own *call) {
	limit := time.Time{}
	if own != nil {
		limit = time.Now().Add(readsFor)
	}
	_ = c.nc.SetReadDeadline(limit)
	n := c.n
	n.mu.Lock()
	defer n.mu.Unlock()
	for c.err == nil && c.dueLocked() > 0 && (own == nil || !own.over) {
		n.mu.Unlock()
		err := c.in.read(c.nc)
		bad := c.understand()
		n.mu.Lock()
		if c.err != nil { // ended meanwhile
			break
		}
		if c.answerLocked(); bad != nil {
			c.endLocked(bad)
		}
		if e, is := errors.AsType[net.Error](err); is && e.Timeout() && own != nil {
			break
		} else if err != nil {
			c.endLocked(err)
		}
	}
	c.passReadingLocked(own)
}

// passReadingLocked lets somebody else read what is due.
func (c *conn) passReadingLocked(was *call) {
	if c.err != nil || c.dueLocked() == 0 {
		c.reading = false
		return
	}
	if was.over { // otherwise the server is slow
		for _, k := range c.calls[c.first:] {
			if !k.over && k != c.writer { // whose write may last
				k.wake <- readNow
				return
			}
		}
	}
	go c.read(nil)
}

// understand takes the replies out of what was read. An error: the rest cannot be understood.
func (c *conn) understand() error {
	for {
		reply, err := c.in.next()
		if reply == nil {
			return err
		}
		v, _ := value(reply)
		c.replies = append(c.replies, v)
	}
}

// answerLocked answers all whose replies have come.
func (c *conn) answerLocked() {
	now, sample := time.Now(), time.Duration(0)
	for _, v := range c.replies {
		if c.dueLocked() == c.unwritten {
			c.endLocked(errReply) // nobody has asked
			break
		}
		k := c.popLocked()
		e, refused := v.(error)
		if refused && (hasCode(e, "READONLY") || hasCode(e, "NOAUTH")) {
			c.retired = true // a demoted master keeps its connections
		}
		if k.over {
			continue
		}
		k.answered, sample = true, now.Sub(k.sentAt)
		if refused {
			k.endLocked(e)
		} else {
			k.cmd.SetVal(v)
			k.endLocked(nil)
		}
	}
	if clear(c.replies); cap(c.replies) > mostSpareCalls {
		c.replies = nil
	}
	c.replies = c.replies[:0]
	if sample > 0 { // one, of all that have come together; what came too late measures an outage, not the network
		c.n.c.noteRTT(sample)
	}
	switch {
	case c.err != nil:
	case c.retired:
		c.retireLocked()
	case len(c.n.waiting) > 0 && !c.slowLocked(now):
		c.takeLocked()
	}
}

// popLocked takes the oldest call, whose reply has come.
func (c *conn) popLocked() *call {
	k := c.calls[c.first]
	c.calls[c.first] = nil
	c.first++
	switch n := len(c.calls); {
	case c.first == n && cap(c.calls) > mostSpareCalls:
		c.calls, c.first = nil, 0
	case c.first == n:
		c.calls, c.first = c.calls[:0], 0
	case 2*c.first > n && c.first > 256:
		c.calls = slices.Delete(c.calls, 0, c.first)
		c.first = 0
	}
	return k
}
