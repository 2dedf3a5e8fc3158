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

// desk is what a worker writes on, for one batch. A hundred thousand leases are forty
// batches a second, and lists made anew for each of them were a sixth of what renewals
// left to the collector.
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

// giveBack makes d empty, so that it keeps no lease and no name alive, and leaves it to
// the next batch.
func (m *Manager) giveBack(d *desk) {
	clear(d.items)
	clear(d.notices)
	d.items, d.notices = d.items[:0], d.notices[:0]
	m.desks.Put(d)
}

// work sends batch, and after it what waits at the shard, until nothing does.
// It keeps one slot of the shard all the time and is the only one to free it.
func (m *Manager) work(r *run, s *shard, batch []*Lease) {
	for batch != nil {
		d := m.desk()
		sent, results := m.send(r.ctx, d, s.name, batch)
		batch = m.settle(r, d, s, sent, results)
		m.report(r, d)
	}
}

// report tells what stands on d, on a goroutine that keeps no slot: however long it takes,
// the next batch is not late, nor is it older than its check when it is handed over.
func (m *Manager) report(r *run, d *desk) {
	if len(d.notices) == 0 {
		m.giveBack(d)
		return
	}
	r.reports.Go(func() {
		defer m.giveBack(d)
		for _, n := range d.notices {
			if n.failures > 0 {
				m.cfg.OnFailed(n.lease, int(n.failures), n.err)
			} else {
				m.cfg.OnRenewed(n.lease, n.margin, n.reacquired)
			}
		}
	})
}

// send calls the Sender for what is left of one batch, and returns that with the
// results. The context ends with the last deadline in it, so that a Sender that minds its
// context can't keep a slot for leases that nobody has any more.
func (m *Manager) send(ctx context.Context, d *desk, shard string, batch []*Lease) ([]*Lease, []Result) {
	for _, l := range batch {
		key, field := l.owner.Names()
		d.items = append(d.items, Item{Key: key, Field: field, Lease: l.lease, Reacquire: l.reacquire})
	}
	batch, at, last := m.handOver(d, batch)
	if len(batch) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithDeadline(ctx, last)
	defer cancel()
	return batch, m.cfg.Sender.RenewBatch(ctx, shard, d.items, at)
}

// handOver looks at every lease of a batch once more, and drops those, with their items,
// that are not to be renewed any more: between forming a batch and sending it a goroutine
// may have waited for its processor. What it returns counts as sent at the moment at (I5).
// last is the last deadline.
func (m *Manager) handOver(d *desk, batch []*Lease) (left []*Lease, at, last time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at = time.Now()
	now, latest, n := m.at(at), int64(0), 0
	for i, l := range batch {
		deadline := l.deadline.Load()
		switch {
		case State(l.state.Load()) != StateActive:
			continue
		case deadline <= now:
			l.stage = idle // it is not under way
			m.expireLocked(l)
			continue
		case l.stopped:
			l.stage = idle // its next time is never, and it waits for its deadline
			continue
		}
		batch[n], d.items[n] = l, d.items[i]
		latest = max(latest, deadline)
		n++
	}
	d.items = d.items[:n]
	return batch[:n], at, m.clock.onward(m.clock.epoch.Load(), latest)
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
	} else if !r.closing && len(batch) > 0 {
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
		m.renewLocked(l, res, now)
		if m.cfg.OnRenewed != nil {
			out = append(out, notice{lease: l, margin: time.Duration(left), reacquired: res.Outcome == Reacquired})
		}
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
	if m.cfg.OnFailed != nil {
		out = append(out, notice{lease: l, failures: failures, err: err})
	}
	return out
}

// renewLocked moves the deadline of a confirmed lease and plans its next
// renewal: a period after the last send, so that a slow answer does not
// stretch the rhythm. After a retry or a hurried renewal the rhythm begins
// anew, jittered.
func (m *Manager) renewLocked(l *Lease, res Result, now int64) {
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
}
