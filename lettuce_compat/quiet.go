package lettucecompat

import (
	"context"
	"net"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// quietDial keeps go-redis from writing a line for each dial that fails, which is some ten a second in an outage: its
// logger belongs to the whole process, and so to the program. A dial that fails returns a connection whose first use
// fails with the same error. So the pool never counts failed dials either, after which it would refuse commands without
// dialing; the Client has pauses of its own. The first dials of min_idle_conns may come before the hook, and be written.
type quietDial struct{}

func (quietDial) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		if err != nil {
			return undialed{dialError{err}}, nil
		}
		return conn, nil
	}
}

func (quietDial) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (quietDial) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// undialed is a connection that was never made.
type undialed struct{ err dialError }

func (c undialed) Read([]byte) (int, error)         { return 0, c.err }
func (c undialed) Write([]byte) (int, error)        { return 0, c.err }
func (c undialed) Close() error                     { return nil }
func (c undialed) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (c undialed) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (c undialed) SetDeadline(time.Time) error      { return nil }
func (c undialed) SetReadDeadline(time.Time) error  { return nil }
func (c undialed) SetWriteDeadline(time.Time) error { return nil }

// SyscallConn answers the pool's question whether an idle connection is still good.
func (c undialed) SyscallConn() (syscall.RawConn, error) { return nil, c.err }

// dialError is the layer that go-redis takes off the error of a handshake.
type dialError struct{ err error }

func (e dialError) Error() string { return e.err.Error() }
func (e dialError) Unwrap() error { return e.err }
