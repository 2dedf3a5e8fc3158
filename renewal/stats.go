package renewal

import "time"

// Stats is a picture of a Manager at one moment, for monitoring and for the
// watchdog; not for synchronization control.
type Stats struct {
	// LastRound is when the loop's last round began; zero when there was none.
	// While there are leases there is a round at least each second. Without
	// leases the loop sleeps and LastRound grows old, which is no fault.
	LastRound time.Time
	// NextDue is when the first lease wants the loop's attention, for a
	// renewal or its deadline; zero without leases. Far in the past it means
	// that the loop is stalled.
	NextDue time.Time
	// Answered and Failed count the leases that got a usable answer, or none,
	// in about the last minute. What the master says to be gone is answered.
	Answered, Failed uint64
}

// SuccessRate returns Answered ÷ (Answered + Failed); 1 when nothing was
// sent, because nothing failed.
func (s Stats) SuccessRate() float64 {
	if s.Answered+s.Failed == 0 {
		return 1
	}
	return float64(s.Answered) / float64(s.Answered+s.Failed)
}

// Stats returns the present picture. It holds the mutex for a moment,
// however many leases there are.
func (m *Manager) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	var s Stats
	if m.last.wall != 0 {
		s.LastRound = m.clock.time(m.last.at)
	}
	s.NextDue = m.clock.time(m.firstLocked())
	s.Answered, s.Failed = m.window.sum(m.clock.now())
	return s
}

// window counts answers of about the last minute, in six buckets of ten
// seconds. Guarded by Manager.mu.
type window struct {
	buckets [6]struct {
		epoch            int64 // which ten seconds it holds
		answered, failed uint64
	}
}

const bucketWidth = int64(10 * time.Second)

// count counts one answer.
func (w *window) count(now int64, answered bool) {
	epoch := now / bucketWidth
	b := &w.buckets[epoch%int64(len(w.buckets))]
	if b.epoch != epoch {
		b.epoch, b.answered, b.failed = epoch, 0, 0
	}
	if answered {
		b.answered++
	} else {
		b.failed++
	}
}

// sum adds up the buckets that are not older than a minute.
func (w *window) sum(now int64) (answered, failed uint64) {
	oldest := now/bucketWidth - int64(len(w.buckets)) + 1
	for _, b := range w.buckets {
		if b.epoch >= oldest {
			answered, failed = answered+b.answered, failed+b.failed
		}
	}
	return answered, failed
}
