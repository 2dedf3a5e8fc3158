package faultnet

import (
	"net"
	"syscall"
)

// rawConn is a conn over a real socket. Clients check the socket itself to learn whether an idle connection is still
// good, and go-redis does so before each use: without this they would see less through a Network than without one.
type rawConn struct{ *conn }

// wrap returns c with the capabilities of its inner connection.
func wrap(c *conn) net.Conn {
	if _, ok := c.Conn.(syscall.Conn); ok {
		return rawConn{c}
	}
	return c
}

// SyscallConn gives access to the socket. A half-open connection always seems idle.
func (c rawConn) SyscallConn() (syscall.RawConn, error) {
	raw, err := c.Conn.(syscall.Conn).SyscallConn()
	return deafConn{raw, c.conn}, err
}

// deafConn is a RawConn that reads nothing from a half-open connection.
type deafConn struct {
	syscall.RawConn
	c *conn
}

func (d deafConn) Read(f func(fd uintptr) bool) error {
	if d.c.halfOpen() {
		return nil
	}
	return d.RawConn.Read(f)
}
