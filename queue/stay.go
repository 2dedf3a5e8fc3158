package queue

import "errors"

// Stay is what somebody has inside, from the admission to the last Release. Its caller keeps it among its own, and uses it
// once: others read it as long as it is the owner's.
type Stay struct {
	// Goroutine is whose it is, or 0. This and the next two are set by the caller before Acquire.
	Goroutine uint64
	// Need is how many units it needs: the policy's All makes it exclusive. Downgrade makes it 1.
	Need int32
	// Kind is how its waiter waits.
	Kind Kind

	// The fields below are guarded by the Synchronizer's mu, but for way, which is not changed inside.

	count  uint8 // entries
	in     bool  // it has not ended by a Release. A loss may have ended it, or the word: then it is not the owner any more
	way    way
	losses uint32 // the Synchronizer's when it came in
	number uint32 // its admission's; see OwnerInfo
}

// way is how a stay has come in.
type way uint8

const (
	byMu           way = iota
	byWord             // while an heir was on its way
	whileLingering     // by the word, too
)

// Is reports whether w is what i tells of, unless 2^29 admissions are between them.
func (w *Stay) Is(i OwnerInfo) bool { return i.Count > 0 && w.number == i.Number }

// Next is what is to become of the units of one that leaves.
type Next uint8

const (
	HandOff Next = iota // others of this process may come in by them
	EndTurn             // nobody may before the next grant
	Linger              // as HandOff, and they stay if nobody waits: only matters with Policy.Returns
)

// String returns its name.
func (n Next) String() string { return nameOf(n, "HandOff", "EndTurn", "Linger") }

// Exit is the result of Release.
type Exit uint8

const (
	// Stale: the stay has been released before, or has not begun; nothing changed.
	Stale Exit = iota
	// Nested: one entry ended, others remain.
	Nested
	// HandedOff: the units stay in this process.
	HandedOff
	// Kept: they linger.
	Kept
	// Final: the order is GiveBack.
	Final
	// WasLost: the units had been lost, and the stay with them if its owner was notified. There is nothing to release.
	WasLost
)

// String returns the result's name.
func (e Exit) String() string {
	return nameOf(e, "Stale", "Nested", "HandedOff", "Kept", "Final", "WasLost")
}

// Release ends one entry of w, and with the last one the stay; next says what is to become of its units then. Any goroutine
// may call it, and of several at once each ends another entry.
func (s *Synchronizer) Release(w *Stay, next Next) (Exit, Order) {
	claimed := false
	if w.way != byMu && (next == Linger || next == HandOff && w.way == byWord) {
		var left bool
		left, claimed = s.releaseByWord(w)
		switch {
		case left && w.way == whileLingering:
			return Kept, Nothing
		case left:
			return HandedOff, Nothing
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if claimed {
		s.owner.Store(w)
	}
	switch {
	case !w.in, w.way != byMu && s.owner.Load() != w:
		return Stale, Nothing
	case w.count > 1:
		w.count--
		return Nested, Nothing
	}
	w.count = 0
	wasLost := s.lost
	inside, exclusive := s.leaveLocked(w, 0)
	if wasLost || !inside {
		return WasLost, s.settleLocked(exclusive)
	}
	if next == EndTurn || exclusive && s.p.Returns && s.since(s.word.Load()) > MaxHandOffs {
		s.over = true
	}
	s.lingers = next == Linger && s.p.Returns && s.waiters.len == 0 && !s.over
	order := s.settleLocked(exclusive)
	switch {
	case order == GiveBack:
		return Final, order
	case s.lingers:
		return Kept, order
	}
	return HandedOff, order
}

// leaveLocked takes w off those inside, unless a loss has. of is its capacity, where it cannot be notified. exclusive: it was the
// exclusive one.
func (s *Synchronizer) leaveLocked(w *Stay, of int64) (inside, exclusive bool) {
	switch inside = true; {
	case s.alone(w):
		if inside = s.owner.Load() == w; inside { // it stays the owner until the end of the transition: see arrangeLocked
			s.closeLocked() // before others may come in by the word
			s.word.And(^uint64(exclusiveBit))
		}
		exclusive = inside
	case w.Kind.CanNotify():
		if inside = w.losses == s.losses; inside {
			s.held -= w.Need
			if s.p.sem != nil {
				s.p.sem.remove(w)
			}
		}
	case s.p.All == 0:
		s.loose -= w.Need
		s.p.sem.release(int64(w.Need), of)
	default:
		s.word.Add(^uint64(0))
	}
	w.in = false
	return inside, exclusive
}

// closeLocked makes newcomers take mu.
func (s *Synchronizer) closeLocked() {
	if s.word.Load()&closedBit == 0 {
		s.word.Or(closedBit)
	}
}

// Downgrade makes the exclusive w a shared one. Nobody comes between; shared ones that wait come in beside it. If w is
// not inside as an exclusive one, nothing changes.
func (s *Synchronizer) Downgrade(w *Stay) Order {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.owner.Load() != w {
		return Nothing
	}
	s.leaveLocked(w, 0)
	w.Need, w.in = 1, true
	if w.Kind.CanNotify() {
		s.held++
	} else {
		s.word.Add(1)
	}
	return s.settleLocked(true)
}

// Why a stay cannot be entered again. Nothing has changed.
var (
	ErrNotOwner   = errors.New("queue: the caller does not own the lock")
	ErrCountLimit = errors.New("queue: the count is at its limit")
	ErrWasLost    = errors.New("queue: the caller's stay is lost")
)

// MaxCount is how often a stay may be entered.
const MaxCount = 255

// Reenter adds an entry to w, one more Release of which is due then. It must not run beside a Release of w that may be the
// last. One that is lost, and goes on since its owner cannot be notified, is entered again only with allowLost.
func (s *Synchronizer) Reenter(w *Stay, allowLost bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !w.in, w.count == 0, s.alone(w) && s.owner.Load() != w, w.Kind.CanNotify() && w.losses != s.losses:
		return ErrNotOwner
	case s.lost && !allowLost:
		return ErrWasLost
	case w.count == MaxCount:
		return ErrCountLimit
	case w.way != byMu:
		s.closeLocked() // so that it leaves under mu: who leaves by the word does not look at the count
	}
	w.count++
	return nil
}

// Entries returns how many of w have not ended.
func (s *Synchronizer) Entries(w *Stay) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.way != byMu && s.owner.Load() != w {
		return 0
	}
	return int(w.count)
}

// EndEntry ends one entry of w, whose stay goes on until it Leaves, and returns how many are left. False: there was none.
func (s *Synchronizer) EndEntry(w *Stay) (left int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.count == 0 {
		return 0, false
	}
	w.count--
	return int(w.count), true
}

// Leave ends the stay of w, if that has not ended, whatever entries remain.
func (s *Synchronizer) Leave(w *Stay) Order {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !w.in {
		return Nothing
	}
	_, exclusive := s.leaveLocked(w, 0)
	return s.settleLocked(exclusive)
}
