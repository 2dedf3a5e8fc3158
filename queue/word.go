package queue

import "strconv"

// State is what a key is to this process. The numbers are part of the word's layout: Free and Owned are those of the
// design document (docs/internals/decisions.md §5.1), the others are the steps between request and possession that a lock granted
// by a server has and a lock in memory does not.
type State uint8

const (
	// Free: this process has no claim on the key and no goroutine of it wants one.
	Free State = 0
	// Owned: a tenure is current; the count is at least 1.
	Owned State = 1
	// Acquiring: somebody waits and Redis is asked. The grant is for the key, whichever waiter is head when it comes.
	Acquiring State = 2
	// Granted: this process has the grant and no goroutine owns it yet; the head of the queue has been woken. Only in
	// non-fair mode.
	Granted State = 3
	// Releasing: between the last Exit and Released.
	Releasing State = 4
	// Lost: the grant is gone, and its owner, which cannot be notified, still relies on it; the count is at least 1.
	Lost State = 5
	// Lingers: this process keeps the grant, and no goroutine wants it. See Keep.
	Lingers State = 6
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

const (
	// MaxCount is the largest reentrancy count: the word has 8 bits for it (I9).
	MaxCount = 255
	// MaxHandOffs is the largest number of hand-offs within one turn: the word has 16 bits for it (I10).
	MaxHandOffs = 65535
)

// Word is the state of a Synchronizer in 32 bits, as docs/internals/decisions.md §5.1 lays them out:
//
//	 31         24 23         16 15                        0
//	+-------------+-------------+---------------------------+
//	|    state    |    count    |         hand-offs         |
//	+-------------+-------------+---------------------------+
//
// The low 16 bits, reserved in the document, count the hand-offs since the turn began. A Word is a copy, true at one
// moment: it never mixes two transitions.
type Word uint32

const (
	stateShift   = 24
	countShift   = 16
	countMask    = 0xff
	handOffsMask = 0xffff
)

// pack builds the word. The callers keep count and handOffs within their bounds (I9, I10): a larger value would
// overflow into the neighbouring field and turn one state into another.
func pack(state State, count, handOffs int) Word {
	return Word(uint32(state)<<stateShift | uint32(count)<<countShift | uint32(handOffs))
}

// State returns the state, bits 24 to 31.
func (w Word) State() State { return State(w >> stateShift) }

// Count returns the reentrancy count, bits 16 to 23: 0 exactly when the state is neither Owned nor Lost.
func (w Word) Count() int { return int(w >> countShift & countMask) }

// HandOffs returns how often the grant has passed from owner to owner since it was granted, bits 0 to 15.
func (w Word) HandOffs() int { return int(w & handOffsMask) }
