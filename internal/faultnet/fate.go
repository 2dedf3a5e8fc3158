package faultnet

import (
	"bytes"
	"time"
)

// Fate is what happens to one request's reply.
type Fate struct {
	late    time.Duration
	cut     bool
	size    int // bytes of a cut reply that still arrive
	reset   bool
	swallow bool
	spoil   bool
}

// Fates. The server has executed the command, except for Swallowed, where it never gets it.
var (
	Lost      = Fate{cut: true}     // the connection is closed in good order instead
	Shot      = Fate{reset: true}   // the connection is reset instead
	Swallowed = Fate{swallow: true} // the connection becomes half-open before the request is sent
	Spoiled   = Fate{spoil: true}   // a string of 2^62 bytes begins in place of the reply
)

// Late is the fate of a reply that arrives d later.
func Late(d time.Duration) Fate { return Fate{late: d} }

// trap waits for requests that contain text. Guarded by Network.mu.
type trap struct {
	text  []byte
	times int
	fate  Fate
}

// OnRequest gives a fate to the replies to the next times requests that contain text, on any connection. Such a
// request must not share its connection with other requests in flight, which holds for go-redis' pools. Heal ends it.
func (n *Network) OnRequest(text string, times int, f Fate) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.traps = append(n.traps, &trap{text: []byte(text), times: times, fate: f})
}

// Waiting returns how many requests the traps of OnRequest still wait for.
func (n *Network) Waiting() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	sum := 0
	for _, t := range n.traps {
		sum += t.times
	}
	return sum
}

// springLocked returns the fate of a request, nil for most.
func (n *Network) springLocked(request []byte) *Fate {
	for _, t := range n.traps {
		if t.times > 0 && bytes.Contains(request, t.text) {
			t.times--
			return &t.fate
		}
	}
	return nil
}
