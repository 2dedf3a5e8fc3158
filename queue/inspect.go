package queue

import (
	"strconv"
	"time"
)

// State is what a key is to this process. The numbers are part of the Word's layout: Free and Owned are those of the design
// document (docs/internals/decisions.md §5.1), the others are the steps between request and possession that a lock granted
// by a server has and a lock in memory does not.
type State uint8

const (
	Free      State = 0 // it has no units, and nobody waits
	Owned     State = 1 // somebody is inside
	Acquiring State = 2 // it has too few units for the first waiter, and nobody is inside
	Granted   State = 3 // it has units, and nobody is inside: an heir is on its way, or they stay until Shrink
	Releasing State = 4 // nobody is inside, and nobody may come in by the units
	Lost      State = 5 // somebody inside relies on lost units
	Lingers   State = 6 // it has units, which nobody wants: see Linger
)

// String returns the state's name.
func (s State) String() string {
	return nameOf(s, "Free", "Owned", "Acquiring", "Granted", "Releasing", "Lost", "Lingers")
}

// nameOf returns the name of v, or its number if it has none.
func nameOf[T ~uint8](v T, names ...string) string {
	if int(v) < len(names) {
		return names[v]
	}
	return strconv.Itoa(int(v))
}

// OwnerInfo is a copy of what is known about the exclusive stay inside. It is zero if there is none.
type OwnerInfo struct {
	Number    uint32 // no other one has it within 2^29 admissions, but perhaps one beside which readers added in vain
	Goroutine uint64
	Kind      Kind
	Count     int // its entries
}

// WaiterInfo is a copy of what is known about a queued waiter.
type WaiterInfo struct {
	Goroutine uint64
	Kind      Kind
	Note      any
	Need      int64
	Since     time.Time // when it was first queued, with a monotonic reading
}

// Demand is what a Synchronizer needs of the server, and what else it is, all from one moment but for those who come and
// go by the word.
type Demand struct {
	Units int64 // that the server has granted, as far as is known
	Used  int64 // of them by those inside. Where the gate is open it may be wrong by the time the caller reads it: see Shrink
	Keep  int64 // of them for now: all, or when the turn is over those that are used
	Want  int64 // with how many the first waiter could come in, if that is more than Keep; else Keep
	Again bool  // the first waiter needs a place in line, though Keep is enough for it: the turn is over
	Try   bool  // the first waiter is a Try: it waits for the answer to one command, and takes no place in line
	// Of a Semaphore: the least capacity of those for whom units are kept, and of those with the first waiter. If the second is
	// less, nobody comes in by it before CountsWith says that it is what counts.
	KeepOf, WantOf int64
	Barred         bool // those inside have too many units for the first waiter, whatever the server grants
	Idle           bool // the only one that was admitted in this turn has left. Its units may go back immediately

	Grant      uint64        // its number; while it is lost, too; 0: none
	Admissions uint32        // in this turn: the units were used if it changes
	TurnEnds   time.Duration // if Contended: call Contended again then
	Contended  bool          // another process waits
	Over       bool          // the turn is: nobody comes in before the next grant
	Lingers    bool          // the units linger
	Lost       bool          // nobody comes in before those inside have left
	Waiting    int           // waiters
	Readers    int64         // inside
	Owner      OwnerInfo     // the exclusive one inside
	OwnerWaits bool          // its goroutine has queued behind itself. It may have left the queue since
}

// State returns the state.
func (d *Demand) State() State {
	switch {
	case d.Lost:
		return Lost
	case d.Used > 0:
		return Owned
	case d.Units > 0 && d.Over:
		return Releasing
	case d.Want > d.Units:
		return Acquiring
	case d.Lingers:
		return Lingers
	case d.Units > 0:
		return Granted
	}
	return Free
}

// HandOffs is how often the units have passed on in this turn.
func (d *Demand) HandOffs() int {
	switch d.State() {
	case Owned, Lost, Releasing:
		return max(int(d.Admissions)-1, 0)
	case Granted, Lingers:
		return int(d.Admissions)
	}
	return 0
}

// Demand returns what is needed now.
func (s *Synchronizer) Demand() Demand {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.demandLocked()
}

