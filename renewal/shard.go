package renewal

// shard is the part of the Manager that belongs to one server: the leases
// that are due but have not been sent, and the number of batches under way. It exists
// while it has an active lease or a batch under way, and until no lease has come for a
// heartbeat: a lone lock that is taken again and again has none of it made anew, and does
// not wake the loop. A server that left the cluster leaves nothing behind. All of
// it is guarded by Manager.mu.
type shard struct {
	m       *Manager
	name    string
	leases  int      // active ones
	fifo    []*Lease // those that are due, and some that have left since: see leaveFIFOLocked
	waiting int      // those of them in stage waiting
	flying  int      // batches under way, ≤ Config.InFlight
	// misses counts the batches in a row in which no lease got a usable
	// answer: a few of them mean a bad key, many a bad shard.
	misses int
	// formed counts the batches that were formed, to alternate by.
	formed uint32
	came   int64 // when the last lease came
}

// wholeShard is the number of batches without any usable answer after which
// the shard itself is taken to be down. Then every second batch is formed as
// if its leases had no limit: without that, an outage would turn each lease
// into a command of its own that is repeated until the deadline. The other
// batches keep to the limits, because many bad keys fail in the same way.
const wholeShard = 16

// first returns the lease that waits longest, or nil when none waits.
func (s *shard) first() *Lease {
	for len(s.fifo) > 0 {
		if l := s.fifo[0]; l.stage == waiting {
			return l
		}
		s.fifo[0], s.fifo = nil, s.fifo[1:] // it has left
	}
	s.fifo = nil
	return nil
}

// takeLocked forms the next batch of s, or returns nil when nothing waits. A
// lease whose deadline has passed in the FIFO is lost and not sent: no
// renewal outlives its lock. The batch ends where the next lease would be in
// worse company than its limit allows, so the order stays first in, first out.
func (m *Manager) takeLocked(s *shard, now int64) []*Lease {
	limited := s.misses < wholeShard || s.formed%2 == 0
	size := m.cfg.BatchSize
	var batch []*Lease
	for l := s.first(); l != nil && len(batch) < size; l = s.first() {
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
		m.leaveFIFOLocked(l)
		l.stage = flying // its place in the heap is the deadline already
		batch = append(batch, l)
	}
	if batch != nil {
		s.formed++
	}
	return batch
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
	if m.last.at-s.came >= int64(heartbeat) {
		m.dropLocked(s)
	}
}

// dropLocked forgets s when it has neither a lease nor a batch under way.
func (m *Manager) dropLocked(s *shard) {
	if s.leases == 0 && s.flying == 0 {
		delete(m.shards, s.name)
	}
}
