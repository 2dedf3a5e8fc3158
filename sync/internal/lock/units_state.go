package lock

import (
	lettucecompat "github.com/anteroom/anteroom/lettuce_compat"
	"github.com/anteroom/anteroom/queue"
)

// UnitsState is what a client knows of a key in units, all from one moment but for those who come and go by the queue alone.
type UnitsState struct {
	queue.Demand
	Capacity int64  // that counts
	Held     *Held  // the last grant, nil before the first; it may have ended
	Valid    bool   // Held has not ended
	Entries  int    // of those inside that are known by name, and have not exited
	Writes   *Owner // the one of them that writes, or nil
	InLine   bool   // the client has a place in the line
	Ahead    int    // so many places are before it, at most
}

// Units returns what is known of k.
func (k *Key) Units() UnitsState {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := UnitsState{Demand: k.q.Demand(), Capacity: k.u.least, Held: k.cur.Load(), Valid: k.usableLocked()}
	if of := k.u.of; s.Valid && of > 0 {
		s.Capacity = min(s.Capacity, of) // a call says no other one's
	}
	if g := s.Held; g != nil {
		for o := range g.u.owners {
			s.Entries += o.Entered()
			if o.whole() {
				s.Writes = o
			}
		}
	}
	if a := k.answer; a != nil && a.Word == lettucecompat.WordWaits && k.conv.InLine {
		s.InLine, s.Ahead = true, a.Ahead
	}
	return s
}
