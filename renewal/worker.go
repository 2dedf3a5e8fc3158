package renewal

import (
	"context"
	"time"
)

// notice is a call of OnRenewed or OnFailed that is due once the mutex is
// free.
type notice struct {
	lease      *Lease
	margin     time.Duration
	err        error
	failures   int32 // 0: renewed
	reacquired bool
}

// desk is what a worker writes on. A hundred thousand leases are forty batches a second,
// and lists made anew for each of them were a sixth of what renewals left to the collector.
type desk struct {
	items   []Item
	notices []notice
}

// desk returns one that is empty.
func (m *Manager) desk() *desk {
	if d, ok := m.desks.Get().(*desk); ok {
		return d
	}
	return new(desk)
}

// clear makes d empty, so that it keeps no lease and no name alive.
func (d *desk) clear() {
	clear(d.items)
	clear(d.notices)
	d.items, d.notices = d.items[:0], d.notices[:0]
}

// work sends batch, and after it what waits at the shard, until nothing does.
// It keeps one slot of the shard all the time and is the only one to free it.
func (m *Manager) work(r *run, s *shard, batch []*Lease) {
	d := m.desk()
	defer m.desks.Put(d)
	for batch != nil {
		results := m.send(r.ctx, d, s.name, batch)
		batch = m.settle(r, d, s, batch, results)
		for _, n := range d.notices {
			if n.failures > 0 {
				m.cfg.OnFailed(n.lease, int(n.failures), n.err)
			} else {
				m.cfg.OnRenewed(n.lease, n.margin, n.reacquired)
			}
		}
		d.clear()
	}
}

// send calls the Sender for one batch. The context ends with the last
// deadline in it, so that a Sender that minds its context can't keep a slot
// for leases that nobody has any more.
func (m *Manager) send(ctx context.Context, d *desk, shard string, batch []*Lease) []Result {
	last := int64(0)
	for _, l := range batch {
		key, field := l.owner.Names()
		d.items = append(d.items, Item{Key: key, Field: field, Lease: l.lease, Reacquire: l.reacquire})
		last = max(last, l.deadline.Load())
	}
	ctx, cancel := context.WithDeadline(ctx, m.time(last))
	defer cancel()
	return m.cfg.Sender.RenewBatch(ctx, shard, d.items)
}

// settle applies the results of a batch to those of its leases that were
// neither ended nor lost meanwhile; for the others they mean nothing. It
// returns the shard's next batch for the same worker, and leaves on d what to
// tell. A nil batch means that nothing waits, and the slot is free.
func (m *Manager) settle(r *run, d *desk, s *shard, batch []*Lease, results []Result) []*Lease {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now() // read with the mutex held, so no deadline passes unnoticed
	usable := false
	for i, l := range batch {
		res := Result{Err: ErrNoResult}
		if i < len(results) {
			res = results[i]
		}
		if res.SentAt.IsZero() && (res.Outcome == Renewed || res.Outcome == Reacquired) {
			res = Result{Err: ErrNoSentAt}
		}
		usable = usable || res.Outcome != Failed
		if res.Outcome != Failed || !r.closing {
			m.window.note(now, res.Outcome != Failed)
		}
		if State(l.state.Load()) == StateActive {
			l.stage = idle
			d.notices = m.landLocked(r, l, res, len(batch), now, d.notices)
		}
	}
	if usable {
		s.misses = 0
	} else if !r.closing {
		s.misses++
	}
	var next []*Lease
	if !r.closing {
		next = m.takeLocked(s, now)
	}
	if next == nil {
		s.flying--
		m.dropLocked(s)
	}
	m.nudgeLocked()
	return next
}

// landLocked applies one result, of a batch of n, to a lease that is active. A
// confirmation after the deadline is ignored: the lease is lost also when the
// loop has not said so yet, because Valid has.
func (m *Manager) landLocked(r *run, l *Lease, res Result, n int, now int64, out []notice) []notice {
	left := l.deadline.Load() - now
	switch {
	case left <= 0:
		if res.Err != nil {
			l.failedIn(n, res.Err)
		}
		m.expireLocked(l)
	case res.Outcome == Gone:
		m.loseLocked(l, Cause{Reason: ReasonGone, Err: res.Err})
	case res.Outcome == Failed:
		out = m.failLocked(r, l, res.Err, n, now, out)
	default:
		out = append(out, m.renewLocked(l, res, left, now))
	}
	return out
}

// failLocked plans the next try of a lease without a usable answer. When the
// Manager is closing, its own cancelled context is the likely reason, which is
// no failure of the lease.
func (m *Manager) failLocked(r *run, l *Lease, err error, n int, now int64, out []notice) []notice {
	l.offbeat, l.again = true, false
	if r.closing {
		m.planLocked(l, now)
		return out
	}
	l.failedIn(n, err)
	failures := l.failures.Add(1)
	m.planLocked(l, now+m.retryAfter(l.period, l.deadline.Load()-now))
	return append(out, notice{lease: l, failures: failures, err: err})
}

// renewLocked moves the deadline of a confirmed lease and plans its next
// renewal: a period after the last send, so that a slow answer does not
// stretch the rhythm. After a retry or a hurried renewal the rhythm begins
// anew, jittered.
func (m *Manager) renewLocked(l *Lease, res Result, left, now int64) notice {
	m.confirmLocked(l, res.SentAt, l.lease)
	l.failing = nil
	l.failures.Store(0)
	l.renewals.Add(1)
	due := m.at(res.SentAt) + int64(l.period)
	switch {
	case l.again:
		due = now
	case l.offbeat:
		due = m.at(res.SentAt) + m.spread(l.period)
	}
	l.offbeat, l.again = l.again, false
	m.planLocked(l, due)
	return notice{lease: l, margin: time.Duration(left), reacquired: res.Outcome == Reacquired}
}
