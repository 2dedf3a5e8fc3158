package faultnet

import (
	"bytes"
	"errors"
	"net"
	"os"
	"syscall"
)

// Conn is what a Pick is told about a connection.
type Conn struct {
	// PubSub tells whether a SUBSCRIBE was written on it.
	PubSub bool
}

// Pick chooses among the connections that exist.
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

// HalfOpen makes the picked connections swallow everything for good, in both directions,
// as they do whose other end has vanished without a word: a firewall that has forgotten
// them, a machine without power. Writes succeed, reads wait for their deadline, and
// neither Heal nor the server's closing is ever noticed. What was held for them is
// swallowed too. New connections work.
func (n *Network) HalfOpen(pick Pick) {
	for _, c := range n.picked(pick) {
		c.die()
	}
}

// Reset resets the picked connections: the server gets an RST where they are TCP, and
// the client ECONNRESET.
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

// shoot resets c. Unsent data is thrown away, which is what makes the kernel send an RST
// and not a FIN.
func (c *conn) shoot() {
	c.wasShot.Store(true)
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// worded gives an error of a connection that was reset the words of the system.
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

// seen looks at what the client writes: what kind of connection it is, and whether a
// fate waits for this request.
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
