package renewal

import (
	"math"
	"time"
)

// never is later than every moment of the package's own time (clock).
const never = math.MaxInt64

const (
	// heartbeat is the longest pause of the loop while there is any lease.
	// The runtime's timers stand still while a machine is suspended, so this
	// bounds how long the loop needs to notice a jump once it runs again.
	heartbeat = time.Second
	// jumpAfter is the difference between wall and monotonic time within one
	// round from which on it is a jump. Slewing (at most 0.5 ms a second)
	// stays far below.
	jumpAfter = time.Second
	// stallAfter is how late a round may begin before OnStall is told.
	stallAfter = 250 * time.Millisecond
	// retryFloor is the shortest pause before a failed renewal is repeated.
	retryFloor = 10 * time.Millisecond
	// gatherMost and gatherPart bound how early a renewal may be sent to
	// share a batch with one that is due: without it, 100,000 leases would
	// cost one round trip each, in an outage for each of many retries.
	gatherMost = 50 * time.Millisecond
	gatherPart = 20
)

// at, now and time are the clock's.
func (m *Manager) at(t time.Time) int64    { return m.clock.at(t) }
func (m *Manager) now() int64              { return m.clock.now() }
func (m *Manager) time(at int64) time.Time { return m.clock.time(at) }

// spread returns Period × (0.8 … 1.0): the distance of a renewal that has no
// rhythm to keep. It keeps leases that began together, or that an outage
// brought into step, from being due together ever after.
func (m *Manager) spread(period time.Duration) int64 {
	return int64(float64(period) * (0.8 + 0.2*m.cfg.Rand()))
}

// retryAfter returns the pause before a failed renewal is repeated when the
// deadline is remaining away. A quarter of what is left lets the tries come
// closer as the deadline does; a quarter of the period bounds the first of
// them. The jitter (×0.75 … 1.0) keeps the leases of one failed batch apart.
func (m *Manager) retryAfter(period time.Duration, remaining int64) int64 {
	pause := float64(min(int64(period), remaining)) / 4 * (0.75 + 0.25*m.cfg.Rand())
	return max(int64(pause), int64(retryFloor))
}

// gather returns by how much l's renewal may be sent early. Near the deadline
// it shrinks with what is left, so it stays a fraction of the pause before a
// retry, which must not be gathered away.
func (l *Lease) gather(now int64) int64 {
	left := min(int64(l.period), l.deadline.Load()-now)
	return min(left/gatherPart, int64(gatherMost))
}

// attention is the key of l in the heap: the next renewal or the deadline,
// whichever is first. While the renewal waits or is under way only the
// deadline is left to watch.
func (l *Lease) attention() int64 {
	if l.stage == idle {
		return min(l.due.Load(), l.deadline.Load())
	}
	return l.deadline.Load()
}

// planLocked sets when l is renewed next and moves it in the heap. A lease
// that is fixed, or whose renewal was stopped, has never as its next time.
func (m *Manager) planLocked(l *Lease, due int64) {
	if l.period <= 0 || l.stopped {
		due = never
	}
	l.due.Store(due)
	m.heap.move(l, l.attention())
}
