package faultnet

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// conn is one connection of a Network. As any net.Conn that go-redis uses, it has one
// reader and one writer at a time.
type conn struct {
	net.Conn
	net    *Network
	once   sync.Once
	closed chan struct{}

	mu       sync.Mutex
	deadline time.Time // of reads
	held     []byte    // read from the server, not delivered yet
	late     bool      // held has been delayed already
	cut      bool      // no more data after held
	writeMu  sync.Mutex
	pending  []byte // written by the client, not sent yet; guarded by writeMu
	sending  bool   // a goroutine sends what is pending; guarded by writeMu
}

// Read delivers what the server sent, subject to the faults: it waits while the
// replies are held or delayed, in a way that its deadline and Close end.
func (c *conn) Read(p []byte) (int, error) {
	if err := c.fill(len(p)); err != nil {
		return 0, err
	}
	for {
		c.net.mu.Lock()
		shut, delay := c.net.down.opened, c.net.delay
		c.net.mu.Unlock()
		if shut != nil {
			if err := c.wait(shut, 0); err != nil {
				return 0, err
			}
			continue
		}
		if delay > 0 && !c.late {
			if err := c.wait(nil, delay); err != nil {
				return 0, err
			}
		}
		c.late = true
		break
	}
	if len(c.held) == 0 && c.cut {
		_ = c.Close()
		return 0, io.EOF
	}
	n := copy(p, c.held)
	c.held = c.held[n:]
	return n, nil
}

// fill reads from the server unless something is held. A reply that is to be cut loses
// its tail here, when the server has certainly sent it.
func (c *conn) fill(size int) error {
	if len(c.held) > 0 || c.cut {
		return nil
	}
	buf := make([]byte, size)
	n, err := c.Conn.Read(buf)
	if err != nil {
		return err
	}
	c.held, c.late = buf[:n], false
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	if c.net.cuts > 0 {
		c.net.cuts--
		c.cut = true
		c.held = c.held[:min(c.net.cutSize, n)]
	}
	return nil
}

// wait ends when opened is closed, after delay if that is set, at the read deadline,
// or with the connection.
func (c *conn) wait(opened <-chan struct{}, delay time.Duration) error {
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
	case <-expired:
		return os.ErrDeadlineExceeded
	case <-c.closed:
		return net.ErrClosed
	}
}

// Write takes p and returns at once, as a socket with room in its buffer does. Over
// net.Pipe, which has none, a long pipeline and its replies would otherwise wait for
// each other for ever.
func (c *conn) Write(p []byte) (int, error) {
	select {
	case <-c.closed:
		return 0, net.ErrClosed
	default:
	}
	c.writeMu.Lock()
	c.pending = append(c.pending, p...)
	c.writeMu.Unlock()
	c.flush()
	return len(p), nil
}

// flush starts sending what is pending, unless that is under way already.
func (c *conn) flush() {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	if !c.sending && len(c.pending) > 0 {
		c.sending = true
		go c.send()
	}
}

// send sends what is pending, in order, until nothing is, the way is shut, or the
// connection fails; a closed connection loses the rest, as it should.
func (c *conn) send() {
	for {
		c.writeMu.Lock()
		c.net.mu.Lock()
		shut := c.net.up.opened != nil
		c.net.mu.Unlock()
		data := c.pending
		if shut || len(data) == 0 {
			c.sending = false
			c.writeMu.Unlock()
			return
		}
		c.pending = nil
		c.writeMu.Unlock()
		if _, err := c.Conn.Write(data); err != nil {
			_ = c.Close()
		}
	}
}

// SetDeadline sets both deadlines.
func (c *conn) SetDeadline(t time.Time) error {
	c.setDeadline(t)
	return c.Conn.SetDeadline(t)
}

// SetReadDeadline bounds the next Read, also while it is held here.
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
	c.once.Do(func() {
		close(c.closed)
		c.net.mu.Lock()
		delete(c.net.conns, c)
		c.net.mu.Unlock()
	})
	return c.Conn.Close()
}
