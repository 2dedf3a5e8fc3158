package faultnet

import (
	"context"
	"net"
	"sync"
)

// Gate is the way to a server in memory. Once it is closed, dials are refused: a client's abandoned dial would otherwise
// meet the server while that closes, or start it again.
type Gate struct {
	server interface {
		Dial() (net.Conn, error)
		Close()
	}

	mu     sync.RWMutex // read-locked by each dial
	closed bool
}

// NewGate returns the gate of a server, such as a *miniredis.Miniredis.
func NewGate(server interface {
	Dial() (net.Conn, error)
	Close()
},
) *Gate {
	return &Gate{server: server}
}

// Dial connects to the server, ignoring the address. It is a DialFunc.
func (g *Gate) Dial(_ context.Context, network, _ string) (net.Conn, error) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if g.closed {
		return nil, &net.OpError{Op: "dial", Net: network, Err: ErrRefused}
	}
	return g.server.Dial()
}

// Close closes the server, after the dials under way.
func (g *Gate) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	g.server.Close()
}
