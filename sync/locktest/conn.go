package locktest

import (
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// conn is a Manager's end of one in-memory connection.
//
// A pipe has no buffer, unlike a socket. go-redis sends a whole pipeline before it reads the first reply, so over a
// bare pipe the server, which waits for a reader of its first reply, and the client, which waits for a reader of its
// last command, would wait for each other for ever. Write therefore keeps what the server has not read yet and
// returns immediately.
type conn struct {
	net.Conn
	drop func(*conn) // removes the connection from the server's list

	mu      sync.Mutex // a leaf
	pending []byte     // written but not sent yet
	sending bool       // a goroutine is sending pending
	closed  bool
}

// Write takes p and never blocks; the write deadline has no effect.
func (c *conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, net.ErrClosed
	}
	c.pending = append(c.pending, p...)
	if !c.sending {
		c.sending = true
		go c.send()
	}
	return len(p), nil
}

// send sends pending, and ends when it is empty or the pipe is closed.
func (c *conn) send() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.pending) > 0 && !c.closed {
		chunk := c.pending
		c.pending = nil
		c.mu.Unlock()
		_, err := c.Conn.Write(chunk)
		c.mu.Lock()
		if err != nil {
			break // the reader of the connection sees it too
		}
	}
	c.sending = false
}

// Close ends the connection in both directions; unsent data is lost.
func (c *conn) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	// Before drop, which takes the server's mutex: a goroutine that waits for this connection's reader must be free
	// by then.
	err := c.Conn.Close()
	c.drop(c)
	return err
}

// SyscallConn answers go-redis' question to a socket before it takes it out of its pool: is the other side still
// there? Without an answer the pool would hand out connections that Down has cut, after Up, and the first commands of
// a test would fail for a reason that no real socket has.
func (c *conn) SyscallConn() (syscall.RawConn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, net.ErrClosed
	}
	return healthy{}, nil
}

// healthy is a socket without a file descriptor. It never calls the functions that would use one; no error means
// that the connection is open and nothing unexpected has arrived.
type healthy struct{}

func (healthy) Control(func(uintptr)) error    { return nil }
func (healthy) Read(func(uintptr) bool) error  { return nil }
func (healthy) Write(func(uintptr) bool) error { return nil }

// refusal is the error of a connection that could not be made. go-redis unwraps the error of its handshake once, and
// this is the layer it removes; below it is the error of a dialer when nothing listens, by which the library knows that
// nothing was sent.
type refusal struct{}

func (refusal) Error() string { return refused.Error() }
func (refusal) Unwrap() error { return refused }

// refused is constant.
var refused = &net.OpError{
	Op: "dial", Net: "tcp",
	Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port},
	Err:  os.NewSyscallError("connect", syscall.ECONNREFUSED),
}

// refusedConn is what the dialer returns while the server is down. It fails at its first use, in go-redis' handshake,
// and not in the dialer: a pool counts the failures of its dialer, prints each, and after some stops dialing for up
// to a second, which would still be in effect after Up.
type refusedConn struct{ net.Conn }

func (refusedConn) Read([]byte) (int, error)  { return 0, refusal{} }
func (refusedConn) Write([]byte) (int, error) { return 0, refusal{} }

// A closed pipe would already fail here, with an error of its own.
func (refusedConn) SetDeadline(time.Time) error      { return nil }
func (refusedConn) SetReadDeadline(time.Time) error  { return nil }
func (refusedConn) SetWriteDeadline(time.Time) error { return nil }
