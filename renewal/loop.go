package renewal

import "time"

// loop is the Manager's one long-lived goroutine. It does no I/O and calls
// nobody but Lost. Repeatedly:
//
//	read both clocks; after a jump make every lease due
//	take what wants attention off the heap: deadline passed → lost,
//	    renewal due → FIFO of its shard
//	tell the losses, each without the mutex
//	start a worker for each free slot of a shard with leases that wait
//	sleep until the first lease wants attention, at most a heartbeat; for
//	    good only where no lease came for as long: one that is ended at once,
//	    again and again, must not wake the loop each time
//
// After each stretch without the mutex it looks whether it is still the loop.
func (m *Manager) loop(r *run, lp *loop) {
	timer := time.NewTimer(heartbeat)
	defer timer.Stop()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turn = turn{}
	for r.loop == lp {
		jump, late := m.beginLocked()
		m.collectLocked()
		if !m.tellLocked(r, lp) {
			return
		}
		m.dispatchLocked(r)
		m.reportLocked(r, jump, late)
		m.armed = m.nextLocked()
		if m.armed == never {
			timer.Stop()
		} else {
			timer.Reset(time.Duration(m.armed - m.now()))
		}
		m.mu.Unlock()
		select {
		case <-timer.C:
		case <-lp.wake:
		case <-lp.quit:
			m.mu.Lock()
			m.tellLocked(r, lp) // at a Stop; after a Restart it does nothing
			return
		}
		m.mu.Lock()
	}
}

// beginLocked reads the clocks and returns by how much the wall clock and the
// monotonic one moved apart since the last round, and how late this round is, a
// suspension of the machine not counted; zero where that is below the bound. The
// first round, and one that ends an idle time, have nothing to compare with: there
// was no lease that could have suffered.
func (m *Manager) beginLocked() (jump, late time.Duration) {
	now := time.Now()
	last, this := m.turn, turn{at: m.at(now), wall: m.clock.wall(now)}
	this.slept = this.at - int64(now.Sub(m.clock.base))
	m.turn = this
	if last.wall == 0 || m.armed == never {
		return 0, 0
	}
	slept := this.slept - last.slept
	late = max(0, time.Duration(this.at-slept-m.armed))
	if late <= stallAfter {
		late = 0
	}
	jump = time.Duration(this.wall - last.wall - (this.at - slept - last.at))
	if jump.Abs() <= jumpAfter {
		return 0, late
	}
	for i := range m.heap {
		l := m.heap[i].lease
		if l.period > 0 && !l.stopped {
			m.hurryLocked(l, this.at)
			m.heap[i].at = l.attention()
		}
	}
	m.heap.rebuild()
	return jump, late
}

// collectLocked takes off the heap's top what wants attention: it concludes
// losses and moves renewals to the FIFO of their shard. Once one renewal is
// due, those that would be due in a moment go with it (Lease.gather).
func (m *Manager) collectLocked() {
	now := m.turn.at
	for gathering := false; len(m.heap) > 0; {
		l, at := m.heap[0].lease, m.heap[0].at
		if l.deadline.Load() <= now {
			m.expireLocked(l)
			continue
		}
		renewal := l.stage == idle && at == l.due.Load()
		early := gathering && renewal && at <= now+l.gather(now)
		if at > now && !early {
			break
		}
		l.shard.push(l)
		l.stage = waiting
		m.heap.move(l, l.attention())
		gathering = true
	}
}

// tellLocked calls Lost for every concluded loss, one after the other, each
// without the mutex and each taken off the list before: whoever takes it is
// the only one to tell it. OnLost hears of them after that, on a goroutine of its
// own. It returns false when lp was replaced meanwhile; then the rest is the new
// loop's.
func (m *Manager) tellLocked(r *run, lp *loop) bool {
	var told []*Lease
	for r.loop == lp && len(m.losses) > 0 {
		l := m.losses[0]
		m.losses[0] = nil
		m.losses = m.losses[1:]
		m.mu.Unlock()
		l.owner.Lost(*l.cause.Load())
		m.mu.Lock()
		if m.cfg.OnLost != nil {
			told = append(told, l)
		}
	}
	if len(m.losses) == 0 {
		m.losses = nil // give back what a large loss has grown
	}
	if told != nil {
		r.reports.Go(func() {
			for _, l := range told {
				m.cfg.OnLost(l)
			}
		})
	}
	return r.loop == lp
}

// dispatchLocked starts workers for what waits, up to the limit of each shard.
// A shard without a free slot is served by its own workers when they return.
// Looking at every shard in every round is cheap, and finds also what an
// earlier run or a replaced loop left in a FIFO, and those that nobody needs
// any more.
func (m *Manager) dispatchLocked(r *run) {
	for _, s := range m.shards {
		m.ageLocked(s)
		for !r.closing && s.flying < m.cfg.InFlight {
			batch := m.takeLocked(s, m.now())
			if batch == nil {
				break
			}
			s.flying++
			r.workers.Go(func() { m.work(r, s, batch) })
		}
	}
}

// nextLocked returns when the loop has to look again: never where there is
// no lease and was none for a heartbeat. It is not before the round that ends
// now, so that a lease which was overdue when it came does not make the next
// round look late.
func (m *Manager) nextLocked() int64 {
	if len(m.shards) == 0 {
		return never
	}
	next := m.now() + int64(heartbeat)
	if len(m.heap) > 0 {
		next = min(next, m.heap[0].at)
	}
	return max(next, m.turn.at)
}

// reportLocked passes a jump or a stall on. It is rare, so it may cost a
// goroutine; the loop itself never enters foreign code other than Lost.
func (m *Manager) reportLocked(r *run, jump, late time.Duration) {
	if r.closing || (jump == 0 && late == 0) {
		return
	}
	r.reports.Go(func() {
		if jump != 0 && m.cfg.OnJump != nil {
			m.cfg.OnJump(jump)
		}
		if late != 0 && m.cfg.OnStall != nil {
			m.cfg.OnStall(late)
		}
	})
}
