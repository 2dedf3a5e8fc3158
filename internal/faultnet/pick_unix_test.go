//go:build unix

package faultnet_test

import (
	"net"
	"syscall"
	"testing"

	"github.com/anteroom/anteroom/internal/faultnet"
)

// A client can see that the server has closed an idle connection, as without the Network, unless the connection is
// half-open.
func TestIdleConnectionsCanBeSeen(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, halfOpen := range []bool{false, true} {
		n := faultnet.New(nil)
		c, err := n.Dial(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		server, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		raw, err := c.(syscall.Conn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		if halfOpen {
			n.HalfOpen(faultnet.All)
		}
		_ = server.Close()
		looked, got := false, 1
		err = raw.Read(func(fd uintptr) bool {
			looked = true
			got, err = syscall.Read(int(fd), make([]byte, 1))
			return err != syscall.EAGAIN // the end may be in flight
		})
		if err != nil || looked == halfOpen || looked && got != 0 {
			t.Fatalf("half-open %v: looked %v, read %d, %v", halfOpen, looked, got, err)
		}
		_ = c.Close()
	}
}
