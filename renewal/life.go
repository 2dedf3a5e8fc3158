package renewal

import (
	"math"
	"time"
)

// This file is the life of a lease. Nothing else changes its state, stage or times, and
// all of it happens with Manager.mu held.
//
//	                                    ┌───────── answered ─────────┐
//	                                    ▼                            │
//	Add ─► StateActive:  idle ── due ─► waiting ── in a batch ─► flying
//	          │            ▲              │                          │
//	          │            └─ stopped ────┴─ stopped before the send ┘
//	          ├─ End ─────────────────────────────► StateEnded
//	          └─ Lose, gone, deadline passed ─────► StateLost ─► the loop notifies
//
// An answer makes the lease idle again: renewed, with a later deadline and a renewal a
// period later; or failed, with a renewal soon. A lease that was stopped, or is fixed,
// stays idle until its deadline.

// State is where a lease is in its life. It leaves StateActive exactly once.
type State uint32

const (
	// StateActive: neither ended nor lost. Whether it can still be relied on
	// is a question of the clock; ask Valid.
	StateActive State = iota
	// StateEnded: the owner called End.
	StateEnded
	// StateLost: a loss was concluded; Lost was called or is about to be.
	StateLost
)

// String returns the state in lower case.
func (s State) String() string {
	names := [...]string{"active", "ended", "lost"}
	if int(s) < len(names) {
		return names[s]
	}
	return "invalid"
}

// stage is where the next renewal of an active lease is.
type stage uint8

const (
	idle    stage = iota // not due yet
	waiting              // due, in the FIFO of its shard
	flying               // in a batch under way
)

// failing is what is known of a lease whose last renewal failed.
type failing struct {
	err   error
	limit int // most leases in its next batch
}

const (
	// never is later than every moment of the package's own time (clock).
	never = math.MaxInt64
	// retryFloor is the shortest pause before a failed renewal is repeated.
	retryFloor = 10 * time.Millisecond
	// gatherMost and gatherPart bound how early a renewal may be sent to share a batch and a
	// wake-up with one that is due. Without that, 100,000 leases would cost one round trip
	// each. With 50 ms instead, 10,000 cost a quarter of the processor time more.
	gatherMost = 250 * time.Millisecond
	gatherPart = 20
	// splitBy is how much smaller the next batch of a lease is after one failed. From 256 it
	// takes two failures until the lease travels alone; with the usual period of a third of
	// the lease, a third try is still possible before the deadline, even after two time-outs.
	splitBy = 16
	// firstShare is the part of a brief lease (Spec.First) after which its first renewal is due.
	// Until that is confirmed an outage of the brief lease's length loses the lock, however long its
	// lease is. Turns that are shorter pay no renewal.
	firstShare = 20
)

// End ends the lease because its owner releases it, before the release is sent: from here
// on no renewal is handed to the Sender, and nobody waits for the answer of one that was. It
// returns true when this call ended the lease, and then Lost is never called; false when it
// had been lost or ended before.
func (l *Lease) End() bool {
	l.shard.m.mu.Lock()
	defer l.shard.m.mu.Unlock()
	return l.shard.m.leaveActiveLocked(l, StateEnded)
}

// Lose says that the lease is lost: by the watchdog, by a forced release, at closing. It
// returns true when this call lost the lease; Valid is false then, and the loop calls Lost
// soon after, or after the next Start, so the caller may hold locks that Lost needs. It
// returns false when the lease had been lost or ended before. Of c only Reason, By and Err
// count.
func (l *Lease) Lose(c Cause) bool {
	l.shard.m.mu.Lock()
	defer l.shard.m.mu.Unlock()
	return l.shard.m.loseLocked(l, c)
}

// StopRenewing leaves the lease to end by itself, for good: no renewal is handed to the
// Sender any more, and the deadline is kept. The answer of a renewal under way still counts,
// because it says until when Redis keeps the key.
func (l *Lease) StopRenewing() {
	m := l.shard.m
	m.mu.Lock()
	defer m.mu.Unlock()
	l.stopped = true
	if l.State() != StateActive {
		return
	}
	m.leaveFIFOLocked(l)
	m.planLocked(l, never)
}

