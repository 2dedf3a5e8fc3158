package testredis

import (
	"net"
	"path/filepath"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// Host is a place for one server: a network namespace, an address in it, and a port that no other server of the
// deployment has. The zero Host is loopback.
type Host struct {
	Namespace string
	Addr      string
	Port      int
}

// on returns k for a server of that host.
func (k kind) on(h Host) kind {
	if h != (Host{}) {
		k.host, k.port = h, func(TB) int { return h.Port }
	}
	return k
}

// ip returns the address at which the server listens.
func (s *Server) ip() string {
	if s.kind.host.Addr != "" {
		return s.kind.host.Addr
	}
	return "127.0.0.1"
}

// Addr returns host and port.
func (s *Server) Addr() string { return net.JoinHostPort(s.ip(), strconv.Itoa(s.port)) }

// Host returns where the server runs.
func (s *Server) Host() Host { return s.kind.host }

// socket is the Unix socket of a server with a host of its own. It leads there from every namespace, in any state of
// the network.
func (s *Server) socket() string { return filepath.Join(s.dir, "s") }

// reach makes o lead to the server from here.
func (s *Server) reach(o *redis.Options) {
	o.Addr = s.Addr()
	if s.kind.host.Namespace != "" {
		o.Network, o.Addr = "unix", s.socket()
	}
}

// hostArgs is the command line's part about the network.
func (s *Server) hostArgs() []string {
	args := []string{"--port", strconv.Itoa(s.port), "--bind", s.ip()}
	if s.kind.host.Namespace != "" {
		// Clients are on other hosts and have no password.
		args = append(args, "--unixsocket", s.socket(), "--protected-mode", "no")
	}
	return args
}
