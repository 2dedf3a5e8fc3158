package renewal

import (
	"time"
	"unsafe"
)

// LeaseSize is the memory of one lease without its strings.
const LeaseSize = unsafe.Sizeof(Lease{}) + unsafe.Sizeof(slot{})

// SetWall replaces the wall clock, before Start.
func (m *Manager) SetWall(wall func() time.Time) {
	m.clock.wall = func(time.Time) int64 { return wall().UnixNano() }
}

// SetClocks makes the machine suspendable, before Start: ahead is how far the wall clock
// was ahead of the monotonic one at a moment, suspended what the system says of its
// suspensions now.
func (m *Manager) SetClocks(ahead func(at time.Time) time.Duration, suspended func() time.Duration) {
	m.clock.wall = func(now time.Time) int64 { return now.UnixNano() + int64(ahead(now)) }
	m.clock.suspended = suspended
	m.clock.origin = suspended()
}

// WasSet makes the Manager one that was made before the wall clock moved by d against the
// monotonic one: somebody set it, or the machine has slept. It is called before Start.
func (m *Manager) WasSet(d time.Duration, asleep bool) {
	c := m.clock
	c.base = Rewound(c.base, d)
	c.baseWall -= int64(d)
	c.epoch.Store(&epoch{read: c.base})
	if asleep {
		c.suspended, c.origin = func() time.Duration { return d }, 0
	}
}

// Rewound returns t with a wall reading that is earlier by d, which no method of it does
// without moving its monotonic reading.
func Rewound(t time.Time, d time.Duration) time.Time {
	const seconds = 30 // the place of the seconds in the first word, of a time with a monotonic reading
	*(*uint64)(unsafe.Pointer(&t)) -= uint64(d/time.Second) << seconds
	return t
}

// Shards returns the number of shards that the Manager remembers.
func (m *Manager) Shards() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.shards)
}

// Check returns what is wrong with the Manager's structures, or "".
func (m *Manager) Check() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	count := map[*shard]int{}
	queued := map[*shard]int{}
	for i, s := range m.heap {
		l := s.lease
		count[l.shard]++
		if l.stage == waiting {
			queued[l.shard]++
		}
		switch {
		case int(l.place) != i:
			return "a lease does not know its place"
		case i > 0 && m.heap[(i-1)/arity].at > s.at:
			return "a child is earlier than its parent"
		case s.at != l.attention():
			return "a key is not the lease's attention"
		case l.deadline.Load() < s.at:
			return "a key is after the deadline"
		case State(l.state.Load()) != StateActive:
			return "a lease in the heap is not active"
		case m.shards[l.shard.name] != l.shard:
			return "a lease's shard is forgotten"
		}
	}
	for _, s := range m.shards {
		n := 0
		for l, prev := s.head, (*Lease)(nil); l != nil; l, prev = l.next, l {
			if l.stage != waiting || l.prev != prev {
				return "a FIFO is broken"
			}
			n++
		}
		switch {
		case n != s.waiting || n != queued[s]:
			return "a FIFO miscounts"
		case s.leases != count[s]:
			return "a shard miscounts its leases"
		case s.flying < 0 || s.flying > m.cfg.InFlight:
			return "a shard has too many batches under way"
		case s.leases == 0 && s.flying == 0 && m.run != nil && m.armed == never:
			return "an empty shard is remembered, and the loop will not look"
		}
	}
	return ""
}

// HeapModel drives a heap with random operations, chosen by intN, against a plain map,
// and reports the first difference, or "".
func HeapModel(intN func(n int) int, steps int) string {
	var h leaseHeap
	model := map[*Lease]int64{}
	var all []*Lease
	pick := func() *Lease { return all[intN(len(all))] }
	for range steps {
		switch op := intN(10); {
		case op < 5 || len(all) == 0:
			l := &Lease{place: -1}
			at := int64(intN(100))
			h.push(l, at)
			model[l], all = at, append(all, l)
		case op < 7:
			l := pick()
			if _, in := model[l]; in {
				model[l] = int64(intN(100))
				h.move(l, model[l])
			}
		case op < 9:
			l := pick()
			h.remove(l) // sometimes one that is not in it any more
			delete(model, l)
		default:
			for i := range h {
				h[i].at = int64(intN(100))
				model[h[i].lease] = h[i].at
			}
			h.rebuild()
		}
		least := int64(never)
		for l, at := range model {
			least = min(least, at)
			if p := int(l.place); p < 0 || p >= len(h) || h[p].lease != l || h[p].at != at {
				return "a lease is not where it says"
			}
		}
		if len(h) != len(model) {
			return "the length differs"
		}
		if len(h) > 0 && h[0].at != least {
			return "the top is not the earliest"
		}
	}
	last := int64(-1)
	for len(h) > 0 {
		if h[0].at < last {
			return "drained out of order"
		}
		last = h[0].at
		h.remove(h[0].lease)
	}
	return ""
}
