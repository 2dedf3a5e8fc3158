package queue

import (
	"fmt"
	"time"
)

// New returns a Synchronizer with a zero of now.
func New(fair bool) *Synchronizer {
	s := new(Synchronizer)
	s.Init(fair, time.Now())
	return s
}

// Pack is the word's encoder; the decoders are exported.
func Pack(state State, count, handOffs int) Word { return pack(state, count, handOffs) }

// Waiting returns all waiters, first to last.
func (s *Synchronizer) Waiting() []WaiterInfo {
	_, infos := s.Peek(-1)
	return infos
}

// String describes the state in one line.
func (s *Synchronizer) String() string {
	return fmt.Sprintf("queue.Synchronizer[fair=%v waiting=%d %+v]", s.fair, s.Len(), s.Current())
}

// AddReader is what TryJoin does before it checks, and Withdraw what it does if the check fails.
func (g *Gate) AddReader() { g.word.Add(oneReader) }
func (g *Gate) Withdraw()  { g.withdraw() }
