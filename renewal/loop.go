package renewal

import "time"

const (
	// heartbeat is the longest pause of the loop while there is any lease.
	// The runtime's timers stop while a machine is suspended, so this
	// bounds how long the loop needs to notice a jump once it runs again.
	heartbeat = time.Second
	// jumpAfter is the difference between wall and monotonic time within one
	// round from which on it is a jump. Slewing (at most 0.5 ms a second)
	// stays far below.
	jumpAfter = time.Second
)

// loop is the Manager's one long-lived goroutine. It does no I/O and calls
// nobody but Lost. Repeatedly:
//
//	read both clocks; after a jump make every lease due
//	take what wants attention off the heap: deadline passed → lost,
//	    renewal due → FIFO of its shard
//	notify the losses, each without the mutex
//	start a worker for each free slot of a shard with leases that wait
//	sleep until the first lease needs attention, at most a heartbeat; for
//	    good only where no lease came for as long. Leases that are ended at
//	    once, again and again, must not wake the loop each time: it keeps the
//	    time that one of them has asked for
//
// After each stretch without the mutex it checks whether it is still the loop.
func (m *Manager) loop(r *run, lp *loop) {
	timer := time.NewTimer(heartbeat)
	defer timer.Stop()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = reading{}
	for nudged := false; r.loop == lp; {
		jump := m.beginLocked()
		m.collectLocked()
		if !m.reportLossesLocked(r, lp) {
			return
		}
		m.dispatchLocked(r)
		m.reportLocked(r, jump)
		next := m.nextLocked()
		now := m.onTimer(m.clock.now())
		if next = m.onTimer(next); nudged && m.armed > now {
			next = min(next, m.armed)
		}
		m.armed, nudged = next, false
		if m.armed == never {
			timer.Stop()
		} else {
			timer.Reset(time.Duration(m.armed - now))
		}
		m.mu.Unlock()
		select {
		case <-timer.C:
		case <-lp.wake:
			nudged = true
		case <-lp.quit:
			m.mu.Lock()
			m.reportLossesLocked(r, lp) // at a Stop; after a Restart it does nothing
			return
		}
		m.mu.Lock()
	}
}

// onTimer returns the moment at as a timer counts, which stops while the machine is suspended.
func (m *Manager) onTimer(at int64) int64 {
	if at == never {
		return never
	}
	return at - m.clock.epoch.Load().slept
}

// beginLocked reads the clocks and returns by how much the wall clock and the
// monotonic one moved apart since the last round; zero where that is below the bound. The
// first round, and one that ends an idle time, have nothing to compare with: there was no
// lease that could have suffered.
func (m *Manager) beginLocked() (jump time.Duration) {
	now := time.Now()
	last, this := m.last, reading{at: m.clock.at(now), wall: m.clock.wall(now)}
	this.slept = this.at - int64(now.Sub(m.clock.base))
	m.last = this
	if last.wall == 0 || m.armed == never {
		return 0
	}
	slept := this.slept - last.slept
	jump = time.Duration(this.wall - last.wall - (this.at - slept - last.at))
	if jump.Abs() <= jumpAfter {
		return 0
	}
	for l := range m.heap.All() {
		if l.renews() {
			l.hurry(this.at)
		}
	}
	m.heap.SetAll((*Lease).attention)
	return jump
}

// collectLocked takes off the heap's top what wants attention: it concludes
// losses and moves renewals to the FIFO of their shard. Once one renewal is
// due, those that would be due in a moment go with it (Lease.gather), at most as
// many in all as one shard may have under way together.
func (m *Manager) collectLocked() {
	now, limit := m.last.at, m.cfg.BatchSize*m.cfg.InFlight
	for taken := 0; m.heap.Len() > 0; {
		l, at := m.heap.First()
		if l.deadline.Load() <= now {
			m.expireLocked(l)
			continue
		}
		renewal := l.stage == idle && at == l.due.Load()
		early := taken > 0 && taken < limit && renewal && at <= now+l.gather(now)
		if at > now && !early {
			break
		}
		m.dueLocked(l)
		taken++
	}
}

// reportLossesLocked calls Lost for every concluded loss, one after the other, each
// without the mutex and each taken off the list before: its taker is
// the only one to report it. OnLost hears of them after that, on a goroutine of its
// own. It returns false when lp was replaced meanwhile; then the others are the new
// loop's.
func (m *Manager) reportLossesLocked(r *run, lp *loop) bool {
	var reported []*Lease
	for r.loop == lp && len(m.losses) > 0 {
		l := m.losses[0]
		m.losses[0] = nil
		m.losses = m.losses[1:]
		m.mu.Unlock()
		l.owner.Lost(*l.cause.Load())
		m.mu.Lock()
		if m.cfg.OnLost != nil {
			reported = append(reported, l)
		}
	}
	if len(m.losses) == 0 {
		m.losses = nil // give back what a large loss has grown
	}
	if reported != nil {
		r.reports.Go(func() {
			for _, l := range reported {
				m.cfg.OnLost(l)
			}
		})
	}
	return r.loop == lp
}

// dispatchLocked starts workers for what waits, up to the limit of each shard.
// A shard without a free slot is served by its own workers when they return.
// Checking every shard in every round is cheap, and finds also what an
// earlier run or a replaced loop left in a FIFO, and those that nobody needs
// any more.
func (m *Manager) dispatchLocked(r *run) {
	for _, s := range m.shards {
		m.ageLocked(s)
		for !r.closing && s.flying < m.cfg.InFlight {
			batch := m.takeLocked(s, m.clock.now())
			if batch == nil {
				break
			}
			s.flying++
			r.workers.Go(func() { m.work(r, s, batch) })
		}
	}
}

// nextLocked returns when the loop has to run again: never if there is
// no lease and was none for a heartbeat.
func (m *Manager) nextLocked() int64 {
	if len(m.shards) == 0 {
		return never
	}
	return min(m.clock.now()+int64(heartbeat), m.firstLocked())
}

// reportLocked passes a jump on. It is rare, so it may cost a goroutine; the loop
// itself never enters foreign code other than Lost.
func (m *Manager) reportLocked(r *run, jump time.Duration) {
	if r.closing || jump == 0 || m.cfg.OnJump == nil {
		return
	}
	r.reports.Go(func() { m.cfg.OnJump(jump) })
}
