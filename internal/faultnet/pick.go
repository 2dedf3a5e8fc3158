package faultnet

import (
	"bytes"
	"errors"
	"net"
	"os"
	"syscall"
)

// Conn describes a connection to a Pick.
type Conn struct {
	// PubSub reports whether a SUBSCRIBE was written on it.
	PubSub bool
}

// Pick chooses among the existing connections.
type Pick func(Conn) bool

// All picks every connection.
func All(Conn) bool { return true }

// PubSub picks the connections that subscribe.
func PubSub(c Conn) bool { return c.PubSub }

// Commands picks the connections that do not subscribe.
func Commands(c Conn) bool { return !c.PubSub }

// picked returns the connections that pick chooses.
func (n *Network) picked(pick Pick) []*conn {
	n.mu.Lock()
	defer n.mu.Unlock()
	conns := make([]*conn, 0, len(n.conns))
	for c := range n.conns {
		if pick(Conn{PubSub: c.pubsub.Load()}) {
			conns = append(conns, c)
		}
	}
	return conns
}

// HalfOpen makes the picked connections swallow everything for good, in both directions, like connections whose other
// end has vanished silently: a firewall that has dropped their state, a machine without power. Writes succeed, reads
// wait for their deadline, and neither Heal nor a close by the server is ever noticed. Held data is swallowed too.
// New connections work.
func (n *Network) HalfOpen(pick Pick) {
	for _, c := range n.picked(pick) {
		c.die()
	}
}

// Reset resets the picked connections: the server gets an RST if they are TCP, and the client ECONNRESET.
func (n *Network) Reset(pick Pick) {
	for _, c := range n.picked(pick) {
		c.shoot()
	}
}

// die makes c half-open.
func (c *conn) die() { c.dying.Do(func() { close(c.dead) }) }

func (c *conn) halfOpen() bool {
	select {
	case <-c.dead:
		return true
	default:
		return false
	}
}

// shoot resets c. Discarding unsent data makes the kernel send an RST and not a FIN.
func (c *conn) shoot() {
	c.wasShot.Store(true)
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// worded gives an error of a reset connection the system's own error.
func (c *conn) worded(op string, err error) error {
	if !c.wasShot.Load() || errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return &net.OpError{
		Op: op, Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(),
		Err: os.NewSyscallError(op, syscall.ECONNRESET),
	}
}

// subscribing is how a SUBSCRIBE begins on the wire.
var subscribing = []byte("$9\r\nsubscribe\r\n")

// seen inspects what the client writes: the kind of the connection, and whether a fate waits for this request.
func (c *conn) seen(p []byte) {
	if bytes.Contains(p, subscribing) {
		c.pubsub.Store(true)
	}
	c.net.mu.Lock()
	fate := c.net.springLocked(p)
	if fate != nil {
		c.fate = fate
	}
	c.net.mu.Unlock()
	if fate != nil && fate.swallow {
		c.die()
	}
}
