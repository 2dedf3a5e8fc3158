package history

import "encoding/binary"

// Kind is the kind of an Event.
type Kind uint8

// The kinds of events. All but Gap belong to one hold, or to one attempt to acquire.
const (
	// Invoke: an acquire is about to be called.
	Invoke Kind = iota + 1
	// Acquired: it has returned with the lock.
	Acquired
	// NotAcquired: it has returned without the lock, and the library says that it is not held.
	NotAcquired
	// Unknown: it has returned without the lock, and the command may have taken effect.
	Unknown
	// Checked: the holder asked whether it holds, and the answer was yes. At is before the query.
	Checked
	// Told: the holder has noticed that the lock is lost: its context has ended, or a query was answered so. At is
	// after the answer.
	Told
	// Release: a release is about to be called.
	Release
	// Released: it has returned without an error.
	Released
	// ReleasedLost: it has returned that the lock was lost.
	ReleasedLost
	// ReleasedUnknown: it has returned that the release is not confirmed.
	ReleasedUnknown
	// Downgraded: a writer is about to become a reader.
	Downgraded
	// Gap: the process did not run from Since to At.
	Gap
)

// String names the kind.
func (k Kind) String() string {
	names := [...]string{"none", "invoke", "acquired", "not_acquired", "unknown", "checked", "told", "release", "released", "released_lost", "released_unknown", "downgraded", "gap"}
	if int(k) < len(names) {
		return names[k]
	}
	return "invalid"
}

// Event is one line of a history. All times are of the shared clock (Now).
type Event struct {
	Kind   Kind
	Locked bool   // acquired by Lock or TryLock
	Key    uint16 // index of the lock in the plan
	Units  uint32 // of an RWMutex or a Semaphore; 0: of a Mutex
	Proc   uint32 // one life of one process
	Client uint32 // the goroutine
	Hold   uint64 // the attempt and the resulting hold; unique within Proc
	Grant  uint64 // the number in the holder's field in Redis; 0: not known
	Token  int64  // the fencing token; 0: none
	Fixed  bool   // Acquired: with a lease that ends by itself
	// At is when it happened. Calls are stamped before, results after, so a hold in a history is never longer than
	// the real one.
	At       int64
	Deadline int64 // the holder's deadline, read after At; 0: not known
	Since    int64 // Told, ReleasedLost: since when it is lost, according to the library; Gap: its beginning
}

// slotSize is the length of an event in a log.
const slotSize = 64

// put writes all of e but its commit mark into a slot.
func (e *Event) put(b []byte) {
	b[4] = byte(e.Kind)
	b[5] = 0
	if e.Locked {
		b[5] = 1
	}
	if e.Fixed {
		b[5] |= 2
	}
	binary.LittleEndian.PutUint16(b[6:], e.Key)
	binary.LittleEndian.PutUint32(b[8:], e.Client)
	binary.LittleEndian.PutUint32(b[12:], uint32(e.Grant))
	binary.LittleEndian.PutUint64(b[16:], e.Hold)
	binary.LittleEndian.PutUint64(b[24:], uint64(e.Token))
	binary.LittleEndian.PutUint64(b[32:], uint64(e.At))
	binary.LittleEndian.PutUint64(b[40:], uint64(e.Deadline))
	binary.LittleEndian.PutUint64(b[48:], uint64(e.Since))
	binary.LittleEndian.PutUint32(b[56:], e.Proc)
	binary.LittleEndian.PutUint32(b[60:], e.Units)
}

// get reads what put has written.
func (e *Event) get(b []byte) {
	e.Kind, e.Locked, e.Fixed = Kind(b[4]), b[5]&1 != 0, b[5]&2 != 0
	e.Key = binary.LittleEndian.Uint16(b[6:])
	e.Client = binary.LittleEndian.Uint32(b[8:])
	e.Grant = uint64(binary.LittleEndian.Uint32(b[12:]))
	e.Hold = binary.LittleEndian.Uint64(b[16:])
	e.Token = int64(binary.LittleEndian.Uint64(b[24:]))
	e.At = int64(binary.LittleEndian.Uint64(b[32:]))
	e.Deadline = int64(binary.LittleEndian.Uint64(b[40:]))
	e.Since = int64(binary.LittleEndian.Uint64(b[48:]))
	e.Proc = binary.LittleEndian.Uint32(b[56:])
	e.Units = binary.LittleEndian.Uint32(b[60:])
}
