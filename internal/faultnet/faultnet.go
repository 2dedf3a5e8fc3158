// Package faultnet injects faults between a client and a server in tests: connections that swallow everything,
// replies that are late, cut or lost, latency with jitter, resets, half-open connections, failing dials.
//
// It also gives net.Pipe the write buffer that sockets have, without which a long
// pipeline to an in-memory server hangs.
//
// It wraps any dial function, so it works over TCP and over net.Pipe. It waits on channels and timers only: inside a
// testing/synctest bubble time stays virtual.
//
//	net := faultnet.New(nil)
//	rdb := redis.NewClient(&redis.Options{Addr: addr, Dialer: net.Dial})
//	net.HoldReplies()      // commands arrive, replies do not
//	net.Heal()             // what was held is delivered
//
// A fault applies to all connections (BlackHole, HoldReplies, Delay, Latency, Refuse), to picked existing ones
// (HalfOpen, Reset), or to the one that carries a certain request (OnRequest).
package faultnet

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// DialFunc makes a connection; redis.Options.Dialer is one.
type DialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// ErrRefused is the error of a dial while Refuse is on, inside a *net.OpError.
var ErrRefused = errors.New("faultnet: connection refused")

// Network is a set of connections that share their faults. Without faults everything passes. All methods are safe for
// concurrent use and act on existing and future connections.
type Network struct {
	dial DialFunc

	mu      sync.Mutex
	refuse  bool
	up      gate // client to server
	down    gate // server to client
	delay   time.Duration
	latency *latency
	prompt  bool // it does not delay messages
	cuts    int  // replies to cut
	cutSize int  // bytes of a cut reply that still arrive
	traps   []*trap
	conns   map[*conn]struct{}
	dials   int
}

// New returns a Network over dial; nil dials TCP.
func New(dial DialFunc) *Network {
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	return &Network{dial: dial, conns: map[*conn]struct{}{}}
}

// Dial connects through the network.
func (n *Network) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	n.mu.Lock()
	n.dials++
	refuse := n.refuse
	n.mu.Unlock()
	if err := ctx.Err(); err != nil { // as in net.Dialer
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	if refuse {
		return nil, &net.OpError{Op: "dial", Net: network, Err: ErrRefused}
	}
	inner, err := n.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: inner, net: n, closed: make(chan struct{}), dead: make(chan struct{})}
	n.mu.Lock()
	if refuse = n.refuse; !refuse { // or it would escape a CloseAll after that Refuse
		n.conns[c] = struct{}{}
	}
	n.mu.Unlock()
	if refuse {
		_ = inner.Close()
		return nil, &net.OpError{Op: "dial", Net: network, Err: ErrRefused}
	}
	return wrap(c), nil
}

// BlackHole holds both directions: writes succeed and nothing arrives, reads wait. Heal delivers what was held, as
// TCP would.
func (n *Network) BlackHole() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.up.shut()
	n.down.shut()
}

// HoldReplies lets requests through and holds the replies until Heal.
func (n *Network) HoldReplies() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down.shut()
}

// Delay makes every piece of data from the server arrive d later; 0 ends it.
func (n *Network) Delay(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.delay = d
}

// CutReplies cuts the next count replies, on any connection: size bytes arrive, then the connection is closed. The
// server has executed the command by then.
func (n *Network) CutReplies(count, size int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cuts, n.cutSize = count, size
}

// Refuse makes dials fail immediately. Existing connections continue.
func (n *Network) Refuse() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.refuse = true
}

// CloseAll closes every connection in good order, as the server would.
func (n *Network) CloseAll() {
	for _, c := range n.picked(All) {
		_ = c.Close()
	}
}

// Heal ends every fault and delivers what was held. Half-open connections stay so: nothing brings them back.
func (n *Network) Heal() {
	n.mu.Lock()
	n.refuse, n.delay, n.latency, n.cuts, n.traps = false, 0, nil, 0, nil
	n.up.open()
	n.down.open()
	n.mu.Unlock()
	for _, c := range n.picked(All) {
		c.flush()
	}
}

// Open returns the number of open connections.
func (n *Network) Open() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.conns)
}

// Dials returns the number of dials so far, including failed ones.
func (n *Network) Dials() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dials
}

// gate is open or shut. Guarded by Network.mu.
type gate struct{ opened chan struct{} } // nil: open; else closed when it opens

func (g *gate) shut() {
	if g.opened == nil {
		g.opened = make(chan struct{})
	}
}

func (g *gate) open() {
	if g.opened != nil {
		close(g.opened)
		g.opened = nil
	}
}
