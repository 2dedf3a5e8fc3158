package renewal

import (
	"time"
	"unsafe"
)

// LeaseSize is the memory of one lease, with its 16 bytes in the heap.
const LeaseSize = unsafe.Sizeof(Lease{}) + 16

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

// Waiting returns how many leases are due and wait for a slot.
func (m *Manager) Waiting() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.shards {
		n += s.waiting
	}
	return n
}

// InFlight returns the number of batches under way.
func (m *Manager) InFlight() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.shards {
		n += s.flying
	}
	return n
}

// Check returns what is wrong with the Manager's structures, or "".
func (m *Manager) Check() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	count := map[*shard]int{}
	queued := map[*shard]int{}
	for l, at := range m.heap.All() {
		count[l.shard]++
		if l.stage == waiting {
			queued[l.shard]++
		}
		switch {
		case at != l.attention():
			return "a key is not the lease's attention"
		case l.deadline.Load() < at:
			return "a key is after the deadline"
		case State(l.state.Load()) != StateActive:
			return "a lease in the heap is not active"
		case m.shards[l.shard.name] != l.shard:
			return "a lease's shard is forgotten"
		}
	}
	for _, s := range m.shards {
		n := 0
		for _, l := range s.fifo {
			if l.stage == waiting {
				n++
			}
		}
		switch {
		case n != s.waiting || n != queued[s]:
			return "a FIFO miscounts"
		case s.leases != count[s]:
			return "a shard miscounts its leases"
		case s.flying < 0 || s.flying > m.cfg.InFlight:
			return "a shard has too many batches under way"
		case s.leases == 0 && s.flying == 0 && m.run != nil && m.armed == never:
			return "an empty shard is remembered, and the loop will not check it"
		}
	}
	return ""
}
