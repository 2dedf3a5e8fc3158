package faultnet

import (
	"bytes"
	"time"
)

// Fate is what becomes of one request's reply.
type Fate struct {
	late    time.Duration
	cut     bool
	size    int // bytes of a cut reply that still arrive
	reset   bool
	swallow bool
}

// Fates. The server has executed the command, but for Swallowed, where it never gets it.
var (
	Lost      = Fate{cut: true}     // the connection ends in good order instead
	Shot      = Fate{reset: true}   // the connection is reset instead
	Swallowed = Fate{swallow: true} // the connection becomes half-open before the request is sent
)

// Late is the fate of a reply that arrives d later.
func Late(d time.Duration) Fate { return Fate{late: d} }

// trap waits for requests that contain text. Guarded by Network.mu.
type trap struct {
	text  []byte
	times int
	fate  Fate
}

// OnRequest gives a fate to the replies of the next times requests that contain text, on
// whichever connection. Such a request must not share its connection with others that
// are under way, which holds for go-redis' pools. Heal ends it.
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

// springLocked returns the fate that waits for a request, nil for most.
func (n *Network) springLocked(request []byte) *Fate {
	for _, t := range n.traps {
		if t.times > 0 && bytes.Contains(request, t.text) {
			t.times--
			return &t.fate
		}
	}
	return nil
}
