//go:build unix

package lettucecompat

import (
	"errors"
	"net"
	"syscall"
)

// isStale reports whether the server has closed nc, on which nothing is due, or has said something on it. It does not wait. Of a
// connection that is no socket, as one over TLS, it knows nothing.
func isStale(nc net.Conn) (stale bool) {
	socket, is := nc.(syscall.Conn)
	if !is {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return true
	}
	_ = nc.SetReadDeadline(noDeadline) // that of the last read may be over, and then nothing is read
	err = raw.Read(func(fd uintptr) bool {
		var one [1]byte
		_, err := syscall.Read(int(fd), one[:])
		stale = !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.EWOULDBLOCK)
		return true
	})
	return stale || err != nil
}
