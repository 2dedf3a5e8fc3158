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
// A pipe has no buffer, where a socket has one. go-redis sends a pipeline whole
// before it reads the first reply, so over a bare pipe the server, which waits for
// a reader of its first reply, and the client, which waits for a reader of its last
// command, would wait for each other for good. Write therefore keeps what the
// server has not taken yet and returns at once.
type conn struct {
	net.Conn
	drop func(*conn) // tells the server that the connection has ended

	mu      sync.Mutex // a leaf
	pending []byte     // written and not sent yet
	sending bool       // a goroutine sends what is pending
	closed  bool
}

// Write takes p and never blocks; the deadline for writing has no meaning.
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

// send passes on what is pending, and ends when nothing is or the pipe is closed.
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

// Close ends the connection in both directions; what was not sent is gone.
func (c *conn) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	// Before drop, which takes the server's mutex: whoever waits for this
	// connection's reader must be free by then.
	err := c.Conn.Close()
	c.drop(c)
	return err
}

// SyscallConn answers the question that go-redis asks a socket before it takes it
// out of its pool: is the other side still there? Without an answer the pool would
// hand out connections that Down has cut, after Up, and the first commands of a
// test would fail for a reason that no real socket has.
func (c *conn) SyscallConn() (syscall.RawConn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, net.ErrClosed
	}
	return healthy{}, nil
}

// healthy is a socket without a file descriptor. It never calls the functions that
// would look at one, and that no error comes back means: open, and nothing
// unexpected has arrived.
type healthy struct{}

func (healthy) Control(func(uintptr)) error    { return nil }
func (healthy) Read(func(uintptr) bool) error  { return nil }
func (healthy) Write(func(uintptr) bool) error { return nil }

// refusal is the error of a connection that could not be made. go-redis takes one
// layer off the error of its handshake, and this is that layer; below is what a
// dialer returns where nobody listens, by which the library knows that nothing was
// sent.
type refusal struct{}

func (refusal) Error() string { return refused.Error() }
func (refusal) Unwrap() error { return refused }

// refused is constant.
var refused = &net.OpError{
	Op: "dial", Net: "tcp",
	Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port},
	Err:  os.NewSyscallError("connect", syscall.ECONNREFUSED),
}

// refusedConn is what the dialer returns while the server is away. It fails at its
// first use, in go-redis' handshake, and not in the dialer: a pool counts the
// failures of its dialer, prints each, and after some stops to dial for up to a
// second, which would be left over when the server is back.
type refusedConn struct{ net.Conn }

func (refusedConn) Read([]byte) (int, error)  { return 0, refusal{} }
func (refusedConn) Write([]byte) (int, error) { return 0, refusal{} }

// A pipe that is closed would fail here already, with an error of its own.
func (refusedConn) SetDeadline(time.Time) error      { return nil }
func (refusedConn) SetReadDeadline(time.Time) error  { return nil }
func (refusedConn) SetWriteDeadline(time.Time) error { return nil }