// Fix makes the lease one that is not renewed any more, since a command that was sent at sentAt has set the time to live in Redis
// to lease: its deadline is sentAt + lease − margin, also where that is sooner than before. The answer to a renewal under way means
// nothing then. It returns false where the lease had been lost or ended before, or its deadline has passed.
func (l *Lease) Fix(sentAt time.Time, lease, margin time.Duration) bool {
	m := l.shard.m
	m.mu.Lock()
	defer m.mu.Unlock()
	sent := m.clock.at(sentAt)
	if l.State() != StateActive || l.deadline.Load() <= m.clock.now() {
		return false
	}
	m.leaveFIFOLocked(l)
	l.lease.Store(int64(lease))
	l.period.Store(0)
	l.margin.Store(int64(margin))
	l.confirmed.Store(sent)
	l.deadline.Store(sent + int64(lease-margin))
	l.failures.Store(0)
	l.failing = nil
	m.planLocked(l, never)
	m.nudgeLocked()
	return true
}

// Extend says that another confirmed command, sent at sentAt, raised the time to live in
// Redis to lease. The deadline moves to sentAt + lease − Margin, if that is later: scripts
// never lower a TTL. Once it has passed nothing moves it. The rhythm of the renewals, and the
// lease that they ask for, stay as they are.
func (l *Lease) Extend(sentAt time.Time, lease time.Duration) {
	m := l.shard.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if l.State() == StateActive && l.deadline.Load() > m.clock.now() {
		m.confirmLocked(l, sentAt, lease)
		m.heap.Set(l, l.attention())
	}
}

// Hurry makes the next renewal due now, because the lease is suspect. When a renewal is
// under way another one is sent after its answer. It returns false when no renewal will be sent.
func (l *Lease) Hurry() bool {
	m := l.shard.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if l.State() != StateActive || !l.renews() {
		return false
	}
	l.hurry(m.clock.now())
	m.heap.Set(l, l.attention())
	m.nudgeLocked()
	return true
}

// renews reports that the lease is neither fixed nor stopped.
func (l *Lease) renews() bool { return l.period.Load() > 0 && !l.stopped }

// hurry makes an active, renewed lease due now; the heap is left to the caller. In the
// FIFO it is due already.
func (l *Lease) hurry(now int64) {
	switch l.stage {
	case idle:
		l.due.Store(min(l.due.Load(), now))
		l.offbeat = true
	case flying:
		l.again = true
	}
}

// attention is the moment of l in the heap: the next renewal or the deadline, whichever is
// first. While the renewal waits or is under way only the deadline is left.
func (l *Lease) attention() int64 {
	if l.stage == idle {
		return min(l.due.Load(), l.deadline.Load())
	}
	return l.deadline.Load()
}

// gather returns by how much l's renewal may be sent early. Near the deadline it shrinks
// with what is left: gathering must not take the pause before a retry.
func (l *Lease) gather(now int64) int64 {
	left := min(l.period.Load(), l.deadline.Load()-now)
	return min(left/gatherPart, int64(gatherMost))
}

// dueLocked moves an idle lease to the FIFO of its shard.
func (m *Manager) dueLocked(l *Lease) {
	l.stage = waiting
	l.shard.fifo = append(l.shard.fifo, l)
	l.shard.waiting++
	m.heap.Set(l, l.attention())
}

// leaveFIFOLocked takes a lease out of the FIFO for good. Its entry stays there until
// its turn comes, and is passed over then.
func (m *Manager) leaveFIFOLocked(l *Lease) {
	if l.stage == waiting {
		l.stage = idle
		l.shard.waiting--
	}
}

// leaveActiveLocked takes l out of everything, and reports whether it was still
// active. This is the one place where a lease leaves StateActive.
func (m *Manager) leaveActiveLocked(l *Lease, to State) bool {
	if l.State() != StateActive {
		return false
	}
	l.state.Store(uint32(to))
	m.heap.Remove(l)
	m.leaveFIFOLocked(l)
	l.stage = idle
	l.due.Store(never)
	l.shard.leases-- // an empty shard is left to the loop: see ageLocked
	return true
}

