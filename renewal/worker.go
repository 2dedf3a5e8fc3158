package renewal

import (
	"context"
	"time"
)

// notice is a call of OnRenewed or OnFailed that is due once the mutex is
// free.
type notice struct {
	lease    *Lease
	margin   time.Duration
	err      error
	failures int32 // 0: renewed
}

// work sends batch, and after it what waits at the shard, until nothing does.
// It keeps one slot of the shard all the time and is the only one to free it.
func (m *Manager) work(r *run, s *shard, batch []*Lease) {
	for batch != nil {
		sent, results := m.send(r.ctx, s.name, batch)
		var notices []notice
		batch, notices = m.answered(r, s, sent, results)
		m.report(r, notices)
	}
}

// report announces the outcome of a batch, on a goroutine that keeps no slot: however long it takes,
// the next batch is not late, nor is it older than its check when it is handed over.
func (m *Manager) report(r *run, notices []notice) {
	if len(notices) == 0 {
		return
	}
	r.reports.Go(func() {
		for _, n := range notices {
			if n.failures > 0 {
				m.cfg.OnFailed(n.lease, int(n.failures), n.err)
			} else {
				m.cfg.OnRenewed(n.lease, n.margin)
			}
		}
	})
}

// send calls the Sender for what is left of one batch, and returns that with the
// results. The context ends with the last deadline in it, so that a Sender that minds its
// context can't keep a slot for leases that nobody has any more.
func (m *Manager) send(ctx context.Context, shard string, batch []*Lease) ([]*Lease, []Result) {
	items := make([]Item, len(batch))
	for i, l := range batch {
		key, field := l.owner.Names()
		items[i] = Item{Key: key, Field: field, Lease: time.Duration(l.lease.Load()), Owner: l.owner}
	}
	n, at, last := m.handOver(batch, items)
	if n == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithDeadline(ctx, last)
	defer cancel()
	return batch[:n], m.cfg.Sender.RenewBatch(ctx, shard, items[:n], at)
}

// handOver checks every lease of a batch once more, and drops those, with their items,
// that are not to be renewed any more: between forming a batch and sending it a goroutine
// may have waited for its processor. The first n are left, and count as sent at the moment
// at (I5). last is the last deadline.
func (m *Manager) handOver(batch []*Lease, items []Item) (n int, at, last time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at = time.Now()
	now, latest := m.clock.at(at), int64(0)
	for i, l := range batch {
		deadline := l.deadline.Load()
		switch {
		case l.State() != StateActive:
			continue
		case deadline <= now:
			l.stage = idle // it is not under way
			m.expireLocked(l)
			continue
		case !l.renews():
			l.stage = idle // its next time is never, and it waits for its deadline
			continue
		case items[i].Key == "":
			due := now
			if !l.again { // else somebody has begun to use it, and hurried it
				due += m.retryAfter(time.Duration(l.period.Load()), deadline-now)
			}
			l.stage, l.offbeat, l.again = idle, true, false
			m.planLocked(l, due)
			continue
		}
		batch[n], items[n] = l, items[i]
		latest = max(latest, deadline)
		n++
	}
	m.nudgeLocked() // a renewal was planned that the loop does not know of
	return n, at, m.clock.onward(m.clock.epoch.Load(), latest)
}

// answered applies the results of a batch to those of its leases that were
// neither ended nor lost meanwhile; for the others they mean nothing. It
// returns the shard's next batch for the same worker, and what to report. A nil batch
// means that nothing waits, and the slot is free.
func (m *Manager) answered(r *run, s *shard, batch []*Lease, results []Result) (next []*Lease, notices []notice) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock.now() // read with the mutex held, so no deadline passes unnoticed
	usable := false
	for i, l := range batch {
		res := Result{Err: ErrNoResult}
		if i < len(results) {
			res = results[i]
		}
		if res.Renewed && res.SentAt.IsZero() {
			res = Result{Err: ErrNoSentAt}
		}
		answered := res.Renewed || res.Gone
		usable = usable || answered
		if answered || !r.closing {
			m.window.count(now, answered)
		}
		if l.State() != StateActive {
			continue
		}
		l.stage = idle
		if l.period.Load() <= 0 { // it has become a fixed one since
			m.planLocked(l, never)
			continue
		}
		n, reported := m.applyLocked(l, res, len(batch), now, r.closing)
		if reported {
			notices = append(notices, n)
		}
	}
	if usable {
		s.misses = 0
	} else if !r.closing && len(batch) > 0 {
		s.misses++
	}
	if !r.closing {
		next = m.takeLocked(s, now)
	}
	if next == nil {
		s.flying--
		m.dropLocked(s)
	}
	m.nudgeLocked()
	return next, notices
}

// applyLocked applies one result, of a batch of that size, to a lease that is active, and
// returns what is to be reported of it, where anybody wants that. A confirmation after the deadline is ignored: the lease is
// lost also when the loop has not said so yet, because Valid has.
func (m *Manager) applyLocked(l *Lease, res Result, size int, now int64, closing bool) (n notice, reported bool) {
	left := l.deadline.Load() - now
	switch {
	case left <= 0:
		if res.Err != nil {
			l.failedIn(size, res.Err)
		}
		m.expireLocked(l)
	case res.Gone:
		m.loseLocked(l, Cause{Reason: ReasonGone, By: ByRenewal, Err: res.Err})
	case !res.Renewed:
		m.failLocked(l, res.Err, size, now, closing)
		return notice{lease: l, failures: l.failures.Load(), err: res.Err}, !closing && m.cfg.OnFailed != nil
	default:
		if l.brief() {
			left = -1
		}
		m.renewLocked(l, res, now)
		return notice{lease: l, margin: time.Duration(left)}, m.cfg.OnRenewed != nil
	}
	return notice{}, false
}
