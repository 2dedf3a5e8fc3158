package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Lock is what a judge must know about one lock: the letters of docs/guarantees.md.
type Lock struct {
	Key     string
	Lease   time.Duration // L
	Margin  time.Duration // M
	Period  time.Duration // W
	Command time.Duration // C
	Fenced  bool
	Units   int64 // what its holders may have together; 0: a Mutex
}

// Removal is a fault that removes a lock from Redis: DEL, FLUSHALL, a restart without the data, ForceRelease, a
// failover.
type Removal struct {
	Key  int   // index of the lock; AllKeys: every lock
	From int64 // before it was ordered
	To   int64 // after it was confirmed
	// Certain: a lock that existed is certainly gone. A removal whose answer was lost, or that found nothing, is not:
	// it excuses and demands nothing.
	Certain bool
	What    string
}

// AllKeys means every key in a Removal.
const AllKeys = -1

// Away is a time in which a process could not do what the bounds demand.
type Away struct {
	Proc     uint32 // AllProcs: every process
	From, To int64
	// Stopped: the process itself did not run. Otherwise Redis did not serve it.
	Stopped bool
	What    string
}

// AllProcs means every process in an Away.
const AllProcs = 0

// History is the input of a judge.
type History struct {
	Locks    []Lock
	Events   []Event
	Removals []Removal
	Aways    []Away
	Accesses []Access // of the register, in its order
	Slow     float64  // how slow the machine was: see package pace. It stretches what notifications may be late by; 0: as 1
}

// Hold is the result of one attempt.
type Hold struct {
	Key    int
	Proc   uint32
	Client uint32
	ID     uint64
	Locked bool
	Fixed  bool
	Units  int64
	Grant  uint64
	Token  int64

	Invoke   int64
	Return   int64
	Outcome  Kind  // Acquired, NotAcquired or Unknown; also Unknown where nothing was recorded
	Deadline int64 // the last known one; 0: none
	Checked  int64 // the last time at which the holder learned that it holds; at least Return
	Late     int64 // a query at that time was answered "held" after the deadline; 0: none
	Told     int64
	Since    int64 // since when it is lost, according to the library
	Release  int64
	Released int64
	How      Kind  // Released, ReleasedLost, ReleasedUnknown; 0: it has not returned
	Reads    int64 // since when a writer reads; 0: never
	// releases counts the confirmed ones: a second one, or one of a hold that was never acquired, has released
	// somebody else's.
	releases int
}

// String names a hold for display.
func (h *Hold) String() string {
	return fmt.Sprintf("hold %d of process %d", h.ID, h.Proc)
}

// Story describes a hold's life, in time since the call of its acquire.
func (h *Hold) Story() string {
	since := func(at int64) any {
		if at == 0 {
			return "-"
		}
		return ms(at - h.Invoke)
	}
	return fmt.Sprintf("%v (client %d, by lock %v, grant %d, token %d): %v at %v, deadline %v, last found held at %v, told at %v that it is lost since %v, release called at %v, %v at %v",
		h, h.Client, h.Locked, h.Grant, h.Token, h.Outcome, since(h.Return), since(h.Deadline), since(h.Checked), since(h.Told), since(h.Since),
		since(h.Release), h.How, since(h.Released))
}

// holdKey identifies a hold.
type holdKey struct {
	proc uint32
	id   uint64
}

// Holds collects the events into holds, sorted by key and by the call of the acquire. Times in which a process did
// not run go to h.Aways.
func (h *History) Holds() []*Hold {
	events := slices.Clone(h.Events)
	slices.SortStableFunc(events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	holds := map[holdKey]*Hold{}
	var list []*Hold
	for _, e := range events {
		if e.Kind == Gap {
			h.Aways = append(h.Aways, Away{Proc: e.Proc, From: e.Since, To: e.At, Stopped: true, What: "did not run"})
			continue
		}
		k := holdKey{e.Proc, e.Hold}
		held := holds[k]
		if held == nil {
			held = &Hold{Key: int(e.Key), Proc: e.Proc, Client: e.Client, ID: e.Hold, Locked: e.Locked, Units: max(int64(e.Units), 1), Invoke: e.At, Outcome: Unknown}
			holds[k] = held
			list = append(list, held)
		}
		held.take(e)
	}
	slices.SortStableFunc(list, func(a, b *Hold) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Invoke, b.Invoke))
	})
	return list
}

// take adds one event to a hold.
func (h *Hold) take(e Event) {
	h.Deadline = max(h.Deadline, e.Deadline)
	switch e.Kind {
	case Acquired:
		h.Return, h.Outcome, h.Grant, h.Token, h.Fixed = e.At, Acquired, e.Grant, e.Token, e.Fixed
		h.Checked = e.At
	case NotAcquired, Unknown:
		h.Return, h.Outcome = e.At, e.Kind
	case Checked:
		h.Checked = max(h.Checked, e.At)
		if e.Deadline > 0 && e.At > e.Deadline {
			h.Late = e.At
		}
	case Told:
		if h.Told == 0 {
			h.Told, h.Since = e.At, e.Since
		}
	case Downgraded:
		h.Reads = e.At
	case Release:
		h.Release = e.At
	case Released, ReleasedLost, ReleasedUnknown:
		h.Released, h.How = e.At, e.Kind
		if e.Kind == Released {
			h.releases++
		}
		if e.Kind == ReleasedLost && h.Since == 0 {
			h.Since = e.Since
		}
	}
}

// claim is the time in which the hold excluded others from the holder's point of view: from the return of its acquire
// until the call of a confirmed release, or until the lock was lost. ok is false if it never held.
//
// It is an inner bound. The library says when the lock was lost (Since), but it is not believed further back than the
// holder's last query that was answered "held".
func (h *Hold) claim() (from, to int64, ok bool) {
	if h.Outcome != Acquired {
		return 0, 0, false
	}
	end := h.Checked
	switch {
	case h.How == Released && !h.Locked:
		end = h.Release
	case h.How == ReleasedUnknown:
		end = max(end, min(h.Release, h.Deadline))
	case h.Told != 0 || h.How == ReleasedLost:
		over := h.Since
		if h.Told != 0 {
			over = min(over, h.Told)
		}
		if h.Release != 0 {
			over = min(over, h.Release)
		}
		end = max(end, over)
	}
	return h.Return, max(end, h.Return), true
}

// lost reports whether the holder was notified, or learned from its release, that the lock is lost.
func (h *Hold) lost() bool { return h.Told != 0 || h.How == ReleasedLost }

// learned is when that was.
func (h *Hold) learned() int64 {
	if h.Told != 0 && (h.How != ReleasedLost || h.Told < h.Released) {
		return h.Told
	}
	return h.Released
}