func (s *Synchronizer) demandLocked() Demand {
	n := s.needLocked()
	d := Demand{
		Units: int64(s.units), Used: int64(s.usedLocked()), Keep: int64(n.keep), Want: int64(n.want), KeepOf: n.keepOf, WantOf: n.wantOf, Barred: n.flags&needBarred != 0,
		Again: n.flags&needAgain != 0, Try: n.flags&needTry != 0, Idle: n.flags&needIdle != 0,
		Grant: s.grant.Load(), Admissions: uint32(s.since(s.word.Load())), TurnEnds: s.turnEnds, Contended: s.contended, Over: s.over,
		Lingers: s.lingers && s.word.Load()&exclusiveBit == 0, Lost: s.lost, Waiting: int(s.waiters.len),
	}
	if s.p.All > 0 {
		d.Readers = int64(s.held) + int64(s.word.Load()&insideMask)
	}
	if o := s.owner.Load(); o != nil {
		d.Owner, d.OwnerWaits = OwnerInfo{o.number, o.Goroutine, o.Kind, int(o.count)}, s.selfWait
	}
	return d
}

// Word is the state in 32 bits, as docs/internals/decisions.md §5.1 lays them out. It is a view: see the unexported word.
//
//	 31         24 23         16 15                        0
//	+-------------+-------------+---------------------------+
//	|    state    |    count    |         hand-offs         |
//	+-------------+-------------+---------------------------+
type Word uint32

// Word returns the Word.
func (s *Synchronizer) Word() Word {
	d := s.Demand()
	return Word(uint32(d.State())<<24 | uint32(d.Owner.Count)<<16 | uint32(min(d.HandOffs(), MaxHandOffs)))
}

// State returns the state, bits 24 to 31.
func (w Word) State() State { return State(w >> 24) }

// Count returns the entries of the exclusive one inside, bits 16 to 23.
func (w Word) Count() int { return int(w >> 16 & MaxCount) }

// HandOffs returns how often the units have passed on in this turn, bits 0 to 15, or the most that these can hold.
func (w Word) HandOffs() int { return int(w & MaxHandOffs) }

// Owner returns the exclusive one inside, also one that has lost that and not left yet, or nil. It takes no lock. For a
// goroutine that asks about itself, and came by a NoNotify kind, it is exact: only itself can become the owner, and it sees
// its own writes.
func (s *Synchronizer) Owner() *Stay { return s.owner.Load() }

// Len returns the number of waiters.
func (s *Synchronizer) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int(s.waiters.len)
}

// Front is a Demand, and who waits longest, unless one that is First is before it; zero if nobody waits.
type Front struct {
	Demand
	First WaiterInfo
}

// Front returns both from the same moment. Its cost does not depend on the number of waiters.
func (s *Synchronizer) Front() Front {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.frontLocked()
}

// FirstNote returns the Note of who waits longest, as Front does, for who asks at each hand-off.
func (s *Synchronizer) FirstNote() any {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiters.head == nil {
		return nil
	}
	return s.waiters.head.Note
}

func (s *Synchronizer) frontLocked() Front {
	f := Front{Demand: s.demandLocked()}
	if f.Waiting > 0 {
		f.First = s.infoLocked(s.waiters.head)
	}
	return f
}

func (s *Synchronizer) infoLocked(w *Waiter) WaiterInfo {
	return WaiterInfo{Goroutine: w.Goroutine, Kind: w.Kind, Note: w.Note, Need: int64(w.Need), Since: s.p.Zero.Add(w.Began)}
}

// Peek returns the Front and the first n waiters, or all with a negative n, all from one moment. It holds the lock for
// the walk over those n: meant for a person, not for a loop.
func (s *Synchronizer) Peek(n int) (Front, []WaiterInfo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.frontLocked()
	if n < 0 || n > f.Waiting {
		n = f.Waiting
	}
	infos := make([]WaiterInfo, 0, n)
	for w := s.waiters.head; len(infos) < n; w = w.next {
		infos = append(infos, s.infoLocked(w))
	}
	return f, infos
}

// AppendWaiting appends the goroutines of the waiters to ids, first to last, and allocates nothing if ids has the capacity.
func (s *Synchronizer) AppendWaiting(ids []uint64) []uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := s.waiters.head; w != nil; w = w.next {
		ids = append(ids, w.Goroutine)
	}
	return ids
}

// Find returns what is known about a goroutine if it waits. It walks the queue. 0 means no goroutine, and is never found.
func (s *Synchronizer) Find(goroutine uint64) (WaiterInfo, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := s.waiters.head; w != nil && goroutine != 0; w = w.next {
		if w.Goroutine == goroutine {
			return s.infoLocked(w), true
		}
	}
	return WaiterInfo{}, false
}
