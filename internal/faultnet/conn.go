package faultnet

import (
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// conn is one connection of a Network. Like any net.Conn that go-redis uses, it has one reader and one writer at a
// time.
type conn struct {
	net.Conn
	net     *Network
	once    sync.Once
	closed  chan struct{}
	dying   sync.Once
	dead    chan struct{} // closed when the connection becomes half-open
	wasShot atomic.Bool   // it was reset
	pubsub  atomic.Bool   // a SUBSCRIBE was written

	mu       sync.Mutex
	deadline time.Time // of reads; guarded by mu
	fate     *Fate     // of the next reply; guarded by net.mu

	// These belong to the reader.
	held  []byte        // read from the server, not delivered yet
	late  bool          // held has been delayed
	extra time.Duration // delay of held beyond that of all data
	cut   bool          // no data comes after held

	writeMu sync.Mutex
	pending []byte // written by the client, not sent yet; guarded by writeMu
	sending bool   // a goroutine is sending pending
}

// Read delivers what the server sent, subject to the faults: it waits while the replies are held or delayed; its
// deadline and Close end the wait.
func (c *conn) Read(p []byte) (int, error) {
	err := c.fill(len(p))
	if err == nil && !c.wasShot.Load() {
		err = c.delayed()
	}
	if c.halfOpen() && !c.wasShot.Load() {
		// Anything that arrived, data or the end of the connection, is never seen.
		c.held, c.cut = nil, false
		err = c.pause(nil, 0, nil)
	}
	if c.wasShot.Load() {
		c.held, err = nil, net.ErrClosed // a reset discards what was received
	}
	if err != nil {
		return 0, c.worded("read", err)
	}
	if len(c.held) == 0 && c.cut {
		_ = c.Close()
		return 0, io.EOF
	}
	n := copy(p, c.held)
	c.held = c.held[n:]
	return n, nil
}

// fill reads from the server unless something is held. A reply with a fate meets it here, when the server has
// certainly sent it.
func (c *conn) fill(size int) error {
	if len(c.held) > 0 || c.cut {
		return nil
	}
	buf := make([]byte, size)
	n, err := c.Conn.Read(buf)
	if err != nil {
		return err
	}
	c.held, c.late, c.extra = buf[:n], false, 0
	c.net.mu.Lock()
	fate := c.fate
	c.fate = nil
	if fate == nil && c.net.cuts > 0 {
		c.net.cuts--
		fate = &Fate{cut: true, size: c.net.cutSize}
	}
	c.net.mu.Unlock()
	if fate == nil {
		return nil
	}
	c.extra = fate.late
	if fate.spoil {
		c.held = []byte("$4611686018427387904\r\n")
	}
	if fate.cut {
		c.cut = true
		c.held = c.held[:min(fate.size, n)]
	}
	if fate.reset {
		c.shoot()
	}
	return nil
}

// delayed waits until held may be delivered.
func (c *conn) delayed() error {
	for {
		c.net.mu.Lock()
		shut, delay := c.net.down.opened, c.net.delay
		if shut == nil && !c.late && !(c.net.prompt && c.pubsub.Load()) {
			delay += c.net.latency.next()
		}
		c.net.mu.Unlock()
		if shut != nil && !c.halfOpen() {
			if err := c.pause(shut, 0, c.dead); err != nil {
				return err
			}
			continue
		}
		if delay += c.extra; delay > 0 && !c.late {
			if err := c.pause(nil, delay, c.dead); err != nil {
				return err
			}
		}
		c.late = true
		return nil
	}
}

// pause returns when opened or dead is closed, after delay if that is set, at the read deadline, or when the
// connection is closed.
func (c *conn) pause(opened <-chan struct{}, delay time.Duration, dead <-chan struct{}) error {
	var due, expired <-chan time.Time
	if delay > 0 {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		due = timer.C
	}
	c.mu.Lock()
	deadline := c.deadline
	c.mu.Unlock()
	if !deadline.IsZero() {
		timer := time.NewTimer(time.Until(deadline))
		defer timer.Stop()
		expired = timer.C
	}
	select {
	case <-opened:
		return nil
	case <-due:
		return nil
	case <-dead:
		return nil
	case <-expired:
		return os.ErrDeadlineExceeded
	case <-c.closed:
		return net.ErrClosed
	}
}

// Write takes p and returns immediately, like a socket with room in its buffer. Over net.Pipe, which has no buffer, a
// long pipeline and its replies would otherwise wait for each other for ever.
func (c *conn) Write(p []byte) (int, error) {
	select {
	case <-c.closed:
		return 0, c.worded("write", net.ErrClosed)
	default:
	}
	c.seen(p)
	c.writeMu.Lock()
	c.pending = append(c.pending, p...)
	c.writeMu.Unlock()
	c.flush()
	return len(p), nil
}

// flush starts sending pending, unless that is in progress.
func (c *conn) flush() {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	if !c.sending && len(c.pending) > 0 {
		c.sending = true
		go c.send()
	}
}

// send sends pending, in order, until it is empty, the gate is shut, or the connection fails; a closed connection
// loses what is left, as it should, and a half-open one swallows it.
func (c *conn) send() {
	for {
		data := c.next()
		if data == nil {
			return
		}
		if _, err := c.Conn.Write(data); err != nil {
			_ = c.Close()
		}
	}
}

// next returns what to send now, after the time that it travels; nil ends send.
func (c *conn) next() []byte {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	for {
		c.net.mu.Lock()
		shut := c.net.up.opened != nil
		delay := time.Duration(0)
		if !shut && len(c.pending) > 0 {
			delay = c.net.latency.next()
		}
		c.net.mu.Unlock()
		if c.halfOpen() {
			c.pending = nil
		}
		data := c.pending
		if shut || len(data) == 0 {
			c.sending = false
			return nil
		}
		c.pending = nil
		if delay == 0 {
			return data
		}
		c.writeMu.Unlock()
		c.travel(delay)
		c.net.mu.Lock()
		shut = c.net.up.opened != nil
		c.net.mu.Unlock()
		c.writeMu.Lock()
		if !shut && !c.halfOpen() {
			return data
		}
		c.pending = append(data, c.pending...) // shut while it was travelling
	}
}

// travel delays a request on its way to the server. Closing the connection ends the delay early.
func (c *conn) travel(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.dead:
	case <-c.closed:
	}
}

// SetDeadline sets both deadlines.
func (c *conn) SetDeadline(t time.Time) error {
	c.setDeadline(t)
	return c.Conn.SetDeadline(t)
}

// SetReadDeadline bounds the next Read, even while data is held here.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.setDeadline(t)
	return c.Conn.SetReadDeadline(t)
}

func (c *conn) setDeadline(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = t
}

// Close closes the connection and ends a Read that waits here.
func (c *conn) Close() error {
	c.forget()
	return c.Conn.Close()
}

// forget removes the connection from the Network's list.
func (c *conn) forget() {
	c.once.Do(func() {
		close(c.closed)
		c.net.mu.Lock()
		delete(c.net.conns, c)
		c.net.mu.Unlock()
	})
}
