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

// Word is the word as it is.
func (g *Gate) Word() uint64 { return g.word.Load() }

// CountOn counts so many admissions.
func (g *Gate) CountOn(admissions uint64) { g.word.Add(admissions * oneAdmission) }

// WhileLocked runs f while nobody else can have the gate's lock.
func (g *Gate) WhileLocked(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f()
}
