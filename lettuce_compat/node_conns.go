package lettucecompat

import (
	"context"
	"net"
	"slices"
	"time"
)

// This file is how the connections of a node come and go.

// servingLocked counts the connections on which new commands may go.
func (n *node) servingLocked() (all int) {
	for _, c := range n.conns {
		if !c.retired {
			all++
		}
	}
	return all
}

// aliveLocked reports whether one of them is not hung.
func (n *node) aliveLocked(now time.Time) bool {
	return slices.ContainsFunc(n.conns, func(c *conn) bool { return !c.retired && !c.hungLocked(now) })
}

// growLocked makes another connection, if there may be one more.
func (n *node) growLocked() {
	if !n.dialing && !n.closed && n.servingLocked() < mostConns {
		n.dialing = true
		go n.grow()
	}
}

// grow connects, for those that wait. If it cannot, and there is no other connection but one that is hung, they fail: nothing was sent.
func (n *node) grow() {
	ctx, cancel := context.WithTimeout(n.ctx, n.c.patience())
	defer cancel()
	n.mu.Lock()
	defer n.mu.Unlock()
	nc, err := n.growLoopLocked(ctx)
	n.dialing = false
	switch {
	case err == nil:
		now := time.Now()
		c := &conn{n: n, nc: nc, madeAt: now, usedAt: now, in: newInbox(resp2)}
		hung := slices.DeleteFunc(slices.Clone(n.conns), func(o *conn) bool { return !o.hungLocked(now) })
		n.conns = append(n.conns, c)
		c.takeLocked()
		for _, o := range hung {
			o.endLocked(errHung)
		}
		if n.brief {
			c.retireLocked()
		}
	case !n.aliveLocked(time.Now()):
		for _, k := range n.waiting {
			k.endLocked(&notSentError{err})
		}
		n.waiting = nil
	case len(n.waiting) > 0:
		n.growLocked()
	}
}

// growLoopLocked connects until that succeeds, ctx ends, or nobody waits behind a slow connection. What was retired meanwhile, or was
// refused for what is out of date, does not count. It unlocks meanwhile.
func (n *node) growLoopLocked(ctx context.Context) (nc net.Conn, err error) {
	for {
		generation := n.generation
		n.mu.Unlock()
		nc, err = n.connect(ctx)
		n.mu.Lock()
		current := n.generation == generation && !n.closed
		if err == nil && current {
			return nc, nil
		}
		if err == nil {
			go nc.Close()
			err = errRetired
		}
		switch end, _ := ctx.Deadline(); {
		case n.closed:
			return nil, ErrClosed
		case !time.Now().Before(end):
			return nil, context.DeadlineExceeded // the socket may have said so a moment earlier, in its words
		case current && (len(n.waiting) == 0 || !n.aliveLocked(time.Now())):
			return nil, err
		}
		n.mu.Unlock()
		pause := time.NewTimer(growEvery)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
		}
		n.mu.Lock()
	}
}

// retire has new commands travel on new connections. keep, which may be nil, says which are good.
func (n *node) retire(keep func(net.Conn) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	stale := slices.DeleteFunc(slices.Clone(n.conns), func(c *conn) bool { return keep != nil && keep(c.nc) })
	if keep == nil || len(stale) > 0 { // nor is one good that is being made
		n.generation++
	}
	for _, c := range stale {
		c.retireLocked()
	}
}

// keepNothing ends each connection when nothing is due on it, from now on.
func (n *node) keepNothing() {
	n.mu.Lock()
	n.brief = true
	n.mu.Unlock()
	n.retire(nil)
}

// close ends all connections and fails what is under way or waits.
func (n *node) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	n.stop()
	n.alarm.Stop()
	for _, c := range slices.Clone(n.conns) {
		c.endLocked(ErrClosed)
	}
	for _, k := range n.waiting {
		k.endLocked(ErrClosed)
	}
	n.waiting = nil
}
