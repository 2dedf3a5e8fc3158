package lock

import (
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/queue"
)

// SharedState is what a client knows of a shared key, all from one moment but for those who come and go by the gate alone.
type SharedState struct {
	queue.Demand
	Capacity int64       // that counts
	Held     *SharedHeld // the last grant, nil before the first; it may have ended
	Valid    bool        // Held has not ended
	Shares   int         // inside, and known by name
	Writes   *Share      // the one of them that writes, or nil
	InLine   bool        // the client has a place in the line
	Ahead    int         // so many places are before it, at most
}

// State returns what is known of k.
func (k *SharedKey) State() SharedState {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := SharedState{Demand: k.gate.Demand(), Capacity: k.least, Held: k.cur.Load(), Valid: k.talk.usable}
	if g := s.Held; g != nil {
		s.Shares = len(g.owners)
		for o := range g.owners { // a writer is the only one
			if o.whole() {
				s.Writes = o
			}
			break
		}
	}
	if a := k.answer; a != nil && a.Word == lettucecompat.WordWaits && k.talk.place {
		s.InLine, s.Ahead = true, a.Ahead
	}
	return s
}

// Answer returns the last answer of Redis to a statement, nil before the first.
func (k *SharedKey) Answer() *lettucecompat.UnitsAnswer {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.answer
}
