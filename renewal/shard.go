package renewal

// shard is the part of the Manager that belongs to one server: the leases
// that are due but have not been sent (a FIFO, linked through the leases), and
// the number of batches under way. It exists while it has an active lease or a
// batch under way, and until no lease has come for a heartbeat: a lone
// lock that is taken again and again has none of it made anew, and does not
// wake the loop. A server that left the cluster leaves nothing behind. All of
// it is guarded by Manager.mu.
type shard struct {
	m          *Manager
	name       string
	leases     int // active ones
	head, tail *Lease
	waiting    int // length of the FIFO
	flying     int // batches under way, ≤ Config.InFlight
	// misses counts the batches in a row in which no lease got a usable
	// answer: a few of them mean a bad key, many a bad shard.
	misses int
	// formed counts the batches that were formed, to take turns by.
	formed uint32
	came   int64 // when the last lease came
}

// wholeShard is the number of batches without any usable answer after which
// the shard itself is taken to be down. Then every second batch is formed as
// if its leases had no limit: without that, an outage would turn each lease
// into a command of its own that is repeated until the deadline. The other
// batches keep to the limits, because many bad keys look the same.
const wholeShard = 16

// splitBy is how much smaller the next batch of a lease is after a batch of
// which it was a part failed. From 256 it takes two failures until the lease
// travels alone; with the usual period of a third of the lease, a third try
// still fits before the deadline even when each failure is a time-out.
const splitBy = 16

// push appends l, which must not be in any FIFO.
func (s *shard) push(l *Lease) {
	l.prev, l.next = s.tail, nil
	if s.tail == nil {
		s.head = l
	} else {
		s.tail.next = l
	}
	s.tail = l
	s.waiting++
}

// remove takes l, which must be in this FIFO, out of it.
func (s *shard) remove(l *Lease) {
	if l.prev == nil {
		s.head = l.next
	} else {
		l.prev.next = l.next
	}
	if l.next == nil {
		s.tail = l.prev
	} else {
		l.next.prev = l.prev
	}
	l.prev, l.next = nil, nil
	s.waiting--
}

// takeLocked forms the next batch of s, or returns nil when nothing waits. A
// lease whose deadline has passed in the FIFO is lost and not sent: no
// renewal outlives its lock. The batch ends where the next lease would be in
// worse company than its limit allows, so the order stays first in, first out.
func (m *Manager) takeLocked(s *shard, now int64) []*Lease {
	limited := s.misses < wholeShard || s.formed%2 == 0
	size := m.cfg.BatchSize
	var batch []*Lease
	for s.head != nil && len(batch) < size {
		l := s.head
		if l.deadline.Load() <= now {
			m.expireLocked(l)
			continue
		}
		if limited && l.failing != nil {
			if len(batch) >= l.failing.limit {
				break
			}
			size = min(size, l.failing.limit)
		}
		if batch == nil {
			batch = make([]*Lease, 0, min(size, s.waiting))
		}
		s.remove(l)
		l.stage = flying // its place in the heap is the deadline already
		batch = append(batch, l)
	}
	if batch != nil {
		s.formed++
	}
	return batch
}

// failedIn notes that l failed with err in a batch of n: its next batch is smaller,
// so that one bad key soon stands alone and takes no other down with it.
func (l *Lease) failedIn(n int, err error) {
	l.failing = &failing{err: err, limit: max(1, n/splitBy)}
}

// shardLocked returns the shard of that name, for a lease that comes, and makes
// it when it is new.
func (m *Manager) shardLocked(name string, now int64) *shard {
	s := m.shards[name]
	if s == nil {
		s = &shard{m: m, name: name}
		m.shards[name] = s
	}
	s.came = now
	return s
}

// ageLocked forgets s when nobody needs it and nobody came for a heartbeat.
func (m *Manager) ageLocked(s *shard) {
	if m.turn.at-s.came >= int64(heartbeat) {
		m.dropLocked(s)
	}
}

// dropLocked forgets s when it has neither a lease nor a batch under way.
func (m *Manager) dropLocked(s *shard) {
	if s.leases == 0 && s.flying == 0 {
		delete(m.shards, s.name)
	}
}