// loseLocked notes a loss and leaves the notification to the loop.
func (m *Manager) loseLocked(l *Lease, c Cause) bool {
	if l.State() != StateActive {
		return false
	}
	c = l.known(c)
	l.cause.Store(&c) // before anybody can see the state
	m.leaveActiveLocked(l, StateLost)
	m.losses = append(m.losses, l)
	m.nudgeLocked()
	return true
}

// expireLocked loses a lease whose deadline has passed. Err is the last failure; without
// one, where its renewal got stuck.
func (m *Manager) expireLocked(l *Lease) {
	var err error
	switch {
	case l.failing != nil && l.failing.err != nil:
		err = l.failing.err
	case l.stage == flying:
		err = ErrNoAnswer
	case l.stage == waiting:
		err = ErrNoSlot
	}
	m.loseLocked(l, Cause{Reason: ReasonDeadline, Err: err})
}

// confirmLocked moves the deadline of l after a confirmed command, never back. The heap is
// left to the caller.
func (m *Manager) confirmLocked(l *Lease, sentAt time.Time, lease time.Duration) {
	sent := m.clock.at(sentAt)
	l.deadline.Store(max(l.deadline.Load(), sent+int64(lease)-l.margin.Load()))
	l.confirmed.Store(max(l.confirmed.Load(), sent))
}

// failedIn notes that l failed with err in a batch of n: its next batch is smaller,
// so that one bad key is soon alone and takes no other down with it.
func (l *Lease) failedIn(n int, err error) {
	l.failing = &failing{err: err, limit: max(1, n/splitBy)}
}

// failLocked plans the next try of a lease without a usable answer, in a batch of n. While
// the Manager closes, the likely reason is its own cancelled context: no failure.
func (m *Manager) failLocked(l *Lease, err error, n int, now int64, closing bool) {
	l.offbeat, l.again = true, false
	if closing {
		m.planLocked(l, now)
		return
	}
	l.failedIn(n, err)
	l.failures.Add(1)
	m.planLocked(l, now+m.retryAfter(time.Duration(l.period.Load()), l.deadline.Load()-now))
}

// renewLocked moves the deadline of a confirmed lease and plans its next renewal: a period
// after the last send, so that a slow answer does not stretch the rhythm. After a retry or a
// hurried renewal the rhythm begins anew, jittered.
func (m *Manager) renewLocked(l *Lease, res Result, now int64) {
	sentAt, brief := res.SentAt, l.brief()
	m.confirmLocked(l, sentAt, time.Duration(l.lease.Load()))
	l.failing = nil
	l.failures.Store(0)
	l.renewals.Add(1)
	due := m.clock.at(sentAt) + l.period.Load()
	switch {
	case l.again:
		due = now
	case l.offbeat || brief:
		due = m.clock.at(sentAt) + m.spread(time.Duration(l.period.Load()))
	}
	l.offbeat, l.again = l.again, false
	m.planLocked(l, due)
}

// planLocked sets when l is renewed next and moves it in the heap.
func (m *Manager) planLocked(l *Lease, due int64) {
	if !l.renews() {
		due = never
	}
	l.due.Store(due)
	m.heap.Set(l, l.attention())
}

// spread returns Period × (0.8 … 1.0), the distance of a renewal that has no rhythm to keep:
// leases that began together, or that an outage brought into step, part.
func (m *Manager) spread(period time.Duration) int64 {
	return int64(float64(period) * (0.8 + 0.2*m.cfg.Rand()))
}

// retryAfter returns the pause before a failed renewal is repeated when the deadline is still
// `remaining` ahead. A quarter of what is left lets the tries come closer as the deadline does;
// a quarter of the period bounds the first. The jitter (×0.75 … 1.0) keeps the leases of one
// failed batch apart.
func (m *Manager) retryAfter(period time.Duration, remaining int64) int64 {
	pause := float64(min(int64(period), remaining)) / 4 * (0.75 + 0.25*m.cfg.Rand())
	return max(int64(pause), int64(retryFloor))
}
